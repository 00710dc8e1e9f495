//! The shape of what a tool prints: its keys and the kinds of its values. A value may be a name, so none is shown.

use serde_json::Value;

/// Characters of a shape that are shown.
const LONGEST: usize = 600;
/// The longest word that is taken for a key.
const LONGEST_KEY: usize = 40;

/// The shape of JSON: `{Client Info: {RPC Info: {Requests: number}}}`. `None` if it is no JSON.
pub fn of_json(output: &[u8]) -> Option<String> {
    let value = serde_json::from_slice(output).ok()?;
    Some(shortened(of_value(&value)))
}

/// The shape of text: how many lines, and the words before a colon or an equals sign.
pub fn of_text(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let mut keys: Vec<&str> = text.lines().filter_map(key_of).collect();
    keys.dedup();
    let keys = if keys.is_empty() { "no keys".to_owned() } else { format!("keys: {}", keys.join(", ")) };
    shortened(format!("{lines} lines, {keys}"))
}

/// `key: value`, `key = value`, or `key    value` as `pmset -g` prints it.
fn key_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let key = match line.split_once([':', '=']) {
        Some((key, _)) => key,
        None => line.split_once("  ")?.0,
    };
    let key = key.trim().trim_matches('"');
    is_key(key).then_some(key)
}

/// Whether a word can be published: a mount point, a server or an address has other signs than these.
fn is_key(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '#');
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic());
    begins && word.len() <= LONGEST_KEY && word.chars().all(is_plain)
}

fn of_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "flag".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(values) => match values.first() {
            None => "empty list".to_owned(),
            Some(first) => format!("list of {} × {}", values.len(), of_value(first)),
        },
        Value::Object(members) => {
            let (named, hidden): (Vec<_>, Vec<_>) = members.iter().partition(|(key, _)| is_key(key));
            let named = named.into_iter().map(|(key, value)| format!("{key}: {}", of_value(value)));
            // Keys that are mount points or numbers: one of them stands for all.
            let hidden =
                hidden.first().map(|(_, value)| format!("{} × *: {}", hidden.len(), of_value(value)));
            format!("{{{}}}", named.chain(hidden).collect::<Vec<_>>().join(", "))
        }
    }
}

fn shortened(text: String) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_is_told_by_its_keys_and_kinds_alone() {
        let sessions =
            br#"{"\/Volumes\/media": {"session_info": {"mc_on": "yes", "servers": ["nas"], "id": 3}}}"#;
        assert_eq!(
            of_json(sessions).unwrap(),
            "{1 × *: {session_info: {id: number, mc_on: text, servers: list of 1 × text}}}"
        );
        assert_eq!(of_json(b"{}").unwrap(), "{}");
        assert_eq!(of_json(b"not JSON"), None);
    }

    #[test]
    fn text_is_told_by_its_keys_alone() {
        let settings = b"System-wide power settings:\nCurrently in use:\n lowpowermode         1\n sleep  1 (sleep prevented by anna)\n";
        assert_eq!(
            of_text(settings),
            "4 lines, keys: System-wide power settings, Currently in use, lowpowermode, sleep"
        );
        assert_eq!(of_text(b"route to: default\n192.168.1.1: x\n"), "2 lines, keys: route to");
        assert_eq!(of_text(b""), "0 lines, no keys");
    }

    proptest! {
        #[test]
        fn any_output_has_a_short_shape(output: Vec<u8>) {
            prop_assert!(of_text(&output).chars().count() <= LONGEST + 1);
            prop_assert!(of_json(&output).is_none_or(|shape| shape.chars().count() <= LONGEST + 1));
        }
    }
}
