//! The service's log: JSON lines into lines for people.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

/// Where the writer of the log puts what is no field of its own.
const NAMED: [&str; 7] = ["timestamp", "level", "message", "fields", "target", "span", "spans"];

/// One line of the log: local time, level, message, fields. What is no JSON object is shown as it is.
pub fn line(text: &str, zone: &TimeZone) -> String {
    let Ok(Value::Object(line)) = serde_json::from_str::<Value>(text) else { return harmless(text) };
    let fields = match line.get("fields") {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let word = |key: &str| fields.get(key).or_else(|| line.get(key)).and_then(Value::as_str);
    let mut shown = format!(
        "{} {:<5} {}",
        time(word("timestamp"), zone),
        word("level").unwrap_or("-"),
        word("message").unwrap_or("")
    );
    let own = line.iter().filter(|(key, _)| !NAMED.contains(&key.as_str()));
    let spans =
        line.get("spans").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let in_spans = spans.flatten().filter(|(key, _)| *key != "name");
    let inner = fields.iter().filter(|(key, _)| *key != "message");
    for (key, value) in inner.chain(own).chain(in_spans) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        write!(shown, " {key}={value}").expect("a string takes any text");
    }
    harmless(shown.trim_end())
}

fn time(text: Option<&str>, zone: &TimeZone) -> String {
    match text.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => text.unwrap_or("-").to_owned(),
    }
}

/// A path may hold what moves a terminal's cursor, or a line's end: both are shown, not done.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        line(text, &TimeZone::UTC)
    }

    #[test]
    fn a_line_of_the_service_is_time_level_message_and_fields() {
        let text = r#"{"timestamp":"2026-11-20T12:00:01.234567Z","level":"INFO","fields":{"message":"a round began","round":7,"of":"smb nfs"},"target":"longhaul_service::runner","span":{"name":"x"},"spans":[{"name":"x","day":3}]}"#;
        assert_eq!(shown(text), "2026-11-20 12:00:01 INFO  a round began of=smb nfs round=7 day=3");
        let flat = r#"{"timestamp":"2026-11-20T12:00:01Z","level":"WARN","message":"late","seconds":1.5}"#;
        assert_eq!(shown(flat), "2026-11-20 12:00:01 WARN  late seconds=1.5");
    }

    #[test]
    fn what_is_no_line_of_the_service_is_shown_as_it_is() {
        for text in ["thread 'main' panicked", "[1,2]", "{\"half", ""] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("{}"), "- -");
    }

    #[test]
    fn nothing_in_a_line_moves_the_cursor() {
        let text = "{\"level\":\"INFO\",\"message\":\"a\\u001b[2Jb\\nc\"}";
        assert!(shown(text).ends_with("a\\u{1b}[2Jb\\nc"), "{}", shown(text));
        assert!(!shown("x\u{7}y").chars().any(char::is_control));
    }
}
