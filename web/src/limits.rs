//! Limits of requests that more than one part of the server needs.

use std::time::Duration;

/// Maximum size of the body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 16 << 10;
/// Maximum number of requests in flight from callers without token and key, plus open event streams.
pub const MAX_REQUESTS: usize = 256;
/// Time within which a client has to send the body of a request.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(5);
