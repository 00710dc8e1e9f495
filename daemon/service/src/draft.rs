//! A configuration as it is first written: the sample with its comments, and what was chosen set in it.

use std::path::PathBuf;

use longhaul_measure::model::{Role, Scale, Target};
use toml_edit::{DocumentMut, Item, Table, Value, value};

use crate::config::SAMPLE;

/// What a line that may be set begins with.
const MARK: &str = "#: ";

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What is measured.
    pub targets: Vec<Target>,
    /// How large the test data is.
    pub scale: Scale,
    /// Where the results are kept, if not in the platform's folder.
    pub database: Option<PathBuf>,
    /// Other values, as section, key and value.
    pub values: Vec<(&'static str, &'static str, f64)>,
}

/// Why a draft cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// A configuration is UTF-8.
    #[error("the path {} is not UTF-8, which a configuration has to be. Choose or make another folder", .0.to_string_lossy().escape_debug())]
    NotText(PathBuf),
    /// The sample has no such key: this longhaul knows it not.
    #[error("there is no key `{1}` in [{0}] of the configuration")]
    NoSuchKey(&'static str, &'static str),
}

/// Whether the configuration of this longhaul has a key.
pub fn knows(section: &str, key: &str) -> bool {
    shown_at(section, key).is_some()
}

impl Draft {
    /// The file.
    ///
    /// # Errors
    ///
    /// [`DraftError`] for a path that is not UTF-8, and for a key that is not there.
    pub fn text(&self) -> Result<String, DraftError> {
        let mut sections: Vec<(&'static str, &'static str, Value)> =
            vec![("", "scale", self.scale.name().into())];
        if let Some(database) = &self.database {
            sections.push(("", "database", path_text(database)?.into()));
        }
        sections
            .extend(self.values.iter().map(|(section, key, number)| (*section, *key, number_of(*number))));
        let mut lines: Vec<&str> = SAMPLE.lines().collect();
        for (section, key, _) in &sections {
            let at = shown_at(section, key).ok_or(DraftError::NoSuchKey(section, key))?;
            lines[at] = lines[at].trim_start_matches(MARK);
        }
        // What follows the first target of the sample are examples of targets, and now there are real ones.
        let kept = lines.iter().position(|line| line.starts_with("#: [targets")).unwrap_or(lines.len());
        let text = lines[..kept].join("\n") + "\n";
        let mut document: DocumentMut = text.parse().expect("the sample is valid, with any of its keys set");
        for (section, key, value) in sections {
            set(&mut document, (section, key), value);
        }
        add_targets(&mut document, &self.targets)?;
        Ok(document.to_string())
    }
}

/// The line of the sample in which a key is shown.
fn shown_at(section: &str, key: &str) -> Option<usize> {
    let mut within = "";
    SAMPLE.lines().position(|line| {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            within = name;
        }
        let shown = line.strip_prefix(MARK).and_then(|line| line.split_once(" = "));
        within == section && shown.is_some_and(|(name, _)| name == key)
    })
}

/// Puts a value in the place of the one that is there; the comments around it stay.
fn set(document: &mut DocumentMut, (section, key): (&str, &str), value: Value) {
    let table = match section {
        "" => document.as_table_mut(),
        section => document[section].as_table_mut().expect("the sections of the sample are tables"),
    };
    table[key] = Item::Value(value);
}

/// A number as a person would write it; the keys of whole numbers take no other.
fn number_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { (number as i64).into() } else { number.into() }
}

fn add_targets(document: &mut DocumentMut, targets: &[Target]) -> Result<(), DraftError> {
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
    path.to_str().ok_or_else(|| DraftError::NotText(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;

    fn target(name: &str, path: &str) -> Target {
        Target { name: name.parse().unwrap(), path: path.into(), role: Role::Share }
    }

    fn draft(targets: Vec<Target>) -> Draft {
        let values = vec![("limits", "megabytes-per-day", 12_500.0)];
        Draft { targets, scale: Scale::Quick, database: None, values }
    }

    fn read(draft: &Draft) -> Config {
        let text = draft.text().unwrap();
        Config::parse(&text, Path::new("c.toml")).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn what_was_chosen_is_read_back_and_everything_else_is_the_default() {
        let mut baseline = target("local.1", "/home/ada/a b \"c\"\n🐚");
        baseline.role = Role::Baseline;
        let draft = Draft {
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
    fn the_comments_stay_and_each_value_stands_below_its_own() {
        let text = draft(vec![target("smb", "/Volumes/media"), target("nfs", "/mnt/media")]).text().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let at = |line: &str| {
            lines.iter().position(|found| *found == line).unwrap_or_else(|| panic!("{line}\n{text}"))
        };
        assert!(lines[at("megabytes-per-day = 12500") - 1].contains("within 24 hours"));
        assert!(lines[at("scale = \"quick\"") - 1].starts_with("# "));
        assert!(lines[at("[targets.smb]") - 1].contains("longhaul writes only below"), "{text}");
        assert!(at("[targets.nfs]") > at("[targets.smb]") && !text.contains("#: [targets"));
        assert!(text.contains("#: cap-seconds = 900"), "what was not chosen is shown still");
    }

    #[test]
    fn a_path_that_is_not_text_is_refused_and_so_is_an_unknown_key() {
        use std::os::unix::ffi::OsStringExt;
        let mut strange = target("smb", "/x");
        strange.path = std::ffi::OsString::from_vec(b"/\xff\n".to_vec()).into();
        let said = draft(vec![strange]).text().unwrap_err().to_string();
        assert!(said.contains("not UTF-8") && !said.contains('\n'), "{said}");
        let unknown = Draft { values: vec![("limits", "moon-phase", 1.0)], ..draft(vec![]) };
        assert!(unknown.text().unwrap_err().to_string().contains("`moon-phase`"));
        assert!(
            knows("limits", "megabytes-per-day")
                && !knows("", "megabytes-per-day")
                && !knows("limits", "scale")
        );
    }

    #[test]
    fn a_key_that_takes_fractions_takes_them() {
        let draft = Draft { values: vec![("limits", "free-floor-percent", 7.5)], ..draft(vec![]) };
        assert_eq!(read(&draft).settings.free_floor, 0.075);
    }

    proptest! {
        #[test]
        fn any_path_that_is_text_is_read_back(path in "\\PC{0,30}|[ -~\\n\\t\\\\\"'#]{0,30}") {
            let target = target("x", &format!("/{path}"));
            prop_assert_eq!(read(&draft(vec![target.clone()])).targets, [target]);
        }
    }
}
