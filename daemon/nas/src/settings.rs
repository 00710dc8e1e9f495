//! The way to read a NAS: protocol, address, and the sources of the secrets.

use async_snmp::{AuthProtocol, PrivProtocol};
use longhaul_model::{Role, Target, TargetName};
use longhaul_notify::SecretSource;

/// Port of SNMP agents.
pub const SNMP_PORT: u16 = 161;

/// A NAS and the way to read it.
#[derive(Debug, Clone, PartialEq)]
pub struct NasSettings {
    /// The way to read it.
    pub source: NasSource,
    /// Targets on this NAS. `None`: all shares.
    pub targets: Option<Vec<TargetName>>,
}

impl NasSettings {
    /// Returns whether a target is on this NAS.
    pub fn covers(&self, target: &Target) -> bool {
        match &self.targets {
            Some(names) => names.contains(&target.name),
            None => target.role == Role::Share,
        }
    }
}

/// The way to read a NAS.
#[derive(Debug, Clone, PartialEq)]
pub enum NasSource {
    /// An SNMP agent.
    Snmp(Box<SnmpSettings>),
    /// A node_exporter of Prometheus, at this address.
    NodeExporter(String),
    /// The system's `ssh`, with this host as the user would give it: `nas`, or `user@nas.local`.
    Ssh(String),
}

impl NasSource {
    /// Returns the name in the configuration.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Snmp(_) => "snmp",
            Self::NodeExporter(_) => "node-exporter",
            Self::Ssh(_) => "ssh",
        }
    }

    /// Returns the address of the NAS, for the user.
    pub fn address(&self) -> &str {
        match self {
            Self::Snmp(settings) => &settings.host,
            Self::NodeExporter(url) => url,
            Self::Ssh(host) => host,
        }
    }
}

/// An SNMP agent and the access to it.
#[derive(Debug, Clone, PartialEq)]
pub struct SnmpSettings {
    /// Name or address of the NAS.
    pub host: String,
    /// Port of the agent.
    pub port: u16,
    /// Access.
    pub access: SnmpAccess,
}

/// Access to an SNMP agent.
#[derive(Debug, Clone, PartialEq)]
pub enum SnmpAccess {
    /// Version 2c, with a community. `None`: `public`, which agents have unless it was changed.
    Community(Option<SecretSource>),
    /// Version 3, with a user.
    User(SnmpUser),
}

/// A user of SNMP version 3. Messages are always authenticated.
#[derive(Debug, Clone, PartialEq)]
pub struct SnmpUser {
    /// Name of the user.
    pub name: String,
    /// Algorithm of the authentication.
    pub authentication: AuthProtocol,
    /// Password of the authentication.
    pub password: SecretSource,
    /// Encryption, with its password. `None`: messages are not encrypted.
    pub encryption: Option<(PrivProtocol, SecretSource)>,
}

/// Algorithms that authenticate messages of SNMP version 3, by their names in the configuration. MD5 is for old devices.
pub const SNMP_AUTHENTICATIONS: &[(&str, AuthProtocol)] = &[
    ("sha", AuthProtocol::Sha1),
    ("sha256", AuthProtocol::Sha256),
    ("sha512", AuthProtocol::Sha512),
    ("md5", AuthProtocol::Md5),
];

/// Algorithms that encrypt messages of SNMP version 3, by their names in the configuration. DES is for old devices.
pub const SNMP_ENCRYPTIONS: &[(&str, PrivProtocol)] =
    &[("aes", PrivProtocol::Aes128), ("des", PrivProtocol::Des)];
