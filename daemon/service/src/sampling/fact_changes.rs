//! Facts about targets and the machine that are stored, and the changes between two sets of facts. Pure.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_model::Mount;
use serde_json::{Map, Value, json};

/// Values of facts, by name.
type Facts = BTreeMap<String, String>;

/// Name of the fact that is the address of the server.
const SERVER: &str = "server";

/// Returns the facts of a mount: negotiated options, protocol, source, mount point, read-only and server.
/// Values that change all the time, such as free space, are left out.
pub fn mount_facts(mount: &Mount) -> Facts {
    let mut facts: Facts =
        mount.negotiated.iter().map(|(key, value)| (format!("option {key}"), value.clone())).collect();
    facts.insert("protocol".to_owned(), mount.protocol.to_string());
    facts.insert("source".to_owned(), mount.source.clone());
    facts.insert("mount point".to_owned(), mount.point.to_string_lossy().into_owned());
    facts.insert("read-only".to_owned(), mount.read_only.to_string());
    facts.extend(mount.server.map(|server| (SERVER.to_owned(), server.to_string())));
    facts
}

/// Returns facts with the server of the stored ones if they have none. A Mac's mount table has no addresses (xnu
/// bsd/sys/mount.h:110), so that after a start the server is unknown until a worker finds it, which is no change.
pub fn with_known_server(facts: &Facts, stored: &Facts) -> Facts {
    let server = stored.get_key_value(SERVER).map(|(name, server)| (name.clone(), server.clone()));
    // The first of two equal keys is overwritten.
    server.into_iter().chain(facts.clone()).collect()
}

/// Returns the facts that differ, each with `before` and `after`; `null` if the fact
/// was or is missing. `None`: no difference.
pub fn changed_facts(before: &Facts, after: &Facts) -> Option<Value> {
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

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn server_that_is_not_known_yet_is_no_change() {
        let stored = facts(&[("protocol", "SMB"), ("server", "192.0.2.5")]);
        let changed = |now: &[(&str, &str)]| changed_facts(&stored, &with_known_server(&facts(now), &stored));
        assert_eq!(changed(&[("protocol", "SMB")]), None);
        let other = json!({ "server": { "before": "192.0.2.5", "after": "192.0.2.6" } });
        assert_eq!(changed(&[("protocol", "SMB"), ("server", "192.0.2.6")]), Some(other));
    }

    #[test]
    fn added_removed_and_changed_facts_have_before_and_after() {
        let before = facts(&[("mtu", "1500"), ("kernel", "6.1"), ("gone", "x")]);
        let after = facts(&[("mtu", "9000"), ("kernel", "6.1"), ("new", "y")]);
        let expected = json!({
            "gone": { "before": "x", "after": null },
            "mtu": { "before": "1500", "after": "9000" },
            "new": { "before": null, "after": "y" },
        });
        assert_eq!(changed_facts(&before, &after), Some(expected));
        assert_eq!(changed_facts(&after, &after), None);
    }
}
