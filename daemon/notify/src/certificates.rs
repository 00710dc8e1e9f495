//! Certificates that a channel trusts instead of the public authorities.

use std::path::Path;
use std::sync::Arc;

use longhaul_measure::private_files;
use longhaul_measure::private_files::MAX_BYTES;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::outcome::SettingsError;

/// Trusted certificates. `None`: the public authorities.
pub type TrustedCertificates = Option<Vec<CertificateDer<'static>>>;

/// Reads the certificates of a channel.
///
/// # Errors
///
/// If the file cannot be read or contains no certificate.
pub fn read(path: Option<&Path>) -> Result<TrustedCertificates, SettingsError> {
    let Some(path) = path else { return Ok(None) };
    let pem = private_files::read(path, MAX_BYTES).map_err(|source| SettingsError::UnreadableFile {
        key: "certificate".to_owned(),
        path: path.to_owned(),
        source,
    })?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if found.is_empty() { Err(SettingsError::NoCertificate(path.to_owned())) } else { Ok(Some(found)) }
}

/// Returns the settings of an encrypted connection.
///
/// # Errors
///
/// If rustls supports none of its own protocol versions.
pub fn client_config(trusted: &TrustedCertificates) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    match trusted {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(certificates) => drop(roots.add_parsable_certificates(certificates.iter().cloned())),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
