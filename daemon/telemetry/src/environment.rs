//! The standard environment variables of OpenTelemetry (`OTEL_*`). They take precedence over the configuration
//! file.
//!
//! The functions read only the given variables, except [`EnvironmentVariables::from_process`].

use std::collections::BTreeMap;
use std::time::Duration;

use crate::headers::{Headers, HeadersError, percent_decoded};
use crate::metrics::Temporality;

/// Variable with the address for all signals. The path of the signal is appended; an address for one signal is used unchanged.
pub const SHARED_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Environment variables by name. An empty variable counts as unset (OpenTelemetry, "Environment Variable
/// Specification").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvironmentVariables(BTreeMap<String, String>);

/// An invalid value of a variable. The message does not quote values that can contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name} {why}")]
pub struct VariableError {
    /// Name of the variable.
    pub name: String,
    /// The problem and the allowed values.
    pub why: String,
}

/// Compression of request bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// No compression.
    None,
    /// Compression with gzip.
    #[default]
    Gzip,
}

/// Protocol between longhaul and the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtlpProtocol {
    /// Protobuf messages over HTTP, usually on port 4318.
    #[default]
    HttpProtobuf,
    /// gRPC, usually on port 4317.
    Grpc,
}

impl OtlpProtocol {
    /// The protocols by their names in the specification of OpenTelemetry.
    pub const NAMES: &[(&str, Self)] = &[("http/protobuf", Self::HttpProtobuf), ("grpc", Self::Grpc)];
}

impl EnvironmentVariables {
    /// Returns the environment variables of this process, except those that are not UTF-8.
    pub fn from_process() -> Self {
        let pairs = std::env::vars_os();
        Self::from_pairs(
            pairs.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// Returns an environment with these variables.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    /// Returns these variables without the standard ones of OpenTelemetry.
    #[must_use]
    pub fn without_standard_variables(mut self) -> Self {
        self.0.retain(|name, _| !name.starts_with("OTEL_"));
        self
    }

    /// Returns the value of any variable. `None`: unset or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns name and value of `OTEL_EXPORTER_OTLP_<SIGNAL>_<WHAT>`, or else of `OTEL_EXPORTER_OTLP_<WHAT>`.
    fn otlp_variable(&self, signal: &str, what: &str) -> Option<Variable<'_>> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.to_uppercase());
        let shared = format!("OTEL_EXPORTER_OTLP_{what}");
        [own, shared].into_iter().find_map(|name| self.non_empty(&name))
    }

    /// Returns the address for a signal: name of the variable, and value. That of [`SHARED_ENDPOINT`] is for all signals.
    pub fn endpoint(&self, signal: &str) -> Option<(String, &str)> {
        self.otlp_variable(signal, "ENDPOINT").map(|variable| (variable.name, variable.value))
    }

    /// Returns true if this signal or the whole export is disabled.
    pub fn is_disabled(&self, signal: &str) -> bool {
        let exporter = format!("OTEL_{}_EXPORTER", signal.to_uppercase());
        let is = |name: &str, word: &str| {
            self.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        is("OTEL_SDK_DISABLED", "true") || is(&exporter, "none")
    }

    /// Returns the headers for a signal. `None`: not set.
    pub fn headers(&self, signal: &str) -> Result<Option<Headers>, VariableError> {
        let Some(Variable { name, value }) = self.otlp_variable(signal, "HEADERS") else { return Ok(None) };
        let wrong = |error: HeadersError| VariableError { name, why: format!("is invalid: {error}") };
        Headers::from_variable(value).map(Some).map_err(wrong)
    }

    /// Returns the protocol for a signal. `None`: not set.
    pub fn protocol(&self, signal: &str) -> Result<Option<OtlpProtocol>, VariableError> {
        parse_choice(self.otlp_variable(signal, "PROTOCOL"), OtlpProtocol::NAMES)
    }

    /// Returns the compression of request bodies for a signal. `None`: not set.
    pub fn compression(&self, signal: &str) -> Result<Option<Compression>, VariableError> {
        let words = [("gzip", Compression::Gzip), ("none", Compression::None)];
        parse_choice(self.otlp_variable(signal, "COMPRESSION"), &words)
    }

    /// Returns the timeout of a request for a signal. `None`: not set.
    pub fn timeout(&self, signal: &str) -> Result<Option<Duration>, VariableError> {
        parse_milliseconds(self.otlp_variable(signal, "TIMEOUT"))
    }

    /// Returns the path of the file with trusted certificates for a signal: name of the variable, and value. `None`: not
    /// set.
    pub fn certificate(&self, signal: &str) -> Option<(String, &str)> {
        self.otlp_variable(signal, "CERTIFICATE").map(|variable| (variable.name, variable.value))
    }

    /// Returns the interval at which the current state is sent. `None`: not set.
    pub fn interval(&self) -> Result<Option<Duration>, VariableError> {
        parse_milliseconds(self.non_empty("OTEL_METRIC_EXPORT_INTERVAL"))
    }

    /// Returns the temporality of counts and histograms. `None`: not set.
    pub fn temporality(&self) -> Result<Option<Temporality>, VariableError> {
        // "lowmemory" means delta for instruments that the program increments itself, and all longhaul counters
        // are of this kind.
        let words = [
            ("cumulative", Temporality::Cumulative),
            ("delta", Temporality::Delta),
            ("lowmemory", Temporality::Delta),
        ];
        parse_choice(self.non_empty("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"), &words)
    }

    /// Returns the resource attributes from the environment. An invalid pair is ignored, as the specification
    /// requires.
    pub fn attributes(&self) -> BTreeMap<String, String> {
        let text = self.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let pair = |entry: &str| {
            let (key, value) = entry.split_once('=')?;
            let (key, value) = (percent_decoded(key.trim())?, percent_decoded(value.trim())?);
            (!key.is_empty()).then_some((key, value))
        };
        let name =
            self.get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name.trim().to_owned()));
        text.split(',').filter_map(pair).chain(name).collect()
    }

    fn non_empty(&self, name: &str) -> Option<Variable<'_>> {
        self.get(name).map(|value| Variable { name: name.to_owned(), value: value.trim() })
    }
}

/// A variable that is set.
struct Variable<'a> {
    name: String,
    value: &'a str,
}

fn parse_choice<T: Copy>(
    found: Option<Variable<'_>>,
    words: &[(&str, T)],
) -> Result<Option<T>, VariableError> {
    let Some(Variable { name, value }) = found else { return Ok(None) };
    let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let why = || format!("must be one of {}", names.join(", "));
    known.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| VariableError { name, why: why() })
}

fn parse_milliseconds(found: Option<Variable<'_>>) -> Result<Option<Duration>, VariableError> {
    let Some(Variable { name, value }) = found else { return Ok(None) };
    let count = value.parse().ok().filter(|count| (1..=86_400_000).contains(count));
    let why = || "must be a number of milliseconds from 1 to 86400000".to_owned();
    count.map(|count| Some(Duration::from_millis(count))).ok_or_else(|| VariableError { name, why: why() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> EnvironmentVariables {
        EnvironmentVariables::from_pairs(
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn signal_variable_overrides_the_shared_one() {
        let found = environment(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces/x"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", " "),
        ]);
        let of_traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT".to_owned();
        assert_eq!(found.endpoint("traces"), Some((of_traces, "http://traces/x")));
        assert_eq!(found.endpoint("metrics"), Some((SHARED_ENDPOINT.to_owned(), "http://all")));
        assert_eq!(found.timeout("traces"), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(found.compression("metrics"), Ok(Some(Compression::None)));
        assert_eq!(found.protocol("metrics"), Ok(Some(OtlpProtocol::Grpc)));
        assert_eq!((found.compression("traces"), found.headers("traces")), (Ok(None), Ok(None)));
    }

    #[test]
    fn invalid_variable_is_named_without_its_secret() {
        let found = environment(&[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer secret"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "both"),
        ]);
        let errors = [
            found.protocol("traces").unwrap_err(),
            found.timeout("traces").unwrap_err(),
            found.headers("metrics").unwrap_err(),
            found.temporality().unwrap_err(),
        ];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.starts_with("the variable OTEL_EXPORTER_OTLP_"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn disable_switches_and_attributes_are_parsed() {
        assert!(environment(&[("OTEL_SDK_DISABLED", "TRUE")]).is_disabled("traces"));
        let found = environment(&[
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_SERVICE_NAME", "nas"),
            ("OTEL_RESOURCE_ATTRIBUTES", "site=the%20attic,broken,service.name=x,=y,z=%q"),
        ]);
        assert_eq!((found.is_disabled("traces"), found.is_disabled("metrics")), (true, false));
        let pairs = [("service.name", "nas"), ("site", "the attic")];
        assert_eq!(found.attributes(), pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    proptest! {
        #[test]
        fn any_values_are_parsed_without_panic(value in any::<String>()) {
            let names = ["ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION", "TIMEOUT", "CERTIFICATE"];
            let names = names.map(|name| format!("OTEL_EXPORTER_OTLP_{name}"));
            let others = ["OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "OTEL_METRIC_EXPORT_INTERVAL"];
            let names = names.into_iter().chain(others.map(str::to_owned));
            let found = EnvironmentVariables::from_pairs(names.map(|name| (name, value.clone())));
            let _ = (found.endpoint("traces"), found.headers("traces"), found.protocol("traces"));
            let _ = (found.compression("logs"), found.timeout("logs"), found.interval(), found.attributes());
        }
    }
}
