//! Resolution of the name of a NAS.

use std::net::{SocketAddr, ToSocketAddrs};

use longhaul_model::NasProblem;

use crate::error::NasError;

/// Resolves a name. It can take longer than any limit, so only a thread of its own may call it.
///
/// Version 4 of the protocol comes first: many agents listen on it only, and a lost UDP packet is no refusal.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr, NasError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    let chosen = found.iter().find(|address| address.is_ipv4()).or(found.first());
    chosen.copied().ok_or_else(|| {
        let message = format!("the name {host} cannot be resolved: correct `host` in [nas]");
        NasError::new(NasProblem::Unreachable, message)
    })
}
