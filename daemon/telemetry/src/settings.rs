//! The settings of the telemetry export, from the configuration file and the environment variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::private_files;
use longhaul_measure::private_files::MAX_BYTES;
use longhaul_model::time::DAY;
use longhaul_store::Signal;

use crate::ResourceAttributes;
use crate::endpoint::{self, EndpointError};
use crate::environment::{Compression, EnvironmentVariables, OtlpProtocol, SHARED_ENDPOINT, VariableError};
use crate::headers::{Headers, HeadersError};
use crate::metrics::Temporality;

/// Default timeout of a request (OpenTelemetry's default).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default interval at which the current state is sent (OpenTelemetry's default).
const INTERVAL: Duration = Duration::from_secs(60);
/// Signal name of the service's own log.
pub const LOGS_SIGNAL: &str = "logs";

/// The section `[telemetry]` of the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryConfig {
    /// Base address of the collector. `None`: nothing is exported unless an environment variable sets an
    /// address.
    pub endpoint: Option<String>,
    /// File with HTTP headers. `None`: no file.
    pub headers_file: Option<PathBuf>,
    /// Name of an environment variable with HTTP headers. `None`: no variable.
    pub headers_variable: Option<String>,
    /// True if rounds are exported as traces.
    pub traces: bool,
    /// True if figures, histograms and samples are exported as metrics.
    pub metrics: bool,
    /// True if the service's own log and spans are exported.
    pub diagnostics: bool,
    /// Protocol. `None`: the default, http/protobuf.
    pub protocol: Option<OtlpProtocol>,
    /// Compression of request bodies. `None`: the default, gzip.
    pub compression: Option<Compression>,
    /// Temporality of counts and histograms. `None`: the default, cumulative.
    pub temporality: Option<Temporality>,
    /// PEM file with trusted certificates. `None`: the public certificate authorities.
    pub certificate: Option<PathBuf>,
    /// Timeout of a request. `None`: the default, 10 seconds.
    pub timeout: Option<Duration>,
    /// Interval at which the current state is sent. `None`: the default, 60 seconds.
    pub interval: Option<Duration>,
    /// Maximum age of a pending round or step; an older one is not sent any more.
    pub retention: Duration,
    /// Attributes added to the resource.
    pub attributes: ResourceAttributes,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers_file: None,
            headers_variable: None,
            traces: true,
            metrics: true,
            diagnostics: false,
            protocol: None,
            compression: None,
            temporality: None,
            certificate: None,
            timeout: None,
            interval: None,
            retention: 60 * DAY,
            attributes: BTreeMap::new(),
        }
    }
}

/// The resolved settings of the telemetry export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportSettings {
    /// Endpoint for rounds as traces. `None`: traces are not sent.
    pub traces: Option<OtlpEndpoint>,
    /// Endpoint for metrics and samples. `None`: metrics are not sent.
    pub metrics: Option<OtlpEndpoint>,
    /// Endpoints for the service's own log and spans. `None`: they are not sent.
    pub diagnostics: Option<DiagnosticsEndpoints>,
    /// Temporality of counts and histograms.
    pub temporality: Temporality,
    /// Interval at which the current state is sent.
    pub interval: Duration,
    /// Maximum age of a pending round or step; an older one is not sent any more.
    pub retention: Duration,
    /// Attributes added to the resource.
    pub attributes: ResourceAttributes,
}

/// Endpoints for the service's own log and spans.
#[derive(Debug, Clone, PartialEq)]
pub struct DiagnosticsEndpoints {
    /// Endpoint for log lines.
    pub logs: OtlpEndpoint,
    /// Endpoint for spans.
    pub spans: OtlpEndpoint,
}

/// Address and request settings of one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct OtlpEndpoint {
    /// Protocol.
    pub protocol: OtlpProtocol,
    /// Full address of the signal; the base address with gRPC.
    pub url: String,
    /// HTTP headers of every request.
    pub headers: Headers,
    /// Compression of request bodies.
    pub compression: Compression,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Trusted certificates in PEM format. `None`: the public certificate authorities.
    pub certificates: Option<Vec<u8>>,
}

/// An error in the export settings. The message contains no secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An environment variable has an invalid value.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The address of the collector is invalid. Holds where it is set and the problem.
    #[error("{0} is invalid: {1}")]
    Endpoint(String, EndpointError),
    /// A file could not be read.
    #[error("cannot read {}: {source}. Check {setting}", path.display())]
    UnreadableFile {
        /// Path of the file.
        path: PathBuf,
        /// Setting that contains the path.
        setting: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The text of the headers is invalid.
    #[error("{}: {source}", path.display())]
    Headers {
        /// Path of the file, or name of the environment variable.
        path: PathBuf,
        /// Description of the problem.
        source: HeadersError,
    },
    /// The environment variable set as `headers-variable` does not exist.
    #[error("the variable {0}, set as `headers-variable` in the configuration, does not exist or is empty")]
    MissingVariable(String),
}

impl ExportSettings {
    /// Combines the configuration and the environment and reads the headers and certificate files. `None`: no
    /// address is set or all signals are disabled.
    pub fn resolve(
        configured: &TelemetryConfig,
        environment: &EnvironmentVariables,
    ) -> Result<Option<Self>, SettingsError> {
        let resolver = SettingsResolver { config: configured, environment };
        let endpoint = |signal: &str, is_enabled: bool| match is_enabled && !environment.is_disabled(signal) {
            true => resolver.endpoint(signal),
            false => Ok(None),
        };
        let settings = Self {
            traces: endpoint(Signal::Traces.name(), configured.traces)?,
            metrics: endpoint(Signal::Metrics.name(), configured.metrics)?,
            diagnostics: endpoint(LOGS_SIGNAL, configured.diagnostics)?
                .zip(endpoint(Signal::Traces.name(), configured.diagnostics)?)
                .map(|(logs, spans)| DiagnosticsEndpoints { logs, spans }),
            temporality: environment.temporality()?.or(configured.temporality).unwrap_or_default(),
            interval: environment.interval()?.or(configured.interval).unwrap_or(INTERVAL),
            retention: configured.retention,
            attributes: configured.attributes.clone().into_iter().chain(environment.attributes()).collect(),
        };
        let is_any =
            settings.traces.is_some() || settings.metrics.is_some() || settings.diagnostics.is_some();
        Ok(is_any.then_some(settings))
    }

    /// Returns the endpoint of a signal. `None`: the signal is not sent.
    pub fn endpoint(&self, signal: Signal) -> Option<&OtlpEndpoint> {
        match signal {
            Signal::Traces => self.traces.as_ref(),
            Signal::Metrics | Signal::Samples => self.metrics.as_ref(),
        }
    }
}

struct SettingsResolver<'a> {
    config: &'a TelemetryConfig,
    environment: &'a EnvironmentVariables,
}

impl SettingsResolver<'_> {
    fn endpoint(&self, signal: &str) -> Result<Option<OtlpEndpoint>, SettingsError> {
        let (configured, environment) = (self.config, self.environment);
        let protocol = environment.protocol(signal)?.or(configured.protocol).unwrap_or_default();
        let Some(url) = self.url(signal, protocol)? else { return Ok(None) };
        Ok(Some(OtlpEndpoint {
            protocol,
            url,
            headers: self.headers(signal)?,
            compression: environment.compression(signal)?.or(configured.compression).unwrap_or_default(),
            timeout: environment.timeout(signal)?.or(configured.timeout).unwrap_or(TIMEOUT),
            certificates: self.certificates(signal)?,
        }))
    }

    fn url(&self, signal: &str, protocol: OtlpProtocol) -> Result<Option<String>, SettingsError> {
        let url_of_signal = |base: String| match protocol {
            OtlpProtocol::HttpProtobuf => endpoint::signal_url(&base, signal),
            OtlpProtocol::Grpc => base,
        };
        if let Some((name, value)) = self.environment.endpoint(signal) {
            let wrong = |error| SettingsError::Endpoint(format!("the address in {name}"), error);
            let address = endpoint::validate(value).map_err(wrong)?;
            return Ok(Some(if name == SHARED_ENDPOINT { url_of_signal(address) } else { address }));
        }
        let wrong = |error| SettingsError::Endpoint("`endpoint` in the configuration".to_owned(), error);
        let base = self.config.endpoint.as_deref().map(endpoint::validate).transpose().map_err(wrong)?;
        Ok(base.map(url_of_signal))
    }

    fn headers(&self, signal: &str) -> Result<Headers, SettingsError> {
        let mut headers = match &self.config.headers_file {
            Some(path) => read_headers_file(path)?,
            None => Headers::default(),
        };
        if let Some(name) = &self.config.headers_variable {
            let text =
                self.environment.get(name).ok_or_else(|| SettingsError::MissingVariable(name.clone()))?;
            let read = Headers::from_variable(text);
            headers = headers
                .merged_with(&read.map_err(|source| SettingsError::Headers { path: name.into(), source })?);
        }
        let own = self.environment.headers(signal)?.unwrap_or_default();
        Ok(headers.merged_with(&own))
    }

    fn certificates(&self, signal: &str) -> Result<Option<Vec<u8>>, SettingsError> {
        let (setting, path) = match (self.environment.certificate(signal), &self.config.certificate) {
            (Some((name, path)), _) => (format!("the variable {name}"), PathBuf::from(path)),
            (None, Some(path)) => ("`certificate` in the configuration".to_owned(), path.clone()),
            (None, None) => return Ok(None),
        };
        match private_files::read(&path, MAX_BYTES) {
            Ok(certificates) => Ok(Some(certificates)),
            Err(source) => Err(SettingsError::UnreadableFile { path, setting, source }),
        }
    }
}

fn read_headers_file(path: &Path) -> Result<Headers, SettingsError> {
    let setting = "`headers-file` in the configuration".to_owned();
    let unreadable = |source| SettingsError::UnreadableFile { path: path.to_owned(), setting, source };
    let text = private_files::read_secret(path).map_err(unreadable)?;
    Headers::from_file(&text).map_err(|source| SettingsError::Headers { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> EnvironmentVariables {
        EnvironmentVariables::from_pairs(
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    fn at(endpoint: &str) -> TelemetryConfig {
        TelemetryConfig { endpoint: Some(endpoint.to_owned()), ..TelemetryConfig::default() }
    }

    #[test]
    fn nothing_is_exported_without_an_endpoint() {
        let unset =
            ExportSettings::resolve(&TelemetryConfig::default(), &EnvironmentVariables::default()).unwrap();
        assert_eq!(unset, None);
        let settings = ExportSettings::resolve(&at("http://a:4318/"), &EnvironmentVariables::default())
            .unwrap()
            .unwrap();
        assert_eq!(settings.traces.unwrap().url, "http://a:4318/v1/traces");
        assert_eq!(settings.metrics.unwrap().url, "http://a:4318/v1/metrics");
        assert_eq!(settings.diagnostics, None, "diagnostics are off by default");
    }

    #[test]
    fn environment_overrides_the_configuration() {
        let variables = environment(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://b"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://c/m"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ]);
        let settings = ExportSettings::resolve(&at("http://a"), &variables).unwrap().unwrap();
        assert_eq!(settings.traces.unwrap().url, "https://b/v1/traces");
        assert_eq!(settings.metrics.unwrap().url, "https://c/m");
        assert_eq!(settings.temporality, Temporality::Delta);
        let off = environment(&[("OTEL_SDK_DISABLED", "true")]);
        assert_eq!(ExportSettings::resolve(&at("http://a"), &off).unwrap(), None);
    }

    #[test]
    fn grpc_endpoint_has_no_path() {
        let configured = TelemetryConfig { protocol: Some(OtlpProtocol::Grpc), ..at("http://a:4317") };
        let variables = environment(&[("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf")]);
        let settings = ExportSettings::resolve(&configured, &variables).unwrap().unwrap();
        assert_eq!(settings.traces.unwrap().url, "http://a:4317");
        assert_eq!(settings.metrics.unwrap().url, "http://a:4317/v1/metrics");
    }

    #[test]
    fn unreadable_certificate_is_reported_with_its_setting() {
        let configured = TelemetryConfig { certificate: Some("/nonexistent/a".into()), ..at("http://a") };
        let error = |variables: &EnvironmentVariables| {
            ExportSettings::resolve(&configured, variables).unwrap_err().to_string()
        };
        let key = error(&EnvironmentVariables::default());
        assert!(key.ends_with("Check `certificate` in the configuration"), "{key}");
        let variable = error(&environment(&[("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent/b")]));
        assert!(variable.ends_with("Check the variable OTEL_EXPORTER_OTLP_CERTIFICATE"), "{variable}");
    }

    #[test]
    fn headers_file_readable_by_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(&path, "authorization: Bearer secret\n").unwrap();
        let configured = TelemetryConfig { headers_file: Some(path.clone()), ..at("http://a") };
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o644);
        let error = ExportSettings::resolve(&configured, &EnvironmentVariables::default()).unwrap_err();
        assert!(error.to_string().contains("other users can read it"), "{error}");
        mode(0o600);
        let settings =
            ExportSettings::resolve(&configured, &EnvironmentVariables::default()).unwrap().unwrap();
        assert_eq!(settings.traces.as_ref().unwrap().headers.iter().count(), 1);
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
