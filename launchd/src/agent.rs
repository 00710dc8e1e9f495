//! The launchd agent: a property list (launchd.plist(5)).

use std::collections::BTreeMap;
use std::ffi::OsStr;

use serde::Serialize;

use crate::plan::{PlanError, ServicePlan};

/// What launchd calls the agent.
pub const LABEL: &str = "org.longhaul.agent";
/// The files in the folder of the logs that launchd writes the agent's standard output and standard error to.
pub const OUTPUT_FILES: [&str; 2] = ["stdout.log", "stderr.log"];

/// At least this many seconds lie between two starts: slow enough that a daemon that cannot start costs nothing, and
/// quick enough that it notices its own crash loop (five crashes in ten minutes).
pub(crate) const BETWEEN_STARTS_SECONDS: u32 = 30;
/// Seconds between SIGTERM and SIGKILL. The daemon takes under five; a worker that waits for a dead server takes the
/// rest, and 0 would wait for it for ever.
pub(crate) const STOP_SECONDS: u32 = 30;

/// The agent, key by key.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Agent {
    label: &'static str,
    program_arguments: Vec<String>,
    run_at_load: bool,
    /// Started again after a failure only: a daemon that was told to stop ends with 0, and one in whose place another version
    /// was installed with 75. While its configuration is wrong it waits, and does not end.
    keep_alive: KeepAlive,
    throttle_interval: u32,
    /// Anything else has its processor and its I/O throttled, and that reaches SMB and AFP, but not NFS: the agent
    /// would measure launchd (launchd.plist(5); getiopolicy_np(3)).
    process_type: &'static str,
    /// Timers of jobs are bent to each other's times unless this is said (launchd.plist(5)); samples would smear.
    legacy_timers: bool,
    exit_time_out: u32,
    /// A person who is logged in at the screen: their mounts, their keychain, and questions can be asked.
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
    /// Jobs have 256, and a hundred targets need more.
    number_of_files: u32,
}

/// The property list of the agent, as XML.
///
/// # Errors
///
/// [`PlanError`] for a path that is relative, is not UTF-8, or holds characters that XML cannot carry.
pub fn plist_of(plan: &ServicePlan) -> Result<Vec<u8>, PlanError> {
    let words = plan.words()?;
    let arguments = words.into_iter().map(|(what, text)| writable(what, text)).collect::<Result<_, _>>()?;
    let log = |name: &str| writable("the folder of the logs", plan.logs.join(name).as_os_str());
    let variables = plan.environment.iter();
    let variables = variables.map(|(name, value)| Ok((name.clone(), writable(name, value)?)));
    let agent = Agent {
        label: LABEL,
        program_arguments: arguments,
        run_at_load: true,
        keep_alive: KeepAlive { successful_exit: false },
        throttle_interval: BETWEEN_STARTS_SECONDS,
        process_type: "Interactive",
        legacy_timers: true,
        exit_time_out: STOP_SECONDS,
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

/// A text as a property list can carry it: UTF-8, and of the control characters only tab and line feed (XML 1.0,
/// section 2.2; a carriage return is read back as a line feed, section 2.11).
fn writable(what: &str, text: &OsStr) -> Result<String, PlanError> {
    let refused =
        |why, advice| PlanError::Unwritable { what: what.to_owned(), text: text.to_owned(), why, advice };
    let Some(utf8) = text.to_str() else {
        return Err(refused("it is not UTF-8, which a property list has to be", "Rename it"));
    };
    let carried =
        |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}') || matches!(c, '\t' | '\n');
    if utf8.chars().all(carried) {
        Ok(utf8.to_owned())
    } else {
        Err(refused("a property list cannot carry the control character in it", "Rename it"))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use plist::Value;
    use proptest::prelude::*;

    use super::*;
    use crate::plan::tests::plan;

    /// Constructed from launchd.plist(5) and what is known of measuring under launchd; see each key above.
    const HANDBOOK: &str = include_str!("../tests/fixtures/org.longhaul.agent.plist");

    fn read(xml: &[u8]) -> plist::Dictionary {
        Value::from_reader_xml(xml).unwrap().into_dictionary().unwrap()
    }

    #[test]
    fn every_key_is_that_of_the_handbook_and_there_is_no_other() {
        let (ours, theirs) = (read(&plist_of(&plan()).unwrap()), read(HANDBOOK.as_bytes()));
        let keys = |dictionary: &plist::Dictionary| {
            let mut keys: Vec<String> = dictionary.keys().cloned().collect();
            keys.sort();
            keys
        };
        assert_eq!(keys(&ours), keys(&theirs));
        for (key, value) in theirs {
            assert_eq!(ours.get(&key), Some(&value), "{key}");
        }
    }

    #[test]
    fn the_text_is_what_it_was() {
        assert_eq!(String::from_utf8(plist_of(&plan()).unwrap()).unwrap(), HANDBOOK);
    }

    #[test]
    fn what_xml_cannot_carry_is_refused_with_what_it_is_and_what_to_do() {
        for (path, part) in [
            (&b"/a\xff/db"[..], "not UTF-8"),
            (b"/a\x1b[0m/db", "control character"),
            (b"/a\r/db", "control"),
        ] {
            let database = OsString::from_vec(path.to_vec()).into();
            let said = plist_of(&ServicePlan { database, ..plan() }).unwrap_err().to_string();
            assert!(
                said.starts_with("the database is ") && said.contains(part) && said.ends_with("Rename it"),
                "{said}"
            );
            assert!(!said.chars().any(char::is_control), "a message does no harm to a terminal: {said:?}");
        }
    }

    #[test]
    fn variables_are_in_it_only_when_there_are_some() {
        let environment = [("XDG_STATE_HOME".to_owned(), "/a & <b>".into())].into();
        let agent = read(&plist_of(&ServicePlan { environment, ..plan() }).unwrap());
        let variables = agent.get("EnvironmentVariables").and_then(Value::as_dictionary).unwrap();
        assert_eq!(variables.get("XDG_STATE_HOME").and_then(Value::as_string), Some("/a & <b>"));
    }

    proptest! {
        #[test]
        fn any_path_is_carried_unchanged_or_refused(name in any::<String>()) {
            let config: std::path::PathBuf = format!("/{name}").into();
            if let Ok(xml) = plist_of(&ServicePlan { config: config.clone(), ..plan() }) {
                let agent = read(&xml);
                let words = agent.get("ProgramArguments").and_then(Value::as_array).unwrap();
                prop_assert_eq!(words[2].as_string(), config.to_str());
            }
        }
    }
}
