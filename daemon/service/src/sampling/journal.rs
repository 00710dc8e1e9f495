//! What is written down of a target and of the machine, and what differs from the last time. Pure.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_measure::model::Mount;
use serde_json::{Map, Value, json};

/// Facts by name.
type Facts = BTreeMap<String, String>;

/// What a mount is like, without what changes all the time. Users are no part of its source.
pub fn facts_of_mount(mount: &Mount) -> Facts {
    let mut facts: Facts =
        mount.negotiated.iter().map(|(key, value)| (format!("option {key}"), value.clone())).collect();
    facts.insert("protocol".to_owned(), mount.protocol.to_string());
    facts.insert("source".to_owned(), mount.source.clone());
    facts.insert("mounted at".to_owned(), mount.point.to_string_lossy().into_owned());
    facts.insert("read-only".to_owned(), mount.read_only.to_string());
    facts.extend(mount.server.map(|server| ("server".to_owned(), server.to_string())));
    facts
}

/// What differs, each fact with before and after; `null` where it was, or is, not there. `None`: nothing does.
pub fn differences(before: &Facts, after: &Facts) -> Option<Value> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let changed: Map<String, Value> = changed
        .map(|name| (name.clone(), json!({ "before": before.get(name), "after": after.get(name) })))
        .collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_or_changed_is_told_with_before_and_after() {
        let facts = |pairs: &[(&str, &str)]| -> Facts {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let before = facts(&[("mtu", "1500"), ("kernel", "6.1"), ("gone", "x")]);
        let after = facts(&[("mtu", "9000"), ("kernel", "6.1"), ("new", "y")]);
        let expected = json!({
            "gone": { "before": "x", "after": null },
            "mtu": { "before": "1500", "after": "9000" },
            "new": { "before": null, "after": "y" },
        });
        assert_eq!(differences(&before, &after), Some(expected));
        assert_eq!(differences(&after, &after), None);
    }
}
