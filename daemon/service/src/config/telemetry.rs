//! The `[telemetry]` section of the configuration file. The standard OTEL_ variables
//! override it, unless the administrator sets something in it; they are read when the exporter starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_model::time::DAY;
use longhaul_telemetry::endpoint;
use longhaul_telemetry::environment::{Compression, EnvironmentVariables, OtlpProtocol};
use longhaul_telemetry::metrics::Temporality;
use longhaul_telemetry::settings::TelemetryConfig;
use serde::Deserialize;

use super::Config;
use super::value::{InvalidValue, in_range};

/// Keywords of the configuration file and their values.
const COMPRESSIONS: &[(&str, Compression)] = &[("gzip", Compression::Gzip), ("none", Compression::None)];
const TEMPORALITIES: &[(&str, Temporality)] =
    &[("cumulative", Temporality::Cumulative), ("delta", Temporality::Delta)];

/// The `[telemetry]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileTelemetry {
    endpoint: Option<toml::Spanned<String>>,
    headers_file: Option<toml::Spanned<PathBuf>>,
    headers_variable: Option<String>,
    traces: Option<bool>,
    metrics: Option<bool>,
    diagnostics: Option<bool>,
    protocol: Option<toml::Spanned<String>>,
    compression: Option<toml::Spanned<String>>,
    temporality: Option<toml::Spanned<String>>,
    certificate: Option<toml::Spanned<PathBuf>>,
    timeout_seconds: Option<toml::Spanned<u64>>,
    interval_seconds: Option<toml::Spanned<u64>>,
    keep_days: Option<toml::Spanned<u64>>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
}

impl FileTelemetry {
    pub(super) fn validate(self) -> Result<TelemetryConfig, InvalidValue> {
        let default = TelemetryConfig::default();
        let seconds = |value, key, most| Ok(in_range(value, key, 1..=most)?.map(Duration::from_secs));
        Ok(TelemetryConfig {
            endpoint: self.endpoint.map(parse_endpoint).transpose()?,
            headers_file: self
                .headers_file
                .map(|path| parse_absolute_path(path, "headers-file"))
                .transpose()?,
            headers_variable: self.headers_variable,
            traces: self.traces.unwrap_or(default.traces),
            metrics: self.metrics.unwrap_or(default.metrics),
            diagnostics: self.diagnostics.unwrap_or(default.diagnostics),
            protocol: parse_keyword(self.protocol, "protocol", OtlpProtocol::NAMES)?,
            compression: parse_keyword(self.compression, "compression", COMPRESSIONS)?,
            temporality: parse_keyword(self.temporality, "temporality", TEMPORALITIES)?,
            certificate: self.certificate.map(|path| parse_absolute_path(path, "certificate")).transpose()?,
            timeout: seconds(self.timeout_seconds, "timeout-seconds", 120)?,
            interval: seconds(self.interval_seconds, "interval-seconds", 86_400)?,
            retention: in_range(self.keep_days, "keep-days", 1..=36_500)?
                .map_or(default.retention, |days| Duration::from_secs(days * DAY.as_secs())),
            attributes: self.attributes,
        })
    }
}

impl Config {
    /// Returns the environment variables that the telemetry of this configuration may use. If the administrator sets anything
    /// about telemetry, the standard variables, which otherwise override the configuration, are left out.
    pub fn telemetry_environment(&self) -> EnvironmentVariables {
        let all = EnvironmentVariables::from_process();
        if self.managed.touches("telemetry") { all.without_standard_variables() } else { all }
    }
}

fn parse_endpoint(text: toml::Spanned<String>) -> Result<String, InvalidValue> {
    let invalid = |error| InvalidValue::new(text.span().start, format!("`endpoint` cannot be used: {error}"));
    endpoint::validate(text.get_ref()).map_err(invalid)
}

/// Accepts absolute paths only: the background service has no working directory to
/// resolve a relative path against.
pub(super) fn parse_absolute_path(path: toml::Spanned<PathBuf>, key: &str) -> Result<PathBuf, InvalidValue> {
    if path.get_ref().is_absolute() {
        return Ok(path.into_inner());
    }
    Err(InvalidValue::new(path.span().start, format!("the path of `{key}` must start with `/`")))
}

pub(super) fn parse_keyword<T: Copy>(
    text: Option<toml::Spanned<String>>,
    key: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, InvalidValue> {
    let Some(text) = text else { return Ok(None) };
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let known = words.iter().find(|(word, _)| word == text.get_ref());
    let message = format!("`{key}` must be one of {}", names.join(", "));
    known.map(|(_, meaning)| Some(*meaning)).ok_or(InvalidValue::new(text.span().start, message))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn invalid_values_are_refused_at_their_line_without_secrets() {
        for (line, expected) in [
            ("endpoint = \"localhost:4318\"", "`endpoint` cannot be used"),
            ("endpoint = \"http://me:secret@a\"", "`headers-file`"),
            ("headers-file = \"headers\"", "must start with `/`"),
            ("protocol = \"http/json\"", "one of http/protobuf, grpc"),
            ("compression = \"gzp\"", "one of gzip, none"),
            ("temporality = \"both\"", "one of cumulative, delta"),
            ("keep-days = 0", "`keep-days` must be between"),
            ("endpont = \"http://a\"", "did you mean `endpoint`?"),
        ] {
            let text = format!("[telemetry]\n{line}\n");
            let error = Config::parse(&text, "c.toml".as_ref()).unwrap_err().to_string();
            assert!(error.starts_with("c.toml:2: ") && error.contains(expected), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn attributes_are_free_names_and_values() {
        let text =
            "[telemetry]\nendpoint = \"https://a\"\n[telemetry.attributes]\n\"site.name\" = \"attic\"\n";
        let telemetry = Config::parse(text, "c.toml".as_ref()).unwrap().telemetry;
        assert_eq!(telemetry.attributes["site.name"], "attic");
        assert!(telemetry.traces && telemetry.metrics && !telemetry.diagnostics);
    }
}
