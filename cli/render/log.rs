//! Converts the service's log from JSON lines to readable lines.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use longhaul_model::Timestamp;
use longhaul_view::render::terminal::visible;
use longhaul_view::time::timestamp;
use serde_json::{Map, Value};

/// Fields that the log writer adds itself.
const STANDARD_FIELDS: [&str; 7] = ["timestamp", "level", "message", "fields", "target", "span", "spans"];

/// Renders a line of the log: local time, level, message, fields. A line that is not a JSON object is returned
/// unchanged, except for control characters.
pub fn line(text: &str, zone: &TimeZone) -> String {
    let Ok(Value::Object(line)) = serde_json::from_str::<Value>(text) else { return visible(text) };
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
    let own = line.iter().filter(|(key, _)| !STANDARD_FIELDS.contains(&key.as_str()));
    let spans =
        line.get("spans").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    let in_spans = spans.flatten().filter(|(key, _)| *key != "name");
    let inner = fields.iter().filter(|(key, _)| *key != "message");
    for (key, value) in inner.chain(own).chain(in_spans) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        write!(shown, " {key}={value}").expect("a string takes any text");
    }
    visible(shown.trim_end())
}

fn time(text: Option<&str>, zone: &TimeZone) -> String {
    match text.and_then(|text| text.parse::<jiff::Timestamp>().ok()) {
        Some(time) => timestamp(Timestamp::from_us(time.as_microsecond()), zone),
        None => text.unwrap_or("-").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        line(text, &TimeZone::UTC)
    }

    #[test]
    fn log_line_shows_time_level_message_and_fields() {
        let text = r#"{"timestamp":"2026-11-20T12:00:01.234567Z","level":"INFO","fields":{"message":"a round began","round":7,"of":"smb nfs"},"target":"longhaul_service::runner","span":{"name":"x"},"spans":[{"name":"x","day":3}]}"#;
        assert_eq!(shown(text), "2026-11-20 12:00:01 INFO  a round began of=smb nfs round=7 day=3");
        let flat = r#"{"timestamp":"2026-11-20T12:00:01Z","level":"WARN","message":"late","seconds":1.5}"#;
        assert_eq!(shown(flat), "2026-11-20 12:00:01 WARN  late seconds=1.5");
    }

    #[test]
    fn unknown_lines_are_shown_unchanged() {
        for text in ["thread 'main' panicked", "[1,2]", "{\"half", ""] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("{}"), "- -");
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "{\"level\":\"INFO\",\"message\":\"a\\u001b[2Jb\\nc\"}";
        assert!(shown(text).ends_with("a\\u{1b}[2Jb\\nc"), "{}", shown(text));
        assert!(!shown("x\u{7}y").chars().any(char::is_control));
    }
}
