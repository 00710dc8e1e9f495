//! The variables that OpenTelemetry's specification gives every program: they stand above the configuration file.
//!
//! Pure: variables are an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::headers::{Headers, HeadersError, percent_decoded};
use crate::metrics::Temporality;

/// Variables by name. An empty one counts as not set (specification, "Environment Variable Specification").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment(BTreeMap<String, String>);

/// A variable whose value has no meaning. The value is not in the message: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name} {why}")]
pub struct VariableError {
    /// Which one.
    pub name: String,
    /// What is wrong with it, and what would be right.
    pub why: String,
}

/// How bodies are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// As they are.
    None,
    /// Compressed.
    #[default]
    Gzip,
}

impl Environment {
    /// The variables of this process, without those that are not text.
    pub fn of_process() -> Self {
        let pairs = std::env::vars_os();
        Self::of(
            pairs.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// These variables.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    /// A variable of any name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// `OTEL_EXPORTER_OTLP_<SIGNAL>_<WHAT>`, else `OTEL_EXPORTER_OTLP_<WHAT>`, with its name.
    fn otlp(&self, signal: &str, what: &str) -> Option<(String, &str)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.to_uppercase());
        let shared = format!("OTEL_EXPORTER_OTLP_{what}");
        [own, shared].into_iter().find_map(|name| self.0.get(&name).map(|value| (name, value.trim())))
    }

    /// The address of one signal, and whether it is the base of all.
    pub fn endpoint(&self, signal: &str) -> Option<(String, &str, Scope)> {
        let (name, value) = self.otlp(signal, "ENDPOINT")?;
        let scope = if name == "OTEL_EXPORTER_OTLP_ENDPOINT" { Scope::All } else { Scope::Signal };
        Some((name, value, scope))
    }

    /// Whether a signal is switched off, or all of them.
    pub fn is_off(&self, signal: &str) -> bool {
        let exporter = format!("OTEL_{}_EXPORTER", signal.to_uppercase());
        let is = |name: &str, word: &str| {
            self.get(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        is("OTEL_SDK_DISABLED", "true") || is(&exporter, "none")
    }

    /// The headers for a signal.
    ///
    /// # Errors
    ///
    /// [`VariableError`], as all of these.
    pub fn headers(&self, signal: &str) -> Result<Option<Headers>, VariableError> {
        let Some((name, value)) = self.otlp(signal, "HEADERS") else { return Ok(None) };
        let wrong = |error: HeadersError| VariableError { name, why: format!("cannot be read: {error}") };
        Headers::from_variable(value).map(Some).map_err(wrong)
    }

    /// The only protocol there is, if another one is asked for, is an error.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn check_protocol(&self, signal: &str) -> Result<(), VariableError> {
        match self.otlp(signal, "PROTOCOL") {
            Some((name, value)) if value != "http/protobuf" => {
                let why = format!("asks for `{value}`; longhaul speaks http/protobuf");
                Err(VariableError { name, why })
            }
            _ => Ok(()),
        }
    }

    /// How bodies are sent.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn compression(&self, signal: &str) -> Result<Option<Compression>, VariableError> {
        let words = [("gzip", Compression::Gzip), ("none", Compression::None)];
        one_of(self.otlp(signal, "COMPRESSION"), &words)
    }

    /// How long an answer may take.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn timeout(&self, signal: &str) -> Result<Option<Duration>, VariableError> {
        milliseconds(self.otlp(signal, "TIMEOUT"))
    }

    /// The file with the certificates that are trusted.
    pub fn certificate(&self, signal: &str) -> Option<&str> {
        self.otlp(signal, "CERTIFICATE").map(|(_, value)| value)
    }

    /// How often what is so just now is told.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn interval(&self) -> Result<Option<Duration>, VariableError> {
        milliseconds(self.named("OTEL_METRIC_EXPORT_INTERVAL"))
    }

    /// Whether counts are told as totals.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn temporality(&self) -> Result<Option<Temporality>, VariableError> {
        // With "lowmemory" an exporter need not keep totals of what it counts by itself; what longhaul counts is that.
        let words = [
            ("cumulative", Temporality::Cumulative),
            ("delta", Temporality::Delta),
            ("lowmemory", Temporality::Delta),
        ];
        one_of(self.named("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"), &words)
    }

    /// What is added to the resource. A pair that cannot be read is left out, as the specification wants it.
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

    fn named(&self, name: &str) -> Option<(String, &str)> {
        self.get(name).map(|value| (name.to_owned(), value.trim()))
    }
}

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Every signal has a place below it.
    All,
    /// It is that of one signal, as it is.
    Signal,
}

fn one_of<T: Copy>(found: Option<(String, &str)>, words: &[(&str, T)]) -> Result<Option<T>, VariableError> {
    let Some((name, value)) = found else { return Ok(None) };
    let known = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let why = || format!("has to be one of {}", names.join(", "));
    known.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| VariableError { name, why: why() })
}

fn milliseconds(found: Option<(String, &str)>) -> Result<Option<Duration>, VariableError> {
    let Some((name, value)) = found else { return Ok(None) };
    let count = value.parse().ok().filter(|count| (1..=86_400_000).contains(count));
    let why = || "has to be a number of milliseconds, from 1 to 86400000".to_owned();
    count.map(|count| Some(Duration::from_millis(count))).ok_or_else(|| VariableError { name, why: why() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_signals_own_variable_stands_above_the_shared_one() {
        let found = environment(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces/x"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_HEADERS", " "),
        ]);
        let endpoint = |signal| found.endpoint(signal).map(|(_, value, scope)| (value, scope));
        assert_eq!(endpoint("traces"), Some(("http://traces/x", Scope::Signal)));
        assert_eq!(endpoint("metrics"), Some(("http://all", Scope::All)));
        assert_eq!(found.timeout("traces"), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(found.compression("metrics"), Ok(Some(Compression::None)));
        assert_eq!((found.compression("traces"), found.headers("traces")), (Ok(None), Ok(None)));
    }

    #[test]
    fn what_has_no_meaning_is_named_and_never_shown() {
        let found = environment(&[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer secret"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "both"),
        ]);
        let errors = [
            found.check_protocol("traces").unwrap_err(),
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
    fn switches_and_attributes_are_understood() {
        assert!(environment(&[("OTEL_SDK_DISABLED", "TRUE")]).is_off("traces"));
        let found = environment(&[
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_SERVICE_NAME", "nas"),
            ("OTEL_RESOURCE_ATTRIBUTES", "site=the%20attic,broken,service.name=x,=y,z=%q"),
        ]);
        assert_eq!((found.is_off("traces"), found.is_off("metrics")), (true, false));
        let pairs = [("service.name", "nas"), ("site", "the attic")];
        assert_eq!(found.attributes(), pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    proptest! {
        #[test]
        fn any_values_are_read_or_refused_without_panic(value in any::<String>()) {
            let names = ["ENDPOINT", "HEADERS", "PROTOCOL", "COMPRESSION", "TIMEOUT", "CERTIFICATE"];
            let names = names.map(|name| format!("OTEL_EXPORTER_OTLP_{name}"));
            let others = ["OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME", "OTEL_METRIC_EXPORT_INTERVAL"];
            let names = names.into_iter().chain(others.map(str::to_owned));
            let found = Environment::of(names.map(|name| (name, value.clone())));
            let _ = (found.endpoint("traces"), found.headers("traces"), found.check_protocol("traces"));
            let _ = (found.compression("logs"), found.timeout("logs"), found.interval(), found.attributes());
        }
    }
}
