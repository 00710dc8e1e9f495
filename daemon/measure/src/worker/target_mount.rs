//! The mount of a target, with its protocol and options.

use std::path::Path;

use crate::platform;
use longhaul_model::{Mount, NegotiatedOptions, Protocol};

/// Mount of a target, with protocol and negotiated options.
pub struct TargetMount {
    /// Entry of the mount table, with the address of the server if it is known.
    pub mount: Mount,
    /// Protocol, with its version if the system reported it.
    pub protocol: Protocol,
    /// Negotiated options; empty if the system did not report them.
    pub negotiated: NegotiatedOptions,
}

impl TargetMount {
    /// Queries the negotiated options of a mount. `path` is the path of the target on it.
    pub fn query(mount: Mount, path: &Path) -> Self {
        let negotiated = platform::negotiated(&mount);
        let protocol = platform::with_negotiated_version(platform::protocol_at(&mount, path), &negotiated);
        let server = platform::server_address(&mount);
        Self { mount: Mount { server, ..mount }, protocol, negotiated }
    }

    /// Returns whether the client may keep listings of folders under leases of the server. False if that is not known.
    pub fn keeps_listings(&self) -> bool {
        self.negotiated.get("directory-leases").is_some_and(|leases| leases == "granted")
    }
}
