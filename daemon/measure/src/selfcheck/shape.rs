//! Describes the shape of a tool's output: its keys and the types of its values. Values are never shown, because a
//! value may be a name.

use serde_json::Value;

/// Maximum length of a shape in characters; a longer shape is truncated.
const MAX_SHAPE_CHARS: usize = 600;
/// Maximum length of a key in bytes; a longer word is treated as a value.
const MAX_KEY_BYTES: usize = 40;

/// Returns the shape of JSON output, such as `{Client Info: {RPC Info: {Requests: number}}}`; `None` if the output
/// is not JSON.
pub fn json_shape(output: &[u8]) -> Option<String> {
    let value = serde_json::from_slice(output).ok()?;
    Some(truncate_shape(value_shape(&value)))
}

/// Returns the shape of text output: the number of non-empty lines, and the keys before a colon or an equals sign.
pub fn text_shape(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let mut keys: Vec<&str> = text.lines().filter_map(key_of).collect();
    keys.dedup();
    let keys = if keys.is_empty() { "no keys".to_owned() } else { format!("keys: {}", keys.join(", ")) };
    truncate_shape(format!("{lines} lines, {keys}"))
}

/// Returns the key of a line such as `key: value`, `key = value`, or `key    value` (printed by `pmset -g`).
fn key_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let key = match line.split_once([':', '=']) {
        Some((key, _)) => key,
        None => line.split_once("  ")?.0,
    };
    let key = key.trim().trim_matches('"');
    is_key(key).then_some(key)
}

/// Returns whether a word is a key and can be published. Mount points, server names and addresses contain
/// characters that are not allowed here.
fn is_key(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '#');
    let starts_with_letter = word.starts_with(|c: char| c.is_ascii_alphabetic());
    starts_with_letter && word.len() <= MAX_KEY_BYTES && word.chars().all(is_plain)
}

fn value_shape(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "flag".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(values) => match values.first() {
            None => "empty list".to_owned(),
            Some(first) => format!("list of {} × {}", values.len(), value_shape(first)),
        },
        Value::Object(members) => {
            let (named, hidden): (Vec<_>, Vec<_>) = members.iter().partition(|(key, _)| is_key(key));
            let named = named.into_iter().map(|(key, value)| format!("{key}: {}", value_shape(value)));
            // Keys that are mount points or numbers are only counted; the value of the first shows their shape.
            let hidden =
                hidden.first().map(|(_, value)| format!("{} × *: {}", hidden.len(), value_shape(value)));
            format!("{{{}}}", named.chain(hidden).collect::<Vec<_>>().join(", "))
        }
    }
}

fn truncate_shape(text: String) -> String {
    if text.chars().count() <= MAX_SHAPE_CHARS {
        return text;
    }
    text.chars().take(MAX_SHAPE_CHARS).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_shape_contains_only_keys_and_types() {
        let sessions =
            br#"{"\/Volumes\/media": {"session_info": {"mc_on": "yes", "servers": ["nas"], "id": 3}}}"#;
        assert_eq!(
            json_shape(sessions).unwrap(),
            "{1 × *: {session_info: {id: number, mc_on: text, servers: list of 1 × text}}}"
        );
        assert_eq!(json_shape(b"{}").unwrap(), "{}");
        assert_eq!(json_shape(b"not JSON"), None);
    }

    #[test]
    fn text_shape_contains_only_keys() {
        let settings = b"System-wide power settings:\nCurrently in use:\n lowpowermode         1\n sleep  1 (sleep prevented by anna)\n";
        assert_eq!(
            text_shape(settings),
            "4 lines, keys: System-wide power settings, Currently in use, lowpowermode, sleep"
        );
        assert_eq!(text_shape(b"route to: default\n192.168.1.1: x\n"), "2 lines, keys: route to");
        assert_eq!(text_shape(b""), "0 lines, no keys");
    }

    proptest! {
        #[test]
        fn shape_of_any_output_is_short(output: Vec<u8>) {
            prop_assert!(text_shape(&output).chars().count() <= MAX_SHAPE_CHARS + 1);
            prop_assert!(json_shape(&output).is_none_or(|shape| shape.chars().count() <= MAX_SHAPE_CHARS + 1));
        }
    }
}
