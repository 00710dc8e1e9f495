//! Sends OTLP messages to a collector.

use crate::endpoint;
use crate::environment::OtlpProtocol;
use crate::settings::OtlpEndpoint;
use crate::transport::connection::ConnectionError;
use crate::transport::grpc::GrpcTransport;
use crate::transport::http::HttpTransport;
use crate::transport::message::Message;
use crate::transport::response::ExportResult;

/// Sends messages to one address.
#[derive(Debug)]
pub struct Sender {
    transport: Transport,
    url: String,
}

#[derive(Debug)]
enum Transport {
    Http(HttpTransport),
    Grpc(Box<GrpcTransport>),
}

impl Sender {
    /// Creates a sender. It connects only when a message is sent.
    pub fn new(endpoint: &OtlpEndpoint) -> Result<Self, ConnectionError> {
        let transport = match endpoint.protocol {
            OtlpProtocol::HttpProtobuf => Transport::Http(HttpTransport::new(endpoint)?),
            OtlpProtocol::Grpc => Transport::Grpc(Box::new(GrpcTransport::new(endpoint)?)),
        };
        Ok(Self { transport, url: endpoint.url.clone() })
    }

    /// Returns the address without its query, which can contain a secret.
    pub fn display_url(&self) -> String {
        endpoint::redacted(&self.url)
    }

    /// Sends a message and returns the result. Blocks at most for the timeout of the endpoint.
    pub fn send(&self, message: &Message) -> ExportResult {
        match &self.transport {
            Transport::Http(http) => http.send(message),
            Transport::Grpc(grpc) => grpc.send(message),
        }
    }
}
