//! The systemd user unit (systemd.unit(5), systemd.service(5), systemd.syntax(7)).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use crate::agent::{STOP_TIMEOUT_SECONDS, THROTTLE_SECONDS};
use crate::plan::{PlanError, ServicePlan};

/// Name of the unit in systemd.
pub const UNIT_NAME: &str = "longhaul.service";

/// The unit without its command line. Some options are left out on purpose:
///
/// - options that create a mount namespace (`ProtectSystem=`, `PrivateTmp=`, ...): they could hide the mounts to
///   measure;
/// - options that install a system call filter (`SystemCallFilter=`, `MemoryDenyWriteExecute=`,
///   `RestrictSUIDSGID=`, ...): every timed system call would pass through the filter, but only in the background;
/// - `Nice=`, `IOSchedulingClass=` and `UMask=`: longhaul would measure something else than the user's programs
///   experience;
/// - a limit on restarts: after a crash loop, the daemon itself starts in safe mode.
const UNIT_TEMPLATE: &str = "\
# Written by `longhaul service install`; `longhaul service uninstall` removes it.
[Unit]
Description=longhaul: measures network drives in the background
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
WatchdogSec=60
Restart=on-failure
# An invalid configuration, or a database that cannot be used where it is, stays so after a restart.
RestartPreventExitStatus=2
# A worker that waits for a dead server must not delay a stop for long, so it may be left running.
KillMode=mixed
# A worker that takes too much memory makes a run fail, but must not end the service.
OOMPolicy=continue
LimitNOFILE=4096:524288
NoNewPrivileges=yes
";

/// Renders the systemd unit of a plan.
///
/// # Errors
///
/// [`PlanError`] for a path that is relative or not UTF-8, and for a program path with characters that systemd
/// does not support there: quotes, backslashes and control characters.
pub fn unit(plan: &ServicePlan) -> Result<String, PlanError> {
    let mut unit = UNIT_TEMPLATE.to_owned();
    let mut line = |text: String| writeln!(unit, "{text}").expect("a string takes any text");
    line(format!("RestartSec={THROTTLE_SECONDS}"));
    line(format!("TimeoutStopSec={STOP_TIMEOUT_SECONDS}"));
    for (name, value) in &plan.environment {
        line(format!("Environment={}", quote(&format!("{name}={}", environment_value(name, value)?))));
    }
    let words: Result<Vec<String>, PlanError> =
        plan.command_line()?.into_iter().map(|(what, word)| Ok(quote(require_utf8(what, word)?))).collect();
    check_program(plan.program.as_os_str())?;
    // The colon prefix disables the expansion of variables such as `$HOME`.
    line(format!("ExecStart=:{}", words?.join(" ")));
    line("\n[Install]\nWantedBy=default.target".to_owned());
    Ok(unit)
}

/// Returns the text if it is UTF-8. systemd would start a service with other bytes in its command line, but could
/// not show it: `systemctl show` fails with "Invalid argument", because its messages are UTF-8 (observed with
/// systemd 252).
fn require_utf8<'a>(what: &str, text: &'a OsStr) -> Result<&'a str, PlanError> {
    text.to_str().ok_or_else(|| PlanError::Unrepresentable {
        what: what.to_owned(),
        text: text.to_owned(),
        why: "it is not UTF-8, which systemd requires in the command line of a service",
        advice: "Rename it",
    })
}

/// Refuses a program path with characters that systemd rejects, even if they are escaped (systemd 252,
/// src/core/load-fragment.c, `config_parse_exec`).
fn check_program(program: &OsStr) -> Result<(), PlanError> {
    let refused = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'\\');
    if program.as_bytes().iter().any(refused) {
        return Err(PlanError::Unrepresentable {
            what: "the program".to_owned(),
            text: program.to_owned(),
            why: "systemd allows no quote, backslash or control character in the path of a program",
            advice: "Install longhaul in another folder",
        });
    }
    Ok(())
}

/// Returns the value of an environment variable. systemd accepts no control characters except tab and line feed
/// (src/basic/env-util.c, `env_value_is_valid`).
fn environment_value<'a>(name: &str, value: &'a OsStr) -> Result<&'a str, PlanError> {
    let text = require_utf8(name, value)?;
    if text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n')) {
        return Ok(text);
    }
    Err(PlanError::Unrepresentable {
        what: name.to_owned(),
        text: value.to_owned(),
        why: "systemd allows no control character in a variable",
        advice: "Set it to another folder, or unset it",
    })
}

/// Quotes a word with C escapes for quotes, backslashes and control characters, and `%%` for `%`, which would
/// start a specifier (systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers").
fn quote(word: &str) -> String {
    let mut text = String::from("\"");
    word.chars().for_each(|c| push_escaped(&mut text, c));
    text.push('"');
    text
}

fn push_escaped(text: &mut String, c: char) {
    match c {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '%' => text.push_str("%%"),
        c if c.is_control() => {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                write!(text, "\\x{byte:02x}").expect("a string takes any text");
            }
        }
        c => text.push(c),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use longhaul_model::Hint as _;

    use super::*;
    use crate::plan::Service;

    const GOLDEN: &str = include_str!("../tests/fixtures/longhaul.service");

    fn plan() -> ServicePlan {
        ServicePlan {
            service: Service {
                definition_path: "/home/ada/.config/systemd/user/longhaul.service".into(),
                user: 1000,
            },
            program: "/usr/local/bin/longhauld".into(),
            config: "/home/ada/.config/longhaul/config.toml".into(),
            database: "/home/ada/my data/100%/$HOME/longhaul.sqlite".into(),
            log_folder: "/home/ada/.local/state/longhaul".into(),
            environment: [("XDG_DATA_HOME".to_owned(), "/home/ada/my data".into())].into(),
        }
    }

    #[test]
    fn unit_text_matches_the_golden_file() {
        assert_eq!(unit(&plan()).unwrap(), GOLDEN);
    }

    #[test]
    fn unit_of_packages_differs_only_in_paths() {
        let packaged = include_str!("../packages/longhaul.service");
        let is_path =
            |line: &str| ["#", "Environment=", "ExecStart="].iter().any(|start| line.starts_with(start));
        let settings = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !is_path(line)).map(str::to_owned).collect()
        };
        assert_eq!(settings(packaged), settings(&unit(&plan()).unwrap()));
        assert!(packaged.contains("\nExecStart=:\"/usr/bin/longhauld\"\n"));
    }

    #[test]
    fn every_character_of_a_path_is_escaped() {
        for (path, written) in [
            ("/a b", r#""/a b""#),
            ("/100%/$HOME", r#""/100%%/$HOME""#),
            ("/a\"b'c\\d", r#""/a\"b'c\\d""#),
            ("/a\nb\tc\x1b", r#""/a\nb\x09c\x1b""#),
            ("/🐚 ä", "\"/🐚 ä\""),
            ("/\u{85}", r#""/\xc2\x85""#),
        ] {
            assert_eq!(quote(path), written);
        }
    }

    #[test]
    fn program_path_with_unsupported_characters_is_refused() {
        for name in ["/a\"b", "/it's", "/a\\b", "/a\nb"] {
            let message = unit(&ServicePlan { program: name.into(), ..plan() }).unwrap_err().one_line();
            assert!(
                message.starts_with("the program is /") && message.ends_with("another folder"),
                "{message}"
            );
        }
        let plan = ServicePlan { program: "/a b/100% $x 🐚/longhauld".into(), ..plan() };
        assert!(unit(&plan).unwrap().contains("ExecStart=:\"/a b/100%% $x 🐚/longhauld\" "));
    }

    #[test]
    fn values_that_systemd_cannot_store_are_refused() {
        let bad = || OsString::from_vec(b"/\xff\n".to_vec());
        let with = |plan: ServicePlan| unit(&plan).unwrap_err().one_line();
        let message = with(ServicePlan { config: bad().into(), ..plan() });
        assert!(
            message.starts_with("the configuration is /")
                && message
                    .ends_with("UTF-8, which systemd requires in the command line of a service: Rename it"),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message:?}");
        for value in [bad(), "/\x1b".into()] {
            let environment = [("XDG_STATE_HOME".to_owned(), value)].into();
            assert!(with(ServicePlan { environment, ..plan() }).starts_with("XDG_STATE_HOME is /"));
        }
    }
}
