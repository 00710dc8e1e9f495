//! The commented sample, with the settings of the administrator marked.

use super::{FixedSetting, ManagedSettings, SAMPLE_CONFIG};

/// Printed behind a setting that users cannot change.
const MARK: &str = "# set by the administrator";
/// Printed behind a setting to which the administrator has given no value; the sample's value is an example.
const MARK_WITHOUT_VALUE: &str = "# an example: the administrator lets no user set this";

/// Returns the commented sample. Lines of settings that the administrator has set show that value and say so; settings that
/// the sample does not show follow at the end.
pub fn commented_sample(managed: &ManagedSettings) -> String {
    if managed.fixed.is_empty() {
        return SAMPLE_CONFIG.to_owned();
    }
    let mut section = String::new();
    let mut shown: Vec<String> = vec![];
    let mut text = String::new();
    for line in SAMPLE_CONFIG.lines() {
        let setting = line.strip_prefix("#: ").unwrap_or(line);
        if let Some(name) = setting.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{name}.");
        }
        let key =
            setting.split_once(" = ").filter(|_| setting != line).map(|(key, _)| format!("{section}{key}"));
        match key.and_then(|key| Some((managed.covering(&key)?, key))) {
            Some((fixed, key)) => {
                text += &fixed_line(fixed, line);
                shown.push(key);
            }
            None => text += &format!("{line}\n"),
        }
    }
    let others: Vec<_> = managed.fixed.iter().filter(|fixed| !shown.contains(&fixed.key)).collect();
    if !others.is_empty() {
        text += &format!("\n# Also set by the administrator, in {}:\n", managed.path.display());
    }
    for fixed in others {
        text += &match &fixed.value {
            Some(value) => format!("# {} = {}\n", fixed.key, one_line(value)),
            None => format!("# {} (cannot be set by users)\n", fixed.key),
        };
    }
    text
}

fn fixed_line(fixed: &FixedSetting, line: &str) -> String {
    match (&fixed.value, line.split_once(" = ")) {
        (Some(value), Some((start, _))) => format!("{start} = {}  {MARK}\n", one_line(value)),
        _ => format!("{line}  {MARK_WITHOUT_VALUE}\n"),
    }
}

fn one_line(value: &str) -> String {
    value.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn fixed(key: &str, value: Option<&str>) -> FixedSetting {
        FixedSetting { key: key.to_owned(), line: 1, value: value.map(ToOwned::to_owned) }
    }

    #[test]
    fn without_an_administrator_it_is_the_sample() {
        assert_eq!(commented_sample(&ManagedSettings::default()), SAMPLE_CONFIG);
    }

    #[test]
    fn settings_of_the_administrator_are_marked() {
        let managed = ManagedSettings {
            path: "/etc/longhaul/managed.toml".into(),
            fixed: vec![
                fixed("scale", Some("\"quick\"")),
                fixed("limits.cap-seconds", Some("60")),
                fixed("workloads", Some("[\n  \"dd\"\n]")),
                fixed("web", None),
                fixed("targets.nas.path", Some("\"/n\"")),
            ],
            ignored: vec![],
        };
        let text = commented_sample(&managed);
        for line in [
            "#: scale = \"quick\"  # set by the administrator",
            "#: cap-seconds = 60  # set by the administrator",
            "#: workloads = [ \"dd\" ]  # set by the administrator",
            "#: port = 0  # an example: the administrator lets no user set this",
            "# Also set by the administrator, in /etc/longhaul/managed.toml:",
            "# targets.nas.path = \"/n\"",
        ] {
            assert!(text.lines().any(|found| found == line), "the sample lacks `{line}`:\n{text}");
        }
        assert_eq!(text.matches(MARK).count(), 3);
        assert_eq!(text.matches(MARK_WITHOUT_VALUE).count(), 2, "port and address of [web]");
        assert_eq!(Config::parse(&text, "c.toml".as_ref()).unwrap(), Config::default());
    }
}
