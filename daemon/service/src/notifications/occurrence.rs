//! Something that has happened once, with what is stored about it.

use longhaul_model::NotificationEvent;
use longhaul_store::StateChange;

/// An event to report, with the key that makes it unique and the changes of the stored state.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// Key of the notification.
    pub key: String,
    /// The event. `None`: only the state changes.
    pub event: Option<NotificationEvent>,
    /// Change of the stored state that belongs to it.
    pub state: StateChange,
}

impl Occurrence {
    /// Creates an event that is reported, after which `state_key` has this value.
    pub(super) fn reported(event: NotificationEvent, state_key: &str, value: String) -> Self {
        let key = format!("{}:{state_key}:{value}", event.kind().name());
        let state = StateChange { key: state_key.to_owned(), value: Some(value) };
        Self { key, event: Some(event), state }
    }

    /// Creates an event that is reported, after which `state_key` is removed. `since` makes it unique.
    pub(super) fn ended(event: NotificationEvent, state_key: &str, since: &str) -> Self {
        let key = format!("{}:{state_key}:{since}", event.kind().name());
        Self { key, event: Some(event), state: StateChange { key: state_key.to_owned(), value: None } }
    }

    /// Creates a change of state that is not reported.
    pub(super) fn silent(state_key: &str, value: Option<String>) -> Self {
        let state = StateChange { key: state_key.to_owned(), value };
        Self { key: String::new(), event: None, state }
    }
}
