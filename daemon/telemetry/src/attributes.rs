//! Attributes: what a target, a run and this longhaul are called in OpenTelemetry's words, and in ours where it has none.
//!
//! No path, file name, user name or address is among them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use longhaul_measure::model::{Protocol, Run};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The conventions that the names follow (OpenTelemetry semantic conventions 1.42.0).
pub const SCHEMA: &str = "https://opentelemetry.io/schemas/1.42.0";

/// What tells one series, or one span, from others, in the order of its keys.
pub type Labels = BTreeMap<Cow<'static, str>, String>;

/// One attribute.
pub fn attribute(key: impl Into<String>, value: impl Into<any_value::Value>) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value.into()) }), ..KeyValue::default() }
}

/// A text as the value of an attribute.
pub fn text(value: impl Into<String>) -> any_value::Value {
    any_value::Value::StringValue(value.into())
}

/// A whole number as the value of an attribute. What exceeds 63 bits becomes the largest.
pub fn whole(value: impl TryInto<i64>) -> any_value::Value {
    any_value::Value::IntValue(value.try_into().unwrap_or(i64::MAX))
}

/// A number as the value of an attribute.
pub fn number(value: f64) -> any_value::Value {
    any_value::Value::DoubleValue(value)
}

/// Yes or no as the value of an attribute.
pub fn truth(value: bool) -> any_value::Value {
    any_value::Value::BoolValue(value)
}

/// Labels as attributes.
pub fn of_labels(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| attribute(key.clone(), text(value.clone()))).collect()
}

/// How a target was reached: `network.protocol.name` and `.version` for what crosses a network, `system.filesystem.type` for
/// the rest.
pub fn of_protocol(protocol: Option<&Protocol>) -> Labels {
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

/// Which target and task a run is of.
pub fn of_run(run: &Run) -> Labels {
    let mut labels = of_protocol(run.protocol.as_ref());
    labels.insert("longhaul.target".into(), run.target.to_string());
    labels.insert("longhaul.workload".into(), run.workload.clone());
    labels.insert("longhaul.scale".into(), run.scale.name().to_owned());
    labels
}

/// Who sends: this longhaul on this machine, and whatever the person adds. What the person says wins.
pub fn resource(machine: &str, added: &BTreeMap<String, String>) -> Resource {
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
    Resource {
        attributes: known.into_iter().map(|(key, value)| attribute(key, text(value))).collect(),
        ..Resource::default()
    }
}

/// What made the values.
pub fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "longhaul".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_a_network_has_a_protocol_and_the_rest_a_file_system() {
        let found = |protocol| of_protocol(Some(&protocol)).into_iter().collect::<Vec<_>>();
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
        assert_eq!(found(Protocol::Nfs(None)).len(), 1, "what is not known is not said");
        assert!(of_protocol(None).is_empty());
    }

    #[test]
    fn the_person_may_name_the_service_and_adds_to_what_is_known() {
        let added = [("service.name", "nas-lab"), ("site", "attic")];
        let added = added.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let resource = resource("0f", &added);
        let has = |key: &str, value: &str| resource.attributes.contains(&attribute(key, text(value)));
        assert!(has("service.name", "nas-lab") && has("site", "attic") && has("service.instance.id", "0f"));
        assert_eq!(resource.attributes.len(), 5);
    }
}
