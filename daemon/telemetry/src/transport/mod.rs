//! Sends one message to a collector over HTTP or gRPC, and reads its answer.

pub mod connection;
pub(crate) mod grpc;
pub(crate) mod http;
pub mod message;
pub mod response;
pub mod sender;
