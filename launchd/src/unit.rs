//! The systemd user unit (systemd.unit(5), systemd.service(5), systemd.syntax(7)).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use crate::agent::{BETWEEN_STARTS_SECONDS, STOP_SECONDS};
use crate::plan::{PlanError, ServicePlan};

/// What systemd calls the service.
pub const UNIT: &str = "longhaul.service";

/// The unit but for its command line. What is not in it is as deliberate as what is:
///
/// - nothing that makes a mount namespace (`ProtectSystem=`, `PrivateTmp=`, ...): it could hide the mounts to measure;
/// - nothing that makes a system call filter (`SystemCallFilter=`, `MemoryDenyWriteExecute=`, `RestrictSUIDSGID=`, ...):
///   it would be passed by every system call that is timed, and only in the background;
/// - no `Nice=`, `IOSchedulingClass=` or `UMask=`: it would measure something else than a person's programs do;
/// - no limit on how often it is started again: the daemon itself goes into its safe mode.
const SERVICE: &str = "\
# Written by `longhaul install`; `longhaul uninstall` removes it.
[Unit]
Description=longhaul: measures network drives in the background
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
WatchdogSec=60
Restart=on-failure
# What is wrong with the configuration is not right after another start.
RestartPreventExitStatus=2
# A worker that waits for a dead server must not hold up the end for long, and may be left behind.
KillMode=mixed
# A worker that takes too much memory is a failed run, not the end of the service.
OOMPolicy=continue
LimitNOFILE=4096:524288
NoNewPrivileges=yes
";

/// The unit.
///
/// # Errors
///
/// [`PlanError`] for a relative path, for one that is not UTF-8, and for what systemd has no way to say: quotes,
/// backslashes and control characters in the path of a program.
pub fn unit_of(plan: &ServicePlan) -> Result<String, PlanError> {
    let mut unit = SERVICE.to_owned();
    let mut line = |text: String| writeln!(unit, "{text}").expect("a string takes any text");
    line(format!("RestartSec={BETWEEN_STARTS_SECONDS}"));
    line(format!("TimeoutStopSec={STOP_SECONDS}"));
    for (name, value) in &plan.environment {
        line(format!("Environment={}", quoted(&format!("{name}={}", variable(name, value)?))));
    }
    let words: Result<Vec<String>, PlanError> =
        plan.words()?.into_iter().map(|(what, word)| Ok(quoted(utf8(what, word)?))).collect();
    check_program(plan.program.as_os_str())?;
    // The colon: no `$` in it means a variable.
    line(format!("ExecStart=:{}", words?.join(" ")));
    line("\n[Install]\nWantedBy=default.target".to_owned());
    Ok(unit)
}

/// systemd starts a service with other bytes in its command line, but can then not say anything about it: `systemctl
/// show` fails with "Invalid argument", as its messages are UTF-8 (observed with systemd 252).
fn utf8<'a>(what: &str, text: &'a OsStr) -> Result<&'a str, PlanError> {
    text.to_str().ok_or_else(|| PlanError::Unwritable {
        what: what.to_owned(),
        text: text.to_owned(),
        why: "it is not UTF-8, which systemd asks of what a service is told",
        advice: "Rename it",
    })
}

/// systemd refuses these in the path of a program, however they are written (systemd 252, src/core/load-fragment.c,
/// `config_parse_exec`).
fn check_program(program: &OsStr) -> Result<(), PlanError> {
    let refused = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\'' | b'\\');
    if program.as_bytes().iter().any(refused) {
        return Err(PlanError::Unwritable {
            what: "the program".to_owned(),
            text: program.to_owned(),
            why: "systemd takes no quote, backslash or control character in the path of a program",
            advice: "Install longhaul in another folder",
        });
    }
    Ok(())
}

/// The value of a variable, in which systemd takes no control characters but these two (src/basic/env-util.c,
/// `env_value_is_valid`).
fn variable<'a>(name: &str, value: &'a OsStr) -> Result<&'a str, PlanError> {
    let text = utf8(name, value)?;
    if text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\n')) {
        return Ok(text);
    }
    Err(PlanError::Unwritable {
        what: name.to_owned(),
        text: value.to_owned(),
        why: "systemd takes no control character in a variable",
        advice: "Set it to another folder, or unset it",
    })
}

/// A word in double quotes: C escapes for what would end it or is a control character, and `%%` for `%`, which would
/// begin a specifier (systemd.syntax(7), "Quoting"; systemd.unit(5), "Specifiers").
fn quoted(word: &str) -> String {
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

    use super::*;
    use crate::plan::Service;

    const GOLDEN: &str = include_str!("../tests/fixtures/longhaul.service");

    fn plan() -> ServicePlan {
        ServicePlan {
            service: Service {
                definition: "/home/ada/.config/systemd/user/longhaul.service".into(),
                user: 1000,
            },
            program: "/usr/local/bin/longhauld".into(),
            config: "/home/ada/.config/longhaul/config.toml".into(),
            database: "/home/ada/my data/100%/$HOME/longhaul.sqlite".into(),
            logs: "/home/ada/.local/state/longhaul".into(),
            environment: [("XDG_DATA_HOME".to_owned(), "/home/ada/my data".into())].into(),
        }
    }

    #[test]
    fn the_text_is_what_it_was() {
        assert_eq!(unit_of(&plan()).unwrap(), GOLDEN);
    }

    #[test]
    fn every_character_of_a_path_has_a_way_to_be_written() {
        for (path, written) in [
            ("/a b", r#""/a b""#),
            ("/100%/$HOME", r#""/100%%/$HOME""#),
            ("/a\"b'c\\d", r#""/a\"b'c\\d""#),
            ("/a\nb\tc\x1b", r#""/a\nb\x09c\x1b""#),
            ("/🐚 ä", "\"/🐚 ä\""),
            ("/\u{85}", r#""/\xc2\x85""#),
        ] {
            assert_eq!(quoted(path), written);
        }
    }

    #[test]
    fn a_program_that_systemd_cannot_name_is_refused() {
        for name in ["/a\"b", "/it's", "/a\\b", "/a\nb"] {
            let said = unit_of(&ServicePlan { program: name.into(), ..plan() }).unwrap_err().to_string();
            assert!(said.starts_with("the program is /") && said.ends_with("another folder"), "{said}");
        }
        let plan = ServicePlan { program: "/a b/100% $x 🐚/longhauld".into(), ..plan() };
        assert!(unit_of(&plan).unwrap().contains("ExecStart=:\"/a b/100%% $x 🐚/longhauld\" "));
    }

    #[test]
    fn what_systemd_cannot_say_is_refused_by_name() {
        let bad = || OsString::from_vec(b"/\xff\n".to_vec());
        let with = |plan: ServicePlan| unit_of(&plan).unwrap_err().to_string();
        let said = with(ServicePlan { config: bad().into(), ..plan() });
        assert!(
            said.starts_with("the configuration is /")
                && said.ends_with("UTF-8, which systemd asks of what a service is told. Rename it"),
            "{said}"
        );
        assert!(!said.contains('\n'), "{said:?}");
        for value in [bad(), "/\x1b".into()] {
            let environment = [("XDG_STATE_HOME".to_owned(), value)].into();
            assert!(with(ServicePlan { environment, ..plan() }).starts_with("XDG_STATE_HOME is /"));
        }
    }
}
