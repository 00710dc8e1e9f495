//! OpenTelemetry attributes of targets, runs and this longhaul installation. Standard names are used if they
//! exist, otherwise names that start with `longhaul.`.
//!
//! No attribute contains a path, file name, user name or address.

use std::borrow::Cow;
use std::collections::BTreeMap;

use longhaul_model::{Phase, Protocol, Run};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;

/// URL of the naming conventions (OpenTelemetry semantic conventions 1.42.0).
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.42.0";

/// Labels of a series or a span, sorted by key.
pub type Labels = BTreeMap<Cow<'static, str>, String>;

/// Converts a number to the integer type of attributes. A number that does not fit becomes `i64::MAX`.
pub fn int(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// Converts labels to attributes.
pub fn from_labels(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect()
}

/// Returns the labels of a protocol: `network.protocol.name` and `network.protocol.version` for network
/// protocols, `system.filesystem.type` for all others.
pub fn protocol_labels(protocol: Option<&Protocol>) -> Labels {
    let network = |name: &str, version: Option<&String>| {
        let version = version.map(|version| ("network.protocol.version".into(), version.clone()));
        [("network.protocol.name".into(), name.to_owned())].into_iter().chain(version).collect()
    };
    let local = |name: String| [("system.filesystem.type".into(), name)].into();
    match protocol {
        None => Labels::new(),
        Some(Protocol::Afp) => network("afp", None),
        Some(Protocol::Nfs(version)) => network("nfs", version.as_ref()),
        Some(Protocol::Smb(version)) => network("smb", version.as_ref()),
        Some(Protocol::Webdav) => network("webdav", None),
        Some(Protocol::Sftp) => network("sftp", None),
        Some(Protocol::Fuse(subtype)) => {
            local(subtype.as_ref().map_or("fuse".to_owned(), |subtype| format!("fuse.{subtype}")))
        }
        Some(Protocol::Local(name) | Protocol::Other(name)) => local(name.clone()),
    }
}

/// Returns the labels of a run: protocol, target, workload and scale.
pub fn run_labels(run: &Run) -> Labels {
    let mut labels = protocol_labels(run.protocol.as_ref());
    labels.insert("longhaul.target".into(), run.target.to_string());
    labels.insert("longhaul.workload".into(), run.workload.clone());
    labels.insert("longhaul.scale".into(), run.scale.name().to_owned());
    labels
}

/// Adds up a value over the phases of a run.
pub fn sum_over_phases(run: &Run, value: fn(&Phase) -> u64) -> u64 {
    run.phases.iter().map(value).fold(0, u64::saturating_add)
}

/// Returns the attributes of the resource, which identify this longhaul installation. Attributes in `added`
/// override the built-in ones.
pub fn resource_attributes(machine: &str, added: &crate::ResourceAttributes) -> Vec<KeyValue> {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let mut known: BTreeMap<String, String> = [
        ("service.name", "longhaul"),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", machine),
        ("os.type", os),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    known.extend(added.clone());
    known.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect()
}

/// Returns the resource in the form that messages are built from. See [`resource_attributes`].
pub fn resource(machine: &str, added: &crate::ResourceAttributes) -> ResourceAttributesWithSchema {
    ResourceAttributesWithSchema {
        attributes: resource_attributes(machine, added).into(),
        schema_url: Some(SCHEMA_URL.to_owned()),
    }
}

/// Returns the instrumentation scope: longhaul and its version.
pub fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("longhaul")
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_schema_url(SCHEMA_URL)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_protocols_and_file_systems_get_standard_labels() {
        let found = |protocol| protocol_labels(Some(&protocol)).into_iter().collect::<Vec<_>>();
        assert_eq!(
            found(Protocol::Smb(Some("3.1.1".into()))),
            [
                ("network.protocol.name".into(), "smb".to_owned()),
                ("network.protocol.version".into(), "3.1.1".to_owned())
            ]
        );
        assert_eq!(
            found(Protocol::Local("ext4".into())),
            [("system.filesystem.type".into(), "ext4".to_owned())]
        );
        assert_eq!(found(Protocol::Nfs(None)).len(), 1, "an unknown version has no label");
        assert!(protocol_labels(None).is_empty());
    }

    #[test]
    fn user_attributes_override_and_extend_the_resource() {
        let added = [("service.name", "nas-lab"), ("site", "attic")];
        let added = added.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let attributes = resource_attributes("0f", &added);
        let has = |key: &'static str, value: &'static str| attributes.contains(&KeyValue::new(key, value));
        assert!(has("service.name", "nas-lab") && has("site", "attic") && has("service.instance.id", "0f"));
        assert_eq!(attributes.len(), 5);
    }
}
