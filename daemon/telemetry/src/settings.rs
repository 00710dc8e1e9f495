//! What is exported, where to and how: from the configuration and the environment.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_measure::bounded;
use longhaul_store::Signal;

use crate::Added;
use crate::endpoint::{self, EndpointError};
use crate::environment::{Compression, Environment, Scope, VariableError};
use crate::headers::{Headers, HeadersError};
use crate::metrics::Temporality;

/// How long an answer may take unless somebody says otherwise (OpenTelemetry's default).
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often what is so just now is told (OpenTelemetry's default).
const INTERVAL: Duration = Duration::from_secs(60);
/// The name of the service's own log among the signals.
pub const LOGS: &str = "logs";

/// `[telemetry]` of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// Where the collector is; `None`: nothing is exported unless a variable says where to.
    pub endpoint: Option<String>,
    /// A file with headers.
    pub headers_file: Option<PathBuf>,
    /// A variable with headers.
    pub headers_variable: Option<String>,
    /// Whether rounds are sent as traces.
    pub traces: bool,
    /// Whether figures and histograms are sent as metrics.
    pub metrics: bool,
    /// Whether the service's own log and spans are sent.
    pub diagnostics: bool,
    /// How bodies are sent.
    pub compression: Option<Compression>,
    /// Whether counts are told as totals.
    pub temporality: Option<Temporality>,
    /// The certificates that are trusted, in a PEM file; `None`: those of the public authorities.
    pub certificate: Option<PathBuf>,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// How often what is so just now is told.
    pub interval: Option<Duration>,
    /// How long a round waits before it is given up.
    pub keep: Duration,
    /// What is added to the resource.
    pub attributes: Added,
}

impl Default for Configured {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers_file: None,
            headers_variable: None,
            traces: true,
            metrics: true,
            diagnostics: false,
            compression: None,
            temporality: None,
            certificate: None,
            timeout: None,
            interval: None,
            keep: Duration::from_secs(60 * 86_400),
            attributes: BTreeMap::new(),
        }
    }
}

/// What is exported, where to and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The way of the rounds as traces; `None`: they are not sent.
    pub traces: Option<Route>,
    /// The way of the metrics.
    pub metrics: Option<Route>,
    /// The ways of what the service says of itself.
    pub diagnosed: Option<Diagnosed>,
    /// Whether counts are told as totals.
    pub temporality: Temporality,
    /// How often what is so just now is told.
    pub interval: Duration,
    /// How long a round waits before it is given up.
    pub keep: Duration,
    /// What is added to the resource.
    pub attributes: Added,
}

/// The ways of what the service says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosed {
    /// Of its log.
    pub logs: Route,
    /// Of its spans.
    pub spans: Route,
}

/// The way of one signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The address.
    pub address: String,
    /// What goes with every request.
    pub headers: Headers,
    /// How bodies are sent.
    pub compression: Compression,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The certificates that are trusted, as PEM; `None`: those of the public authorities.
    pub certificates: Option<Vec<u8>>,
}

/// Why nothing can be exported. Nothing secret is in it.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A variable has no meaning.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The address has no meaning.
    #[error("{0} cannot be used: {1}")]
    Endpoint(String, EndpointError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}. Check `{key}` in the configuration", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Where it is named.
        key: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file with secrets that others may read.
    #[error("{} may be read by others, and holds headers: `chmod 600` it", .0.display())]
    Open(PathBuf),
    /// A file with headers that cannot be understood.
    #[error("{}: {source}", path.display())]
    Headers {
        /// The file, or the variable.
        path: PathBuf,
        /// What is wrong.
        source: HeadersError,
    },
    /// A variable that is named in the configuration is not there.
    #[error("the variable {0}, which `headers-variable` in the configuration names, is not set")]
    NoVariable(String),
}

impl Settings {
    /// What configuration and environment say; `None`: nobody says where to. Reads the files that are named.
    ///
    /// # Errors
    ///
    /// [`SettingsError`].
    pub fn of(configured: &Configured, environment: &Environment) -> Result<Option<Self>, SettingsError> {
        let draft = Draft { configured, environment };
        let route = |signal: &str, wanted: bool| match wanted && !environment.is_off(signal) {
            true => draft.route(signal),
            false => Ok(None),
        };
        let settings = Self {
            traces: route(Signal::Traces.name(), configured.traces)?,
            metrics: route(Signal::Metrics.name(), configured.metrics)?,
            diagnosed: route(LOGS, configured.diagnostics)?
                .zip(route(Signal::Traces.name(), configured.diagnostics)?)
                .map(|(logs, spans)| Diagnosed { logs, spans }),
            temporality: environment.temporality()?.or(configured.temporality).unwrap_or_default(),
            interval: environment.interval()?.or(configured.interval).unwrap_or(INTERVAL),
            keep: configured.keep,
            attributes: configured.attributes.clone().into_iter().chain(environment.attributes()).collect(),
        };
        let is_any = settings.traces.is_some() || settings.metrics.is_some() || settings.diagnosed.is_some();
        Ok(is_any.then_some(settings))
    }

    /// The way of a signal.
    pub fn route(&self, signal: Signal) -> Option<&Route> {
        match signal {
            Signal::Traces => self.traces.as_ref(),
            Signal::Metrics | Signal::Samples => self.metrics.as_ref(),
        }
    }
}

struct Draft<'a> {
    configured: &'a Configured,
    environment: &'a Environment,
}

impl Draft<'_> {
    fn route(&self, signal: &str) -> Result<Option<Route>, SettingsError> {
        let Some(address) = self.address(signal)? else { return Ok(None) };
        let (configured, environment) = (self.configured, self.environment);
        environment.check_protocol(signal)?;
        Ok(Some(Route {
            address,
            headers: self.headers(signal)?,
            compression: environment.compression(signal)?.or(configured.compression).unwrap_or_default(),
            timeout: environment.timeout(signal)?.or(configured.timeout).unwrap_or(TIMEOUT),
            certificates: self.certificates(signal)?,
        }))
    }

    fn address(&self, signal: &str) -> Result<Option<String>, SettingsError> {
        if let Some((name, value, scope)) = self.environment.endpoint(signal) {
            let wrong = |error| SettingsError::Endpoint(format!("the address in {name}"), error);
            let address = endpoint::checked(value).map_err(wrong)?;
            return Ok(Some(match scope {
                Scope::All => endpoint::below(&address, signal),
                Scope::Signal => address,
            }));
        }
        let wrong = |error| SettingsError::Endpoint("`endpoint` in the configuration".to_owned(), error);
        let base = self.configured.endpoint.as_deref().map(endpoint::checked).transpose().map_err(wrong)?;
        Ok(base.map(|base| endpoint::below(&base, signal)))
    }

    fn headers(&self, signal: &str) -> Result<Headers, SettingsError> {
        let mut headers = match &self.configured.headers_file {
            Some(path) => headers_of_file(path)?,
            None => Headers::default(),
        };
        if let Some(name) = &self.configured.headers_variable {
            let text = self.environment.get(name).ok_or_else(|| SettingsError::NoVariable(name.clone()))?;
            let read = Headers::from_variable(text);
            headers =
                headers.and(&read.map_err(|source| SettingsError::Headers { path: name.into(), source })?);
        }
        let own = self.environment.headers(signal)?.unwrap_or_default();
        Ok(headers.and(&own))
    }

    fn certificates(&self, signal: &str) -> Result<Option<Vec<u8>>, SettingsError> {
        let named = self.environment.certificate(signal).map(PathBuf::from);
        let path = named.or_else(|| self.configured.certificate.clone());
        path.map(|path| {
            bounded::read(&path).map_err(|source| SettingsError::Read { path, key: "certificate", source })
        })
        .transpose()
    }
}

fn headers_of_file(path: &Path) -> Result<Headers, SettingsError> {
    let unreadable = |source| SettingsError::Read { path: path.to_owned(), key: "headers-file", source };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(SettingsError::Open(path.to_owned()));
    }
    let text = bounded::read_text(path).map_err(unreadable)?;
    Headers::from_file(&text).map_err(|source| SettingsError::Headers { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    fn at(endpoint: &str) -> Configured {
        Configured { endpoint: Some(endpoint.to_owned()), ..Configured::default() }
    }

    #[test]
    fn nothing_is_exported_unless_somebody_says_where_to() {
        let nobody = Settings::of(&Configured::default(), &Environment::default()).unwrap();
        assert_eq!(nobody, None);
        let settings = Settings::of(&at("http://a:4318/"), &Environment::default()).unwrap().unwrap();
        assert_eq!(settings.traces.unwrap().address, "http://a:4318/v1/traces");
        assert_eq!(settings.metrics.unwrap().address, "http://a:4318/v1/metrics");
        assert_eq!(settings.diagnosed, None, "the own log only if that is asked for");
    }

    #[test]
    fn the_environment_stands_above_the_file() {
        let variables = environment(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://b"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://c/m"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
        ]);
        let settings = Settings::of(&at("http://a"), &variables).unwrap().unwrap();
        assert_eq!(settings.traces.unwrap().address, "https://b/v1/traces");
        assert_eq!(settings.metrics.unwrap().address, "https://c/m");
        assert_eq!(settings.temporality, Temporality::Delta);
        let off = environment(&[("OTEL_SDK_DISABLED", "true")]);
        assert_eq!(Settings::of(&at("http://a"), &off).unwrap(), None);
    }

    #[test]
    fn a_file_of_secrets_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("headers");
        std::fs::write(&path, "authorization: Bearer secret\n").unwrap();
        let configured = Configured { headers_file: Some(path.clone()), ..at("http://a") };
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o644);
        let error = Settings::of(&configured, &Environment::default()).unwrap_err();
        assert!(matches!(error, SettingsError::Open(_)), "{error}");
        mode(0o600);
        let settings = Settings::of(&configured, &Environment::default()).unwrap().unwrap();
        assert_eq!(settings.traces.as_ref().unwrap().headers.iter().count(), 1);
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
