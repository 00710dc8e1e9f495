//! The launchd agent, a property list (launchd.plist(5)).

use std::collections::BTreeMap;
use std::ffi::OsStr;

use serde::Serialize;

use crate::plan::{PlanError, ServicePlan};

/// Label of the agent in launchd.
pub const LABEL: &str = "org.longhaul.agent";
/// Names of the files in the log folder to which launchd writes the agent's standard output and standard error.
pub const OUTPUT_FILES: [&str; 2] = ["stdout.log", "stderr.log"];

/// Minimum time between two starts, in seconds: long enough that a daemon that cannot start costs nothing, and
/// short enough that the daemon detects its own crash loop (five crashes in ten minutes).
pub(crate) const THROTTLE_SECONDS: u32 = 30;
/// Time between SIGTERM and SIGKILL, in seconds. The daemon exits within five; a worker that waits for a dead
/// server uses the rest. With 0, launchd would wait for it for ever.
pub(crate) const STOP_TIMEOUT_SECONDS: u32 = 30;

/// The keys of the agent's property list.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Agent {
    label: &'static str,
    program_arguments: Vec<String>,
    run_at_load: bool,
    /// Restart only after a failure: the daemon exits with 0 when it was stopped, and with 75 when another version
    /// was installed. With an invalid configuration it waits instead of exiting, because launchd cannot be told to leave it
    /// ended, as systemd can.
    keep_alive: KeepAlive,
    throttle_interval: u32,
    /// `Interactive`: with any other type, launchd throttles CPU and I/O, which affects SMB and AFP, but not NFS,
    /// so the measurement would be distorted (launchd.plist(5); getiopolicy_np(3)).
    process_type: &'static str,
    /// True, because launchd otherwise coalesces the timers of jobs (launchd.plist(5)), which would shift the
    /// samples.
    legacy_timers: bool,
    exit_time_out: u32,
    /// `Aqua`: run in a GUI session, with the mounts and the keychain of the user, and where macOS can ask for
    /// permissions.
    limit_load_to_session_type: &'static str,
    standard_out_path: String,
    standard_error_path: String,
    soft_resource_limits: ResourceLimits,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment_variables: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeepAlive {
    successful_exit: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ResourceLimits {
    /// Maximum number of open files. The default for jobs is 256; a hundred targets need more.
    number_of_files: u32,
}

/// Renders the property list of the agent, as XML.
///
/// # Errors
///
/// [`PlanError`] for a path that is relative, is not UTF-8, or contains characters that XML does not allow.
pub fn plist(plan: &ServicePlan) -> Result<Vec<u8>, PlanError> {
    let words = plan.command_line()?;
    let arguments = words.into_iter().map(|(what, text)| xml_text(what, text)).collect::<Result<_, _>>()?;
    let log = |name: &str| xml_text("the folder of the logs", plan.log_folder.join(name).as_os_str());
    let variables = plan.environment.iter();
    let variables = variables.map(|(name, value)| Ok((name.clone(), xml_text(name, value)?)));
    let agent = Agent {
        label: LABEL,
        program_arguments: arguments,
        run_at_load: true,
        keep_alive: KeepAlive { successful_exit: false },
        throttle_interval: THROTTLE_SECONDS,
        process_type: "Interactive",
        legacy_timers: true,
        exit_time_out: STOP_TIMEOUT_SECONDS,
        limit_load_to_session_type: "Aqua",
        standard_out_path: log(OUTPUT_FILES[0])?,
        standard_error_path: log(OUTPUT_FILES[1])?,
        soft_resource_limits: ResourceLimits { number_of_files: 4096 },
        environment_variables: variables.collect::<Result<_, PlanError>>()?,
    };
    let mut xml = Vec::new();
    plist::to_writer_xml(&mut xml, &agent).expect("an agent is plain data, and a vector takes it");
    xml.push(b'\n');
    Ok(xml)
}

/// Returns a text if a property list can contain it: UTF-8 without control characters except tab and line feed
/// (XML 1.0, section 2.2; a carriage return would be read back as a line feed, section 2.11).
fn xml_text(what: &str, text: &OsStr) -> Result<String, PlanError> {
    let refused = |why, advice| PlanError::Unrepresentable {
        what: what.to_owned(),
        text: text.to_owned(),
        why,
        advice,
    };
    let Some(utf8) = text.to_str() else {
        return Err(refused("it is not UTF-8, which a property list requires", "Rename it"));
    };
    let carried =
        |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}') || matches!(c, '\t' | '\n');
    if utf8.chars().all(carried) {
        Ok(utf8.to_owned())
    } else {
        Err(refused("it has a control character, which a property list cannot contain", "Rename it"))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use plist::Value;
    use proptest::prelude::*;

    use longhaul_model::Hint as _;

    use super::*;
    use crate::plan::tests::plan;

    /// Expected property list, written by hand from launchd.plist(5) and from what is known about measuring under
    /// launchd.
    const EXPECTED: &str = include_str!("../tests/fixtures/org.longhaul.agent.plist");

    #[test]
    fn agent_of_homebrew_differs_only_in_paths() {
        let mut packaged = read(include_bytes!("../packages/org.longhaul.agent.plist"));
        let mut ours = read(&plist(&plan()).unwrap());
        let program = packaged.remove("ProgramArguments").unwrap();
        let expected = vec![Value::from("@PREFIX@/opt/longhaul/bin/longhauld")];
        assert_eq!(program.into_array(), Some(expected), "the formula fills in the prefix");
        for path in ["ProgramArguments", "StandardOutPath", "StandardErrorPath"] {
            ours.remove(path);
        }
        assert_eq!(packaged, ours);
    }

    #[test]
    fn formula_of_homebrew_names_the_services_and_their_files() {
        let formula = include_str!("../packages/longhaul.rb");
        for line in [
            format!("name macos: \"{LABEL}\", linux: \"longhaul\""),
            format!("inreplace \"launchd/packages/{LABEL}.plist\", \"@PREFIX@\", HOMEBREW_PREFIX"),
            format!(
                "prefix.install \"launchd/packages/{LABEL}.plist\", \"launchd/packages/longhaul.service\""
            ),
        ] {
            assert!(formula.contains(&line), "{line}");
        }
    }

    fn read(xml: &[u8]) -> plist::Dictionary {
        Value::from_reader_xml(xml).unwrap().into_dictionary().unwrap()
    }

    #[test]
    fn plist_text_matches_the_golden_file() {
        assert_eq!(String::from_utf8(plist(&plan()).unwrap()).unwrap(), EXPECTED);
    }

    #[test]
    fn text_that_xml_cannot_contain_is_refused() {
        for (path, part) in [
            (&b"/a\xff/db"[..], "not UTF-8"),
            (b"/a\x1b[0m/db", "control character"),
            (b"/a\r/db", "control"),
        ] {
            let database = OsString::from_vec(path.to_vec()).into();
            let message = plist(&ServicePlan { database, ..plan() }).unwrap_err().one_line();
            assert!(
                message.starts_with("the database is ")
                    && message.contains(part)
                    && message.ends_with("Rename it"),
                "{message}"
            );
            assert!(
                !message.chars().any(char::is_control),
                "control characters are escaped in messages: {message:?}"
            );
        }
    }

    #[test]
    fn environment_variables_are_optional() {
        let environment = [("XDG_STATE_HOME".to_owned(), "/a & <b>".into())].into();
        let agent = read(&plist(&ServicePlan { environment, ..plan() }).unwrap());
        let variables = agent.get("EnvironmentVariables").and_then(Value::as_dictionary).unwrap();
        assert_eq!(variables.get("XDG_STATE_HOME").and_then(Value::as_string), Some("/a & <b>"));
    }

    proptest! {
        #[test]
        fn any_path_is_stored_unchanged_or_refused(name in any::<String>()) {
            let config: std::path::PathBuf = format!("/{name}").into();
            if let Ok(xml) = plist(&ServicePlan { config: config.clone(), ..plan() }) {
                let agent = read(&xml);
                let words = agent.get("ProgramArguments").and_then(Value::as_array).unwrap();
                prop_assert_eq!(words[2].as_string(), config.to_str());
            }
        }
    }
}
