//! The services that take messages over HTTP.

/// A service that takes messages over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpService {
    /// An ntfy server.
    Ntfy,
    /// Any server that takes JSON.
    Webhook,
    /// An incoming webhook of Slack, or of Mattermost.
    Slack,
    /// A webhook of a Discord channel.
    Discord,
    /// A Gotify server.
    Gotify,
    /// A webhook or a notification action of Home Assistant.
    HomeAssistant,
}

impl HttpService {
    /// Names in the configuration.
    pub const NAMES: &[(&str, Self)] = &[
        ("ntfy", Self::Ntfy),
        ("webhook", Self::Webhook),
        ("slack", Self::Slack),
        ("discord", Self::Discord),
        ("gotify", Self::Gotify),
        ("home-assistant", Self::HomeAssistant),
    ];
}
