//! The `[nas]` section of the configuration file. Secrets are named here, and read for each reading of the NAS.

use std::path::PathBuf;

use longhaul_model::{Target, TargetName};
use longhaul_nas::{
    AuthProtocol, NasSettings, NasSource, PrivProtocol, SNMP_AUTHENTICATIONS, SNMP_ENCRYPTIONS, SNMP_PORT,
    SnmpAccess, SnmpSettings, SnmpUser,
};
use longhaul_notify::origin;
use serde::Deserialize;
use toml::Spanned;

use super::notify::{Source, offset};
use super::telemetry::parse_keyword;
use super::value::{InvalidValue, in_range};

/// Ways to read a NAS, as `kind` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Snmp,
    NodeExporter,
    Ssh,
}

const KINDS: &[(&str, Kind)] =
    &[("snmp", Kind::Snmp), ("node-exporter", Kind::NodeExporter), ("ssh", Kind::Ssh)];

/// The `[nas]` section as written, before its values are validated. Which keys it may have depends on its kind.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileNas {
    kind: Option<Spanned<String>>,
    targets: Option<Vec<Spanned<String>>>,
    host: Option<Spanned<String>>,
    port: Option<Spanned<u16>>,
    url: Option<Spanned<String>>,
    community_env: Option<Spanned<String>>,
    community_file: Option<Spanned<PathBuf>>,
    user: Option<Spanned<String>>,
    authentication: Option<Spanned<String>>,
    password_env: Option<Spanned<String>>,
    password_file: Option<Spanned<PathBuf>>,
    encryption: Option<Spanned<String>>,
    encryption_password_env: Option<Spanned<String>>,
    encryption_password_file: Option<Spanned<PathBuf>>,
}

/// A key that was set: its name, the kinds that have it, and its place in the file.
struct SetKey {
    name: &'static str,
    kinds: &'static [Kind],
    offset: Option<usize>,
}

impl FileNas {
    /// Validates the section. `None`: no NAS is named.
    pub(super) fn validate(mut self, targets: &[Target]) -> Result<Option<NasSettings>, InvalidValue> {
        let first = self.keys().iter().filter_map(|key| key.offset).min();
        let Some(at) = offset(&self.kind) else {
            return first.map_or(Ok(None), |at| {
                Err(InvalidValue::new(at, "[nas] needs `kind`: \"snmp\", \"node-exporter\" or \"ssh\""))
            });
        };
        let kind = parse_keyword(self.kind.take(), "kind", KINDS)?.unwrap_or(Kind::Snmp);
        self.refuse_foreign_keys(kind)?;
        let targets = self.targets.take().map(|names| known_targets(names, targets)).transpose()?;
        let source = match kind {
            Kind::Snmp => NasSource::Snmp(Box::new(self.snmp(at)?)),
            Kind::NodeExporter => NasSource::NodeExporter(parse_url(self.url, at)?),
            Kind::Ssh => NasSource::Ssh(parse_host(self.host, at)?),
        };
        Ok(Some(NasSettings { source, targets }))
    }

    fn keys(&self) -> [SetKey; 13] {
        const ALL: &[Kind] = &[Kind::Snmp, Kind::NodeExporter, Kind::Ssh];
        const SNMP: &[Kind] = &[Kind::Snmp];
        let key = |name, kinds, offset| SetKey { name, kinds, offset };
        let targets = self.targets.as_ref().map(|names| names.first().map_or(0, |name| name.span().start));
        [
            key("targets", ALL, targets),
            key("host", &[Kind::Snmp, Kind::Ssh], offset(&self.host)),
            key("port", SNMP, offset(&self.port)),
            key("url", &[Kind::NodeExporter], offset(&self.url)),
            key("community-env", SNMP, offset(&self.community_env)),
            key("community-file", SNMP, offset(&self.community_file)),
            key("user", SNMP, offset(&self.user)),
            key("authentication", SNMP, offset(&self.authentication)),
            key("password-env", SNMP, offset(&self.password_env)),
            key("password-file", SNMP, offset(&self.password_file)),
            key("encryption", SNMP, offset(&self.encryption)),
            key("encryption-password-env", SNMP, offset(&self.encryption_password_env)),
            key("encryption-password-file", SNMP, offset(&self.encryption_password_file)),
        ]
    }

    /// Refuses keys that the kind does not have, because they would have no effect.
    fn refuse_foreign_keys(&self, kind: Kind) -> Result<(), InvalidValue> {
        let name = KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
        for key in self.keys() {
            if let (Some(at), false) = (key.offset, key.kinds.contains(&kind)) {
                return Err(InvalidValue::new(at, format!("a NAS of kind `{name}` has no `{}`", key.name)));
            }
        }
        Ok(())
    }

    fn snmp(mut self, at: usize) -> Result<SnmpSettings, InvalidValue> {
        let host = parse_host(self.host.take(), at)?;
        let port = in_range(self.port.take(), "port", 1..=u16::MAX)?.unwrap_or(SNMP_PORT);
        Ok(SnmpSettings { host, port, access: self.access()? })
    }

    fn access(mut self) -> Result<SnmpAccess, InvalidValue> {
        let (variable, file) = (self.community_env.take(), self.community_file.take());
        let community = Source { key: "community", literal: None, variable, file }.parse()?;
        let Some(user) = self.user.take() else {
            let rest = ["authentication", "password-env", "password-file", "encryption"];
            let foreign = self.keys().into_iter().find(|key| {
                key.offset.is_some() && (rest.contains(&key.name) || key.name.starts_with("encryption-"))
            });
            return match foreign {
                Some(SetKey { name, offset: Some(at), .. }) => {
                    let message = format!("`{name}` is for version 3 of SNMP, which needs `user`");
                    Err(InvalidValue::new(at, message))
                }
                _ => Ok(SnmpAccess::Community(community)),
            };
        };
        if community.is_some() {
            let message = "give a community (version 2c of SNMP) or a `user` (version 3), not both";
            return Err(InvalidValue::new(user.span().start, message));
        }
        self.snmp_user(user).map(SnmpAccess::User)
    }

    fn snmp_user(self, user: Spanned<String>) -> Result<SnmpUser, InvalidValue> {
        let at = user.span().start;
        let (variable, file) = (self.password_env, self.password_file);
        let password = Source { key: "password", literal: None, variable, file }.parse()?;
        let encryption_at = offset(&self.encryption);
        let encryption = parse_keyword(self.encryption, "encryption", SNMP_ENCRYPTIONS)?;
        let (variable, file) = (self.encryption_password_env, self.encryption_password_file);
        let second = Source { key: "encryption-password", literal: None, variable, file }.parse()?;
        let encryption = match (encryption, second) {
            (Some(_), None) => {
                let message = "`encryption` needs `encryption-password-file` or `encryption-password-env`";
                return Err(InvalidValue::new(encryption_at.unwrap_or(at), message));
            }
            (chosen, password) => password.map(|password| (chosen.unwrap_or(PrivProtocol::Aes128), password)),
        };
        let authentication = parse_keyword(self.authentication, "authentication", SNMP_AUTHENTICATIONS)?;
        Ok(SnmpUser {
            name: user.into_inner(),
            authentication: authentication.unwrap_or(AuthProtocol::Sha1),
            password: password
                .ok_or_else(|| InvalidValue::new(at, "`user` needs `password-file` or `password-env`"))?,
            encryption,
        })
    }
}

fn parse_host(host: Option<Spanned<String>>, kind_at: usize) -> Result<String, InvalidValue> {
    let host = host.ok_or_else(|| InvalidValue::new(kind_at, "a NAS of this kind needs `host`"))?;
    let is_allowed = |c: char| c.is_alphanumeric() || "._-:@[]%".contains(c);
    let text = host.get_ref();
    // A name that starts with `-` would be an option of ssh.
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_allowed) {
        let message = "`host` must be a name or an address, such as nas.local";
        return Err(InvalidValue::new(host.span().start, message));
    }
    Ok(host.into_inner())
}

fn parse_url(url: Option<Spanned<String>>, kind_at: usize) -> Result<String, InvalidValue> {
    let url = url.ok_or_else(|| InvalidValue::new(kind_at, "a NAS of kind `node-exporter` needs `url`"))?;
    let text = url.get_ref().trim();
    if origin(text).is_none() {
        let message = "`url` must be a URL without user name, such as http://nas.local:9100/metrics";
        return Err(InvalidValue::new(url.span().start, message));
    }
    Ok(text.to_owned())
}

fn known_targets(names: Vec<Spanned<String>>, targets: &[Target]) -> Result<Vec<TargetName>, InvalidValue> {
    let find = |name: Spanned<String>| {
        let known = targets.iter().find(|target| target.name.as_str() == name.get_ref());
        known.map(|target| target.name.clone()).ok_or_else(|| {
            let all: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            let message =
                format!("there is no target `{}`; known targets: {}", name.get_ref(), all.join(", "));
            InvalidValue::new(name.span().start, message)
        })
    };
    names.into_iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use longhaul_nas::{NasSource, PrivProtocol, SnmpAccess};

    use crate::config::tests::parse;

    #[test]
    fn invalid_values_are_refused_at_their_line() {
        for (line, expected) in [
            ("host = \"nas\"", "needs `kind`"),
            ("kind = \"smtp\"", "one of snmp, node-exporter, ssh"),
            ("kind = \"snmp\"", "needs `host`"),
            ("kind = \"node-exporter\"", "needs `url`"),
            ("url = \"http://nas:9100\"\nkind = \"ssh\"", "has no `url`"),
            ("url = \"nas:9100\"\nkind = \"node-exporter\"", "`url` must be a URL"),
            ("host = \"-oProxyCommand=reboot\"\nkind = \"ssh\"", "`host` must be"),
            ("host = \"a b\"\nkind = \"snmp\"", "`host` must be"),
            ("port = 0\nhost = \"nas\"\nkind = \"snmp\"", "`port` must be between"),
            ("user = \"a\"\nhost = \"nas\"\nkind = \"snmp\"", "needs `password-file`"),
            ("user = \"a\"\ncommunity-env = \"C\"\nhost = \"nas\"\nkind = \"snmp\"", "not both"),
            ("password-env = \"P\"\nhost = \"nas\"\nkind = \"snmp\"", "needs `user`"),
            (
                "encryption = \"aes\"\nuser = \"a\"\npassword-env = \"P\"\nhost = \"nas\"\nkind = \"snmp\"",
                "needs `encryption-password-file`",
            ),
            ("community-file = \"c\"\nhost = \"nas\"\nkind = \"snmp\"", "must start with `/`"),
            ("targets = [\"smb\"]\nhost = \"nas\"\nkind = \"ssh\"", "there is no target `smb`"),
            ("community = \"C\"", "did you mean `community-env`?"),
        ] {
            let error = parse(&format!("[nas]\n{line}\n")).unwrap_err();
            assert!(error.starts_with("c.toml:2: ") && error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn user_of_version_3_is_encrypted_with_aes_by_default() {
        let text = "[nas]\nkind = \"snmp\"\nhost = \"nas\"\nuser = \"ada\"\npassword-env = \"A\"\nencryption-password-env = \"B\"\n";
        let nas = parse(text).unwrap().nas.unwrap();
        let NasSource::Snmp(snmp) = nas.source else { panic!() };
        let SnmpAccess::User(user) = snmp.access else { panic!() };
        assert_eq!(user.encryption.map(|(encryption, _)| encryption), Some(PrivProtocol::Aes128));
    }

    #[test]
    fn chosen_targets_are_those_of_the_configuration() {
        let text = "[nas]\nkind = \"ssh\"\nhost = \"ada@nas\"\ntargets = [\"smb\"]\n[targets.smb]\npath = \"/a\"\n\
            [targets.usb]\npath = \"/b\"\n";
        let config = parse(text).unwrap();
        let nas = config.nas.unwrap();
        let covered: Vec<_> = config.targets.iter().map(|target| nas.covers(target)).collect();
        assert_eq!(covered, [true, false]);
    }
}
