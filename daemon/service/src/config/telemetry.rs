//! What is exported to an OpenTelemetry collector. The standard variables stand above it; they are read when the exporter
//! starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_telemetry::endpoint;
use longhaul_telemetry::environment::Compression;
use longhaul_telemetry::metrics::Temporality;
use longhaul_telemetry::settings::Configured;
use serde::Deserialize;

use super::{Wrong, within};

/// Words of the configuration and what they mean.
const COMPRESSIONS: &[(&str, Compression)] = &[("gzip", Compression::Gzip), ("none", Compression::None)];
const TEMPORALITIES: &[(&str, Temporality)] =
    &[("cumulative", Temporality::Cumulative), ("delta", Temporality::Delta)];

/// `[telemetry]`, word for word.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileTelemetry {
    endpoint: Option<toml::Spanned<String>>,
    headers_file: Option<toml::Spanned<PathBuf>>,
    headers_variable: Option<String>,
    traces: Option<bool>,
    metrics: Option<bool>,
    diagnostics: Option<bool>,
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
    pub(super) fn read(self) -> Result<Configured, Wrong> {
        let default = Configured::default();
        let seconds = |value, key, most| Ok(within(value, key, 1..=most)?.map(Duration::from_secs));
        Ok(Configured {
            endpoint: self.endpoint.map(address).transpose()?,
            headers_file: self.headers_file.map(|path| absolute(path, "headers-file")).transpose()?,
            headers_variable: self.headers_variable,
            traces: self.traces.unwrap_or(default.traces),
            metrics: self.metrics.unwrap_or(default.metrics),
            diagnostics: self.diagnostics.unwrap_or(default.diagnostics),
            compression: word(self.compression, "compression", COMPRESSIONS)?,
            temporality: word(self.temporality, "temporality", TEMPORALITIES)?,
            certificate: self.certificate.map(|path| absolute(path, "certificate")).transpose()?,
            timeout: seconds(self.timeout_seconds, "timeout-seconds", 120)?,
            interval: seconds(self.interval_seconds, "interval-seconds", 86_400)?,
            keep: within(self.keep_days, "keep-days", 1..=36_500)?
                .map_or(default.keep, |days| Duration::from_secs(days * 86_400)),
            attributes: self.attributes,
        })
    }
}

fn address(text: toml::Spanned<String>) -> Result<String, Wrong> {
    let wrong =
        |error| Wrong { at: text.span().start, message: format!("`endpoint` cannot be used: {error}") };
    endpoint::checked(text.get_ref()).map_err(wrong)
}

/// The service has no folder of its own that a path could begin in.
fn absolute(path: toml::Spanned<PathBuf>, key: &str) -> Result<PathBuf, Wrong> {
    if path.get_ref().is_absolute() {
        return Ok(path.into_inner());
    }
    Err(Wrong { at: path.span().start, message: format!("the path of `{key}` has to begin with `/`") })
}

fn word<T: Copy>(
    text: Option<toml::Spanned<String>>,
    key: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, Wrong> {
    let Some(text) = text else { return Ok(None) };
    let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let known = words.iter().find(|(word, _)| word == text.get_ref());
    let message = format!("`{key}` has to be one of {}", names.join(", "));
    known.map(|(_, meaning)| Some(*meaning)).ok_or(Wrong { at: text.span().start, message })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn what_cannot_be_used_is_refused_at_its_line_and_never_shown() {
        for (line, said) in [
            ("endpoint = \"localhost:4318\"", "`endpoint` cannot be used"),
            ("endpoint = \"http://me:secret@a\"", "`headers-file`"),
            ("headers-file = \"headers\"", "has to begin with `/`"),
            ("compression = \"gzp\"", "one of gzip, none"),
            ("temporality = \"both\"", "one of cumulative, delta"),
            ("keep-days = 0", "`keep-days` has to be between"),
            ("endpont = \"http://a\"", "did you mean `endpoint`?"),
        ] {
            let text = format!("[telemetry]\n{line}\n");
            let error = Config::parse(&text, "c.toml".as_ref()).unwrap_err().to_string();
            assert!(error.starts_with("c.toml:2: ") && error.contains(said), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn attributes_are_the_persons_own() {
        let text =
            "[telemetry]\nendpoint = \"https://a\"\n[telemetry.attributes]\n\"site.name\" = \"attic\"\n";
        let telemetry = Config::parse(text, "c.toml".as_ref()).unwrap().telemetry;
        assert_eq!(telemetry.attributes["site.name"], "attic");
        assert!(telemetry.traces && telemetry.metrics && !telemetry.diagnostics);
    }
}
