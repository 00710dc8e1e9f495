//! More behaviours of a [`Server`]: conversations over SMTP, and TLS.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::support::tcp_server::{Server, http_answer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Certificate of [`Server::encrypted`], which is its own authority, for 127.0.0.1.
pub const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/certificate.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/key.pem");

impl Server {
    /// Sends these lines one after the other: the first at once, each other after something was received.
    pub fn conversing(lines: &[&'static str]) -> Self {
        let lines = lines.to_vec();
        Self::serve(move |mut stream, _| {
            let mut buffer = [0; 4096];
            for line in &lines {
                stream.write_all(line.as_bytes())?;
                if stream.read(&mut buffer)? == 0 {
                    return Ok(());
                }
            }
            while stream.read(&mut buffer)? > 0 {}
            Ok(())
        })
    }

    /// Closes each connection after the request.
    pub fn closing() -> Self {
        Self::serve(|mut stream, log| log.receive(&mut stream).map(drop))
    }

    /// Accepts every request over TLS, with [`CERTIFICATE`].
    pub fn encrypted() -> Self {
        let certificates = CertificateDer::pem_file_iter(CERTIFICATE).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(KEY).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config =
            Arc::new(builder.unwrap().with_no_client_auth().with_single_cert(certificates, key).unwrap());
        Self::serve(move |stream, log| {
            let connection = ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
            let mut stream = StreamOwned::new(connection, stream);
            log.receive(&mut stream)?;
            stream.write_all(&http_answer("200 OK", ""))
        })
    }

    /// Returns whether a client has connected.
    pub fn was_contacted(&self) -> bool {
        self.log.is_contacted.load(Ordering::SeqCst)
    }
}
