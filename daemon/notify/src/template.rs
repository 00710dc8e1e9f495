//! The form of a message for a webhook: JSON with placeholders in its strings.
//!
//! A template is parsed before anything is filled in, so no text of a message can change the structure.

use longhaul_model::Priority;
use serde_json::{Map, Value, json};

use crate::http_service::HttpService;
use crate::message::{Message, shortened};

/// Names of the placeholders, which are written as `{{title}}`.
pub const PLACEHOLDERS: [&str; 7] = ["title", "text", "kind", "priority", "time", "markdown", "html"];
/// Longest text in bytes that Discord takes: 2,000 characters with the title.
const DISCORD_TEXT_BYTES: usize = 1_700;
/// Longest text in bytes for other services. Slack cuts at 40,000 characters; ntfy takes 4,096 bytes.
const TEXT_BYTES: usize = 3_500;

/// A valid template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(Value);

/// The reason why a template is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not JSON.
    #[error("it is not valid JSON: {0}")]
    NotJson(String),
    /// A string contains an unknown placeholder.
    #[error("`{key}` contains the unknown placeholder `{{{{{name}}}}}`; known are {}", PLACEHOLDERS.join(", "))]
    UnknownPlaceholder {
        /// Key of the string in the template, such as `blocks[0].text`.
        key: String,
        /// Name of the placeholder.
        name: String,
    },
    /// A placeholder is not closed.
    #[error("`{key}` contains `{{{{` without `}}}}`")]
    NotClosed {
        /// Key of the string in the template.
        key: String,
    },
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// [`TemplateError`], with the key of the wrong string.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| TemplateError::NotJson(error.to_string()))?;
        check(&value, "")?;
        Ok(Self(value))
    }

    /// Returns the template of a service.
    pub fn of(service: HttpService) -> Self {
        let title_and_text = json!({"title": "{{title}}", "message": "{{text}}"});
        Self(match service {
            HttpService::Slack => json!({"text": "{{title}}\n{{text}}"}),
            HttpService::Discord => {
                json!({"content": "**{{title}}**\n{{text}}", "allowed_mentions": {"parse": []}})
            }
            HttpService::Gotify => {
                json!({"title": "{{title}}", "message": "{{text}}", "priority": "{{priority}}"})
            }
            HttpService::Ntfy | HttpService::HomeAssistant => title_and_text,
            HttpService::Webhook => json!({
                "title": "{{title}}", "text": "{{text}}", "kind": "{{kind}}", "priority": "{{priority}}",
                "time": "{{time}}",
            }),
        })
    }

    /// Returns the body of a request for a message.
    pub fn fill(&self, message: &Message, service: HttpService) -> Value {
        fill(&self.0, &Values { message, service })
    }
}

/// Returns the level of a priority, from 1 to 10 as in Gotify.
const fn gotify_level(priority: Priority) -> u8 {
    match priority {
        Priority::Low => 2,
        Priority::Normal => 5,
        Priority::High => 8,
    }
}

struct Values<'a> {
    message: &'a Message,
    service: HttpService,
}

impl Values<'_> {
    fn text(&self) -> String {
        let most = if self.service == HttpService::Discord { DISCORD_TEXT_BYTES } else { TEXT_BYTES };
        shortened(&self.message.text, most)
    }

    fn value(&self, name: &str) -> String {
        let message = self.message;
        let report = message.report.as_ref();
        match name {
            "title" => message.title.clone(),
            "text" => self.text(),
            "kind" => message.kind.name().to_owned(),
            "priority" => gotify_level(message.kind.priority()).to_string(),
            "time" => (message.at.as_us() / 1_000_000).to_string(),
            "markdown" => report.map_or_else(|| message.text.clone(), |report| report.markdown.clone()),
            "html" => report.map_or_else(String::new, |report| report.html.clone()),
            _ => String::new(),
        }
    }
}

fn fill(value: &Value, values: &Values<'_>) -> Value {
    match value {
        // A number alone stays a number, because Gotify refuses a text.
        Value::String(text) if text == "{{priority}}" => {
            json!(gotify_level(values.message.kind.priority()))
        }
        Value::String(text) => Value::String(fill_text(text, values)),
        Value::Array(items) => items.iter().map(|item| fill(item, values)).collect(),
        Value::Object(entries) => {
            let filled = entries.iter().map(|(key, value)| (key.clone(), fill(value, values)));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn fill_text(text: &str, values: &Values<'_>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        filled = filled + before + &values.value(name.trim());
        rest = after;
    }
    filled + rest
}

fn check(value: &Value, key: &str) -> Result<(), TemplateError> {
    match value {
        Value::String(text) => check_text(text, key),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| check(item, &format!("{key}[{index}]")))
        }
        Value::Object(entries) => entries.iter().try_for_each(|(name, value)| {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            check(value, &key)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn check_text(text: &str, key: &str) -> Result<(), TemplateError> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            return Err(TemplateError::NotClosed { key: key.to_owned() });
        };
        if !PLACEHOLDERS.contains(&name.trim()) {
            return Err(TemplateError::UnknownPlaceholder {
                key: key.to_owned(),
                name: name.trim().to_owned(),
            });
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use longhaul_model::{NotificationKind, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn message(text: &str) -> Message {
        Message {
            kind: NotificationKind::TargetDown,
            at: Timestamp::from_us(7_000_000),
            title: "smb does not respond".to_owned(),
            text: text.to_owned(),
            report: None,
        }
    }

    #[test]
    fn placeholders_are_filled_in_nested_strings() {
        let template =
            r#"{"a": ["{{title}}", {"b": "{{ kind }} at {{time}}"}], "p": "{{priority}}", "n": 1}"#;
        let body = Template::parse(template).unwrap().fill(&message(""), HttpService::Webhook);
        let expected = json!({"a": ["smb does not respond", {"b": "target-down at 7"}], "p": 8, "n": 1});
        assert_eq!(body, expected);
    }

    #[test]
    fn invalid_template_is_named_with_its_key() {
        let error = |text: &str| Template::parse(text).unwrap_err().to_string();
        assert!(error(r#"{"blocks": [{"text": "{{headline}}"}]}"#).starts_with("`blocks[0].text` contains"));
        assert_eq!(error(r#"{"a": "{{title"}"#), "`a` contains `{{` without `}}`");
        assert!(error("{\"a\": ").starts_with("it is not valid JSON"));
    }

    #[test]
    fn templates_of_all_services_are_valid() {
        for (name, service) in HttpService::NAMES {
            let template = Template::of(*service);
            assert_eq!(check(&template.0, ""), Ok(()), "{name}");
            assert!(template.fill(&message("x"), *service).to_string().contains("smb does not respond"));
        }
    }

    #[test]
    fn text_is_cut_to_what_a_service_takes() {
        let long = message(&"ä".repeat(5_000));
        let body = Template::of(HttpService::Discord).fill(&long, HttpService::Discord);
        let content = body["content"].as_str().unwrap();
        assert!(content.chars().count() < 2_000 && content.ends_with(" …"));
    }

    proptest! {
        #[test]
        fn no_text_changes_the_structure(text in any::<String>()) {
            let body = Template::of(HttpService::Webhook).fill(&message(&text), HttpService::Webhook);
            let read: Value = serde_json::from_str(&body.to_string()).unwrap();
            prop_assert_eq!(read.as_object().unwrap().len(), 5);
            let expected = shortened(&text, TEXT_BYTES);
            prop_assert_eq!(read["text"].as_str(), Some(expected.as_str()));
        }

        #[test]
        fn any_template_is_parsed_or_refused(text in any::<String>()) {
            let quoted = json!({"a": text}).to_string();
            if let Ok(template) = Template::parse(&quoted) {
                let _ = template.fill(&message("x"), HttpService::Webhook);
            }
        }
    }
}
