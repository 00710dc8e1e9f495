//! The differences between two configurations, setting by setting.

use std::collections::BTreeMap;

use longhaul_service::config::shown_value;
use toml_edit::{DocumentMut, Item, Key, TableLike};

/// Returns one line for each setting that differs: added, removed or changed. Comments and layout are not compared.
///
/// # Errors
///
/// If one of the texts is not TOML.
pub fn differences(old: &str, new: &str) -> Result<Vec<String>, toml_edit::TomlError> {
    let (old, new) = (settings(old)?, settings(new)?);
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let line = |key: &&String| match (old.get(*key), new.get(*key)) {
        (Some(old), Some(new)) if old == new => None,
        (Some(old), Some(new)) => {
            Some(format!("  changed  {key} = {}  (was {})", shown_value(key, new), shown_value(key, old)))
        }
        (Some(old), None) => Some(format!("  removed  {key}  (was {})", shown_value(key, old))),
        (None, new) => new.map(|new| format!("  added    {key} = {}", shown_value(key, new))),
    };
    Ok(keys.iter().filter_map(line).collect())
}

fn settings(text: &str) -> Result<BTreeMap<String, String>, toml_edit::TomlError> {
    let document: DocumentMut = text.parse()?;
    let mut found = BTreeMap::new();
    collect(document.as_table(), "", &mut found);
    Ok(found)
}

fn collect(table: &dyn TableLike, prefix: &str, found: &mut BTreeMap<String, String>) {
    for (key, item) in table.iter() {
        let key = format!("{prefix}{}", Key::new(key));
        match (item, item.as_table_like()) {
            (_, Some(inner)) => collect(inner, &format!("{key}."), found),
            (Item::Value(value), None) => {
                drop(found.insert(key, value.clone().decorated("", "").to_string()))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_differs_is_one_line() {
        let old = "scale = \"quick\" # mine\n[limits]\ncap-seconds = 5\n[targets.smb]\npath = \"/a\"\n";
        let new = "scale = \"large\"\ntargets = { smb = { path = \"/a\" }, \"n.s\" = { path = \"/b\" } }\n";
        assert_eq!(
            differences(old, new).unwrap(),
            [
                "  removed  limits.cap-seconds  (was 5)",
                "  changed  scale = \"large\"  (was \"quick\")",
                "  added    targets.\"n.s\".path = \"/b\"",
            ]
        );
    }

    #[test]
    fn comments_and_layout_are_not_compared() {
        assert!(differences("a = 1\n\n# x\n[b]\nc=2", "b.c =  2 # y\na=1").unwrap().is_empty());
    }

    #[test]
    fn addresses_of_channels_are_not_shown() {
        let new = "[notify.channels.phone]\nurl = \"https://ntfy.sh/secret\"\n";
        assert_eq!(differences("", new).unwrap(), ["  added    notify.channels.phone.url = (not shown)"]);
    }
}
