//! The `[notify]` section of the configuration file. Secrets are named here, and read when a message is sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Weekday;
use longhaul_model::NotificationKind;
use longhaul_notify::template::Template;
use longhaul_notify::{
    ChannelConfig, Email, Encryption, Heartbeat, HttpService, Receiver, Secret, SecretSource, Webhook, origin,
};
use serde::Deserialize;
use toml::Spanned;

use super::schedule::{parse_minutes, parse_quiet_hours};
use super::telemetry::{parse_absolute_path, parse_keyword};
use super::value::{InvalidValue, in_range};
use crate::notifications::{DigestTime, NotifyConfig, Rules};

/// Weekdays in the configuration.
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];
/// Time between two heartbeats unless the user sets another one.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(300);

/// The `[notify]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileNotify {
    down_minutes: Option<Spanned<u64>>,
    disk_below_percent: Option<Spanned<f64>>,
    quiet_hours: Option<Spanned<String>>,
    messages_per_hour: Option<Spanned<u64>>,
    digest: Option<Spanned<String>>,
    keep_hours: Option<Spanned<u64>>,
    heartbeat_url: Option<Spanned<String>>,
    heartbeat_url_env: Option<Spanned<String>>,
    heartbeat_url_file: Option<Spanned<PathBuf>>,
    heartbeat_minutes: Option<Spanned<u64>>,
    #[serde(default)]
    channels: BTreeMap<Spanned<String>, FileChannel>,
}

/// A channel as written. Which keys it may have depends on its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileChannel {
    kind: Spanned<String>,
    events: Option<Vec<Spanned<String>>>,
    url: Option<Spanned<String>>,
    url_env: Option<Spanned<String>>,
    url_file: Option<Spanned<PathBuf>>,
    token_env: Option<Spanned<String>>,
    token_file: Option<Spanned<PathBuf>>,
    template: Option<Spanned<String>>,
    certificate: Option<Spanned<PathBuf>>,
    server: Option<Spanned<String>>,
    port: Option<Spanned<u16>>,
    encryption: Option<Spanned<String>>,
    user: Option<Spanned<String>>,
    password_env: Option<Spanned<String>>,
    password_file: Option<Spanned<PathBuf>>,
    from: Option<Spanned<String>>,
    to: Option<Vec<Spanned<String>>>,
}

impl FileNotify {
    pub(super) fn validate(self) -> Result<NotifyConfig, InvalidValue> {
        let default = Rules::default();
        let minutes = |value| Ok(in_range(value, "down-minutes", 0..=1440)?.map(|found| found * 60));
        let rules = Rules {
            down_after: minutes(self.down_minutes)?.map_or(default.down_after, Duration::from_secs),
            disk_below: in_range(self.disk_below_percent, "disk-below-percent", 0.0..=90.0)?
                .map_or(default.disk_below, |percent| percent / 100.0),
            quiet_hours: self.quiet_hours.map(parse_quiet_hours).transpose()?,
            messages_per_hour: in_range(self.messages_per_hour, "messages-per-hour", 1..=1000)?
                .map_or(default.messages_per_hour, |count| count as usize),
            digest: self.digest.map(parse_digest).transpose()?,
            retention: in_range(self.keep_hours, "keep-hours", 1..=8760)?
                .map_or(default.retention, |hours| Duration::from_secs(hours * 3600)),
        };
        let url = Source {
            key: "heartbeat-url",
            literal: self.heartbeat_url,
            variable: self.heartbeat_url_env,
            file: self.heartbeat_url_file,
        };
        let interval = in_range(self.heartbeat_minutes, "heartbeat-minutes", 1..=1440)?;
        let interval = interval.map_or(HEARTBEAT_INTERVAL, |minutes| Duration::from_secs(minutes * 60));
        let channels = self.channels.into_iter().map(|(name, channel)| channel.validate(name));
        Ok(NotifyConfig {
            channels: channels.collect::<Result<_, _>>()?,
            heartbeat: url.parse()?.map(|url| Heartbeat { url, interval }),
            rules,
        })
    }
}

impl FileChannel {
    fn validate(self, name: Spanned<String>) -> Result<ChannelConfig, InvalidValue> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.get_ref().is_empty() || name.get_ref().len() > 32 || !name.get_ref().chars().all(is_allowed) {
            let message = "the name of a channel has 1 to 32 letters, digits, `.`, `_` or `-`";
            return Err(InvalidValue::new(name.span().start, message));
        }
        self.refuse_foreign_keys()?;
        let kinds = match &self.events {
            None => NotificationKind::ALL.to_vec(),
            Some(events) => events.iter().map(parse_event).collect::<Result<_, _>>()?,
        };
        let receiver = match self.kind.get_ref().as_str() {
            "email" => Receiver::Email(Box::new(self.email()?)),
            "desktop" => Receiver::Desktop,
            _ => Receiver::Webhook(Box::new(self.webhook()?)),
        };
        Ok(ChannelConfig { name: name.into_inner(), receiver, kinds })
    }

    /// Refuses keys that the kind of the channel does not have, because they would have no effect.
    fn refuse_foreign_keys(&self) -> Result<(), InvalidValue> {
        let kind = self.kind.get_ref().as_str();
        let is_known =
            matches!(kind, "email" | "desktop") || HttpService::NAMES.iter().any(|(name, _)| *name == kind);
        if !is_known {
            let names: Vec<&str> = HttpService::NAMES.iter().map(|(name, _)| *name).collect();
            let message = format!("`kind` must be one of {}, email, desktop", names.join(", "));
            return Err(InvalidValue::new(self.kind.span().start, message));
        }
        let (is_http, is_email) = (!matches!(kind, "email" | "desktop"), kind == "email");
        let keys = [
            ("url", is_http, offset(&self.url)),
            ("url-env", is_http, offset(&self.url_env)),
            ("url-file", is_http, offset(&self.url_file)),
            ("token-env", is_http, offset(&self.token_env)),
            ("token-file", is_http, offset(&self.token_file)),
            ("template", is_http && kind != "ntfy", offset(&self.template)),
            ("certificate", is_http || is_email, offset(&self.certificate)),
            ("server", is_email, offset(&self.server)),
            ("port", is_email, offset(&self.port)),
            ("encryption", is_email, offset(&self.encryption)),
            ("user", is_email, offset(&self.user)),
            ("password-env", is_email, offset(&self.password_env)),
            ("password-file", is_email, offset(&self.password_file)),
            ("from", is_email, offset(&self.from)),
            ("to", is_email, self.to.as_ref().map(|_| self.kind.span().start)),
        ];
        match keys.iter().find(|(_, is_allowed, offset)| !is_allowed && offset.is_some()) {
            Some((key, _, Some(offset))) => {
                Err(InvalidValue::new(*offset, format!("a channel of kind `{kind}` has no `{key}`")))
            }
            _ => Ok(()),
        }
    }

    fn webhook(self) -> Result<Webhook, InvalidValue> {
        let service = parse_keyword(Some(self.kind.clone()), "kind", HttpService::NAMES)?;
        let url = Source { key: "url", literal: self.url, variable: self.url_env, file: self.url_file };
        let token = Source { key: "token", literal: None, variable: self.token_env, file: self.token_file };
        Ok(Webhook {
            service: service.unwrap_or(HttpService::Webhook),
            url: url.parse()?.ok_or_else(|| missing(&self.kind, "url"))?,
            token: token.parse()?,
            template: self.template.map(parse_template).transpose()?,
            certificate: self.certificate.map(|path| parse_absolute_path(path, "certificate")).transpose()?,
        })
    }

    fn email(self) -> Result<Email, InvalidValue> {
        let encryption = parse_keyword(self.encryption, "encryption", Encryption::NAMES)?.unwrap_or_default();
        let password =
            Source { key: "password", literal: None, variable: self.password_env, file: self.password_file };
        let server = self.server.ok_or_else(|| missing(&self.kind, "server"))?.into_inner();
        let to = self.to.filter(|to| !to.is_empty()).ok_or_else(|| missing(&self.kind, "to"))?;
        let from = self.from.ok_or_else(|| missing(&self.kind, "from"))?;
        let (user, password) = (self.user, password.parse()?);
        if user.is_some() != password.is_some() {
            let message = "`user` and `password-file` or `password-env` belong together";
            return Err(InvalidValue::new(self.kind.span().start, message));
        }
        if password.is_some() && encryption == Encryption::None {
            let message = "a password is sent only over an encrypted connection: set `encryption` to \
                           \"starttls\" or \"tls\"";
            return Err(InvalidValue::new(self.kind.span().start, message));
        }
        Ok(Email {
            server,
            port: self.port.map_or(encryption.default_port(), Spanned::into_inner),
            encryption,
            user: user.map(Spanned::into_inner),
            password,
            from: parse_address(&from, "from")?,
            to: to.iter().map(|to| parse_address(to, "to")).collect::<Result<_, _>>()?,
            certificate: self.certificate.map(|path| parse_absolute_path(path, "certificate")).transpose()?,
        })
    }
}

/// The three ways to give an address, or the two ways to give a secret.
pub(super) struct Source {
    pub(super) key: &'static str,
    pub(super) literal: Option<Spanned<String>>,
    pub(super) variable: Option<Spanned<String>>,
    pub(super) file: Option<Spanned<PathBuf>>,
}

impl Source {
    pub(super) fn parse(self) -> Result<Option<SecretSource>, InvalidValue> {
        let key = self.key;
        let offsets = [offset(&self.literal), offset(&self.variable), offset(&self.file)];
        if let [_, second, ..] = offsets.into_iter().flatten().collect::<Vec<_>>()[..] {
            let message = format!("give only one of `{key}`, `{key}-env` and `{key}-file`");
            return Err(InvalidValue::new(second, message));
        }
        Ok(match (self.literal, self.variable, self.file) {
            (Some(text), _, _) => Some(parse_url(key, &text)?),
            (_, Some(name), _) => Some(SecretSource::Variable { key, name: name.into_inner() }),
            (_, _, Some(path)) => Some(SecretSource::File { key, path: parse_absolute_path(path, key)? }),
            (None, None, None) => None,
        })
    }
}

/// Checks an address. The message does not quote it, because it can contain a secret.
fn parse_url(key: &'static str, text: &Spanned<String>) -> Result<SecretSource, InvalidValue> {
    if origin(text.get_ref().trim()).is_some() {
        return Ok(SecretSource::Literal { key, text: Secret::new(text.get_ref().trim()) });
    }
    let message = format!("`{key}` must be a URL without user name, such as https://ntfy.sh/topic");
    Err(InvalidValue::new(text.span().start, message))
}

fn parse_event(event: &Spanned<String>) -> Result<NotificationKind, InvalidValue> {
    let known = NotificationKind::ALL.into_iter().filter(|kind| *kind != NotificationKind::Test);
    let names: Vec<&str> = known.map(NotificationKind::name).collect();
    let kind = NotificationKind::from_name(event.get_ref()).filter(|kind| names.contains(&kind.name()));
    let message = format!("`events` must contain names of {}", names.join(", "));
    kind.ok_or(InvalidValue::new(event.span().start, message))
}

fn parse_template(text: Spanned<String>) -> Result<Template, InvalidValue> {
    let invalid = |error| InvalidValue::new(text.span().start, format!("`template`: {error}"));
    Template::parse(text.get_ref()).map_err(invalid)
}

fn parse_address(text: &Spanned<String>, key: &str) -> Result<String, InvalidValue> {
    if longhaul_notify::is_email_address(text.get_ref()) {
        return Ok(text.get_ref().clone());
    }
    let message = format!("`{key}` must be an e-mail address such as ada@example.com");
    Err(InvalidValue::new(text.span().start, message))
}

/// Parses a weekday and a time such as `monday 08:00`.
fn parse_digest(text: Spanned<String>) -> Result<DigestTime, InvalidValue> {
    let parsed = text.get_ref().trim().split_once(' ').and_then(|(day, time)| {
        let day = day.to_lowercase();
        let weekday = WEEKDAYS.iter().find(|(name, _)| *name == day)?.1;
        Some(DigestTime { weekday, minute: parse_minutes(time)? })
    });
    let message = "write `digest` as a weekday and a time: \"monday 08:00\"";
    parsed.ok_or(InvalidValue::new(text.span().start, message))
}

fn missing(kind: &Spanned<String>, key: &str) -> InvalidValue {
    let message = format!("a channel of kind `{}` needs `{key}`", kind.get_ref());
    InvalidValue::new(kind.span().start, message)
}

pub(super) fn offset<T>(value: &Option<Spanned<T>>) -> Option<usize> {
    value.as_ref().map(|value| value.span().start)
}

#[cfg(test)]
mod tests {
    use crate::config::tests::parse;

    #[test]
    fn invalid_values_are_refused_at_their_line_without_secrets() {
        for (line, expected) in [
            ("kind = \"ntfi\"", "one of ntfy, webhook, slack"),
            ("kind = \"slack\"", "needs `url`"),
            ("kind = \"ntfy\"\nserver = \"a\"", "has no `server`"),
            ("kind = \"ntfy\"\nurl = \"https://me:secret@a/b\"", "`url` must be a URL"),
            ("kind = \"slack\"\nurl = \"hooks/secret\"", "`url` must be a URL"),
            ("kind = \"slack\"\nurl-env = \"A\"\nurl-file = \"/b\"", "only one of `url`"),
            ("kind = \"slack\"\nurl-file = \"b\"", "must start with `/`"),
            (
                "kind = \"webhook\"\nurl = \"https://a\"\ntemplate = '{\"a\": \"{{b}}\"}'",
                "unknown placeholder `{{b}}`",
            ),
            ("kind = \"ntfy\"\nurl = \"https://a/b\"\nevents = [\"tests\"]", "names of target-down"),
            ("kind = \"email\"\nserver = \"a\"\nfrom = \"x\"\nto = [\"a@b.c\"]", "`from` must be an e-mail"),
            ("kind = \"desktop\"\ntoken-env = \"A\"", "has no `token-env`"),
        ] {
            let error = parse(&format!("[notify.channels.a]\n{line}\n")).unwrap_err();
            assert!(error.starts_with("c.toml:") && error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn password_needs_a_user_and_encryption() {
        let mail =
            "[notify.channels.a]\nkind = \"email\"\nserver = \"a\"\nfrom = \"a@b.c\"\nto = [\"a@b.c\"]\n";
        assert!(parse(mail).is_ok());
        assert!(parse(&format!("{mail}user = \"a\"")).unwrap_err().contains("belong together"));
        let plain = format!("{mail}user = \"a\"\npassword-env = \"P\"\nencryption = \"none\"");
        assert!(parse(&plain).unwrap_err().contains("only over an encrypted connection"));
    }

    #[test]
    fn times_are_refused_with_an_example() {
        for (line, expected) in [
            ("quiet-hours = \"22-7\"", "22:00-07:00"),
            ("digest = \"monday\"", "monday 08:00"),
            ("digest = \"moonday 08:00\"", "monday 08:00"),
            ("messages-per-hour = 0", "between 1 and 1000"),
            ("down-minutes = 5000", "between 0 and 1440"),
        ] {
            let error = parse(&format!("[notify]\n{line}\n")).unwrap_err();
            assert!(error.starts_with("c.toml:2: ") && error.contains(expected), "{error}");
        }
    }
}
