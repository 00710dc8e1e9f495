//! Writes a new configuration file: the commented sample, with the user's choices filled in.

use std::path::PathBuf;

use longhaul_model::{Role, Scale, Target};
use toml_edit::{DocumentMut, Item, Table, Value, value};

use crate::config::SAMPLE_CONFIG;

/// Prefix of the sample's lines that show a setting and may be uncommented.
const COMMENT_MARK: &str = "#: ";

/// The values chosen for a new configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigDraft {
    /// The targets to measure.
    pub targets: Vec<Target>,
    /// The size of the test data.
    pub scale: Scale,
    /// Path of the database. `None`: the default path in the platform's data folder.
    pub database: Option<PathBuf>,
    /// Other settings to write, as section, key and value.
    pub overrides: Vec<(&'static str, &'static str, f64)>,
}

/// The reason why a configuration draft cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// A path is not valid UTF-8, as TOML requires.
    #[error("the path {} is not UTF-8, as a configuration file requires. Choose or create another folder", .0.to_string_lossy().escape_debug())]
    NotUtf8(PathBuf),
    /// The sample configuration of this version has no such key.
    #[error("there is no key `{1}` in [{0}] of the configuration")]
    NoSuchKey(&'static str, &'static str),
}

/// Returns whether the sample configuration of this version has a key.
pub fn has_key(section: &str, key: &str) -> bool {
    line_of_key(section, key).is_some()
}

impl ConfigDraft {
    /// Returns the text of the configuration file.
    ///
    /// # Errors
    ///
    /// [`DraftError`] for a path that is not UTF-8, and for a key that the sample does not have.
    pub fn to_toml(&self) -> Result<String, DraftError> {
        let mut sections: Vec<(&'static str, &'static str, Value)> =
            vec![("", "scale", self.scale.name().into())];
        if let Some(database) = &self.database {
            sections.push(("", "database", path_text(database)?.into()));
        }
        sections.extend(
            self.overrides.iter().map(|(section, key, number)| (*section, *key, number_value(*number))),
        );
        let mut lines: Vec<&str> = SAMPLE_CONFIG.lines().collect();
        for (section, key, _) in &sections {
            let at = line_of_key(section, key).ok_or(DraftError::NoSuchKey(section, key))?;
            lines[at] = lines[at].trim_start_matches(COMMENT_MARK);
        }
        // The lines from the first sample target on are example targets; the real targets replace them.
        let kept = lines.iter().position(|line| line.starts_with("#: [targets")).unwrap_or(lines.len());
        let text = lines[..kept].join("\n") + "\n";
        let mut document: DocumentMut = text.parse().expect("the sample is valid, with any of its keys set");
        for (section, key, value) in sections {
            set_value(&mut document, section, key, value);
        }
        add_targets(&mut document, &self.targets)?;
        Ok(document.to_string())
    }
}

/// Returns the index of the sample's line that shows a key.
fn line_of_key(section: &str, key: &str) -> Option<usize> {
    let mut within = "";
    SAMPLE_CONFIG.lines().position(|line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            within = name;
        }
        let shown = line.strip_prefix(COMMENT_MARK).and_then(|line| line.split_once(" = "));
        within == section && shown.is_some_and(|(name, _)| name == key)
    })
}

/// Replaces the value of a key; the comments around it stay.
fn set_value(document: &mut DocumentMut, section: &str, key: &str, value: Value) {
    let table = match section {
        "" => document.as_table_mut(),
        section => document[section].as_table_mut().expect("the sections of the sample are tables"),
    };
    table[key] = Item::Value(value);
}

/// Converts a number to TOML, whole numbers without a fraction: keys that hold integers accept nothing else.
pub(crate) fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { (number as i64).into() } else { number.into() }
}

fn add_targets(document: &mut DocumentMut, targets: &[Target]) -> Result<(), DraftError> {
    // Moves the sample's last comment in front of the first target's table: as trailing
    // text, it would end up below all of them.
    let comment = document.trailing().as_str().unwrap_or_default().to_owned();
    document.set_trailing("");
    let mut all = Table::new();
    all.set_implicit(true);
    for (number, target) in targets.iter().enumerate() {
        let mut table = Table::new();
        table["path"] = value(path_text(&target.path)?);
        match target.role {
            Role::Share => {}
            Role::Baseline => table["role"] = value("baseline"),
        }
        table.decor_mut().set_prefix(if number == 0 { comment.as_str() } else { "\n" });
        all[target.name.as_str()] = Item::Table(table);
    }
    document["targets"] = Item::Table(all);
    Ok(())
}

fn path_text(path: &std::path::Path) -> Result<&str, DraftError> {
    path.to_str().ok_or_else(|| DraftError::NotUtf8(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use longhaul_model::FreeSpaceReserve;

    use crate::config::Config;

    fn target(name: &str, path: &str) -> Target {
        Target { name: name.parse().unwrap(), path: path.into(), role: Role::Share }
    }

    fn draft(targets: Vec<Target>) -> ConfigDraft {
        let values = vec![("limits", "megabytes-per-day", 12_500.0)];
        ConfigDraft { targets, scale: Scale::Quick, database: None, overrides: values }
    }

    fn read(draft: &ConfigDraft) -> Config {
        let text = draft.to_toml().unwrap();
        Config::parse(&text, Path::new("c.toml")).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn chosen_values_are_read_back_and_others_are_default() {
        let mut baseline = target("local.1", "/home/ada/a b \"c\"\n🐚");
        baseline.role = Role::Baseline;
        let draft = ConfigDraft {
            database: Some("/home/ada/x.sqlite".into()),
            ..draft(vec![target("smb", "/Volumes/media"), baseline])
        };
        let mut expected = Config::default();
        expected.limits.bytes_per_day = Some(12_500_000_000);
        expected.scale = Scale::Quick;
        expected.database = draft.database.clone();
        expected.targets = draft.targets.clone();
        expected.targets.sort_by(|a, b| a.name.cmp(&b.name));
        let mut found = read(&draft);
        found.targets.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(found, expected);
    }

    #[test]
    fn comments_stay_above_the_values_that_they_describe() {
        let text =
            draft(vec![target("smb", "/Volumes/media"), target("nfs", "/mnt/media")]).to_toml().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let at = |line: &str| {
            lines.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}\n{text}"))
        };
        assert!(lines[at("megabytes-per-day = 12500") - 1].contains("within 24 hours"));
        assert!(lines[at("scale = \"quick\"") - 1].starts_with("# "));
        assert!(lines[at("[targets.smb]") - 1].contains("longhaul writes only below"), "{text}");
        assert!(at("[targets.nfs]") > at("[targets.smb]") && !text.contains("#: [targets"));
        assert!(text.contains("#: cap-seconds = 900"), "settings that were not chosen stay commented out");
    }

    #[test]
    fn non_utf8_path_and_unknown_key_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        let mut strange = target("smb", "/x");
        strange.path = std::ffi::OsString::from_vec(b"/\xff\n".to_vec()).into();
        let message = draft(vec![strange]).to_toml().unwrap_err().to_string();
        assert!(message.contains("not UTF-8") && !message.contains('\n'), "{message}");
        let unknown = ConfigDraft { overrides: vec![("limits", "moon-phase", 1.0)], ..draft(vec![]) };
        assert!(unknown.to_toml().unwrap_err().to_string().contains("`moon-phase`"));
        assert!(
            has_key("limits", "megabytes-per-day")
                && !has_key("", "megabytes-per-day")
                && !has_key("limits", "scale")
        );
    }

    #[test]
    fn fractional_value_is_written_and_read_back() {
        let draft = ConfigDraft { overrides: vec![("limits", "min-free-percent", 7.5)], ..draft(vec![]) };
        assert_eq!(read(&draft).settings.reserve, FreeSpaceReserve::share(0.075));
    }

    proptest! {
        #[test]
        fn any_utf8_path_is_read_back(path in "\\PC{0,30}|[ -~\\n\\t\\\\\"'#]{0,30}") {
            let target = target("x", &format!("/{path}"));
            prop_assert_eq!(read(&draft(vec![target.clone()])).targets, [target]);
        }
    }
}
