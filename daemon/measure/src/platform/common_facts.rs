//! Facts about the machine that are collected in the same way on every system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::system_version;
use crate::parse;
use longhaul_model::NetworkLink;

/// Maximum size of a settings file, in bytes. A larger file is ignored.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Returns the facts that are collected in the same way on every system: its version, its network link, and
/// the contents of settings files.
pub fn common_facts(link: Option<NetworkLink>, files: &[PathBuf]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("system".to_owned(), system_version())]);
    if let Some(NetworkLink { name, kind, mtu, megabits }) = link {
        facts.insert("link".to_owned(), format!("{name} ({})", kind.name()));
        facts.extend(mtu.map(|mtu| ("mtu".to_owned(), mtu.to_string())));
        facts.extend(megabits.map(|speed| ("link-megabits".to_owned(), speed.to_string())));
    }
    for file in files {
        let length = std::fs::metadata(file).map_or(0, |found| found.len());
        let Some(text) = std::fs::read_to_string(file).ok().filter(|_| length <= MAX_SETTINGS_BYTES) else {
            continue;
        };
        let named = |(key, value)| (format!("{} {key}", file.display()), value);
        facts.extend(parse::settings(&text).into_iter().map(named));
    }
    facts
}
