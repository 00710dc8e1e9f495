//! The `[fleet]` section: the collection of many machines that `longhaul export fleet` writes to.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::value::InvalidValue;

/// Longest name of a site or machine.
const MAX_NAME_LENGTH: usize = 64;

/// Settings of the export to a collection of many machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetConfig {
    /// Folder or bucket of the collection. `None`: it must be given on the command line.
    pub to: Option<String>,
    /// Name of the site.
    pub site: String,
    /// Name of the machine. `None`: it has none.
    pub label: Option<String>,
    /// File with the access key of the bucket. `None`: it comes from the environment.
    pub credentials_file: Option<PathBuf>,
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self { to: None, site: "default".to_owned(), label: None, credentials_file: None }
    }
}

/// The `[fleet]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileFleet {
    to: Option<Spanned<String>>,
    site: Option<Spanned<String>>,
    label: Option<Spanned<String>>,
    credentials_file: Option<PathBuf>,
}

impl FileFleet {
    pub(super) fn validate(self) -> Result<FleetConfig, InvalidValue> {
        let default = FleetConfig::default();
        Ok(FleetConfig {
            to: self.to.map(|address| name("to", address, usize::MAX)).transpose()?,
            site: self
                .site
                .map(|site| name("site", site, MAX_NAME_LENGTH))
                .transpose()?
                .unwrap_or(default.site),
            label: self.label.map(|label| name("label", label, MAX_NAME_LENGTH)).transpose()?,
            credentials_file: self.credentials_file,
        })
    }
}

fn name(key: &str, value: Spanned<String>, max_length: usize) -> Result<String, InvalidValue> {
    let offset = value.span().start;
    let text = value.into_inner();
    match text.trim().is_empty() || text.chars().any(char::is_control) || text.len() > max_length {
        true => {
            Err(InvalidValue::new(offset, format!("`{key}` must be a text of 1 to {MAX_NAME_LENGTH} bytes")))
        }
        false => Ok(text),
    }
}
