//! Changes the usage profile and the recording to replay in an existing configuration file; everything else, comments
//! included, stays as it is.

use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, Value};

use crate::config_draft::number_value;
use crate::recordings::RecordingName;

/// Section of the usage profile.
const SECTION: &str = "usage-profile";
/// Section of recordings.
const RECORDING_SECTION: &str = "recording";
/// Key of the recording that rounds replay.
const REPLAY: &str = "replay";

/// Number of times a week for a line of the usage profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageValue {
    /// Key in the configuration.
    pub key: &'static str,
    /// Times a week.
    pub times: f64,
}

/// Returns the text of a configuration with these lines of the usage profile set.
///
/// # Errors
///
/// If the text is not TOML.
pub fn with_usage(text: &str, values: &[UsageValue]) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let section = document.entry(SECTION).or_insert_with(|| Item::Table(Table::new()));
    if let Some(table) = section.as_table_like_mut() {
        values.iter().for_each(|value| set_value(table, value.key, number_value(value.times)));
    }
    Ok(document.to_string())
}

/// Sets a value. A comment behind an existing one belongs to it and stays.
fn set_value(table: &mut dyn TableLike, key: &str, new: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, Item::Value(new))),
    }
}

/// Returns the text of a configuration with which rounds replay a recording; with `None`, they replay none.
///
/// # Errors
///
/// If the text is not TOML.
pub fn with_replay(text: &str, recording: Option<&RecordingName>) -> Result<String, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    if recording.is_some() {
        document.entry(RECORDING_SECTION).or_insert_with(|| Item::Table(Table::new()));
    }
    if let Some(table) = document.get_mut(RECORDING_SECTION).and_then(Item::as_table_like_mut) {
        match recording {
            Some(name) => set_value(table, REPLAY, name.as_str().into()),
            None => drop(table.remove(REPLAY)),
        }
    }
    Ok(document.to_string())
}

/// Returns the text of a configuration without any line of the usage profile; `None` if it has none.
///
/// # Errors
///
/// If the text is not TOML.
pub fn without_usage(text: &str) -> Result<Option<String>, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let Some(table) = document.get_mut(SECTION).and_then(Item::as_table_like_mut) else { return Ok(None) };
    if table.is_empty() {
        return Ok(None);
    }
    table.clear();
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, SAMPLE_CONFIG};
    use proptest::prelude::*;

    fn set(text: &str, key: &'static str, times: f64) -> String {
        with_usage(text, &[UsageValue { key, times }]).unwrap()
    }

    #[test]
    fn values_are_set_without_touching_anything_else() {
        let text = "# mine\nscale = \"quick\"  # fast\n\n[usage-profile]\n# how I work\nbackups = 7 # daily\n\n[log]\nlevel = \"warn\"\n";
        let changed = set(&set(text, "backups", 14.0), "folder-openings", 2.5);
        let expected = text.replace("backups = 7 # daily\n", "backups = 14 # daily\nfolder-openings = 2.5\n");
        assert_eq!(changed, expected);
        assert_eq!(set("", "backups", 1.0), "[usage-profile]\nbackups = 1\n");
    }

    #[test]
    fn sample_with_a_value_set_keeps_all_its_lines() {
        let changed = set(SAMPLE_CONFIG, "photo-sessions", 4.0);
        let config = Config::parse(&changed, "c.toml".as_ref()).unwrap();
        assert_eq!(config.analysis.usage_profile["photo-batch/switch-cold"], 80.0);
        let without = without_usage(&changed).unwrap().unwrap();
        assert_eq!(without, SAMPLE_CONFIG);
        assert_eq!(without_usage(&without).unwrap(), None);
    }

    #[test]
    fn recording_to_replay_is_set_and_removed() {
        let name = |text: &str| text.parse::<RecordingName>().unwrap();
        let changed = with_replay(SAMPLE_CONFIG, Some(&name("day-2"))).unwrap();
        assert_eq!(Config::parse(&changed, "c.toml".as_ref()).unwrap().replay, Some(name("day-2")));
        assert_eq!(with_replay(&changed, None).unwrap(), SAMPLE_CONFIG);
        let text = "[recording]\nreplay = \"a\" # mine\n";
        assert_eq!(with_replay(text, Some(&name("b"))).unwrap(), text.replace("\"a\"", "\"b\""));
        assert_eq!(with_replay("", None).unwrap(), "");
    }

    proptest! {
        #[test]
        fn set_values_are_read_back_with_any_comment(comment in "[ -~]{0,20}", times in 1u32..100_000) {
            let text = format!("# {comment}\n[usage-profile] # {comment}\n#: backups = 1\n# {comment}\n");
            let changed = set(&text, "backups", f64::from(times));
            let config = Config::parse(&changed, "c.toml".as_ref()).unwrap();
            prop_assert_eq!(config.analysis.usage_profile["incremental-backup/backup"], f64::from(times));
            prop_assert!(text.lines().all(|line| changed.contains(line)));
        }
    }
}
