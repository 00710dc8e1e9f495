//! Parsers for named facts, from settings files and from tools that print one fact per line. Secrets and user
//! names are left out, except for a user in the name of a section: `[SERVER:USER]` of nsmb.conf(5).

use std::collections::BTreeMap;

use super::mount_source::without_credentials;

/// Words that mark the name of a setting as private.
const PRIVATE_WORDS: [&str; 5] = ["pass", "user", "secret", "token", "credential"];

fn is_private(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PRIVATE_WORDS.iter().any(|word| name.contains(word))
}

/// Parses a settings file as `nsmb.conf`(5), `nfs.conf`(5 on macOS and on Linux) and `nfsmount.conf`(5)
/// describe it: `[section]` lines, `key = value` lines, comments after `#` or `;` at the start of a line.
/// Names become `section.key`; of several entries with one name the last wins.
pub fn settings(text: &str) -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim().to_owned();
        } else if !line.starts_with(['#', ';'])
            && let Some((key, value)) = line.split_once('=')
            && !is_private(key)
        {
            let key = key.trim();
            let name = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
            found.insert(name, value.trim().to_owned());
        }
    }
    found
}

/// Parses the output of a tool that prints one `name: value` per line, as `sysctl`(8) does.
pub fn colon_separated(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    text.lines().filter_map(pair).filter(|(name, _)| !name.is_empty() && !is_private(name)).collect()
}

/// Returns the Time Machine destinations that `tmutil destinationinfo` prints (tmutil(8)): the kind and the
/// URL of each, without its user. `None` if the text is not that output, for example if the tool reports that
/// it requires Full Disk Access (on standard error, with exit code 77 or 80).
pub fn tmutil_destinations(text: &str) -> Option<Vec<String>> {
    let value = |line: &str, name: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    let mut destinations = Vec::new();
    let mut kind = String::new();
    for line in text.lines() {
        if let Some(found) = value(line, "Kind") {
            kind = found;
            destinations.push(kind.clone());
        } else if let (Some(url), Some(last)) = (value(line, "URL"), destinations.last_mut()) {
            *last = format!("{kind} {}", without_credentials(&url));
        }
    }
    let is_none = text.contains("No destinations configured");
    (is_none || !destinations.is_empty()).then_some(destinations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_are_read_by_section_and_secrets_are_not() {
        let text = "# a comment\nnfs.client.mount.options=vers=4,rsize=131072\n[default]\n signing_required = yes\n; more\n\
            [NAS:SHARE]\npassword=geheim\nsoft=no\nnonsense\n";
        let expected = [
            ("NAS:SHARE.soft", "no"),
            ("default.signing_required", "yes"),
            ("nfs.client.mount.options", "vers=4,rsize=131072"),
        ];
        let found = settings(text);
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn a_destination_is_read_without_its_user() {
        // Constructed from the description in tmutil(8), not captured.
        let text = "====================================================\nName          : TimeMachine\nKind          : Network\n\
            URL           : smb://ada:x@nas._smb._tcp.local/TimeMachine\nID            : 1B2C\n> ==========\nName : Disk\n\
            Kind : Local\nMount Point : /Volumes/Disk\n";
        let found = tmutil_destinations(text).unwrap();
        assert_eq!(found, ["Network smb://nas._smb._tcp.local/TimeMachine", "Local"]);
        assert_eq!(tmutil_destinations(""), None, "a refusal does not mean that there is no destination");
    }

    #[test]
    fn one_fact_is_read_per_line() {
        let found = colon_separated("net.inet.tcp.delayed_ack: 3\nbroken\n: nothing\nkern.user.name: ada\n");
        assert_eq!(found, [("net.inet.tcp.delayed_ack".to_owned(), "3".to_owned())].into());
    }

    proptest! {
        #[test]
        fn private_settings_are_left_out(text in "(\\PC{0,20}(=|:|\n|\\[|\\])){0,20}password *= *geheim\n") {
            prop_assert!(settings(&text).keys().all(|name| !name.split('.').next_back().unwrap_or("").contains("pass")));
            colon_separated(&text);
            tmutil_destinations(&text);
        }
    }
}
