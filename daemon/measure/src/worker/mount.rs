//! How the target is reached: its mount, the protocol with its version, and what was negotiated.

use std::io;

use super::{Message, VERSION, Worker};
use crate::model::{Mount, Negotiated, Operation, Protocol};
use crate::platform;

/// How a target is reached.
pub(super) struct Reached {
    /// Its line of the mount table, with the server's address where that is known.
    pub mount: Mount,
    /// The protocol, with its version where that was told.
    pub protocol: Protocol,
    /// What was negotiated; empty where the question was not answered.
    pub negotiated: Negotiated,
}

impl Reached {
    fn of(mount: Mount, path: &std::path::Path) -> Self {
        let negotiated = platform::negotiated(&mount);
        let protocol = platform::protocol_with(platform::protocol_below(&mount, path), &negotiated);
        let server = platform::server_address(&mount);
        Self { mount: Mount { server, ..mount }, protocol, negotiated }
    }
}

impl Worker {
    /// Finds out how the target is reached. The real path is asked for here, where a hang is booked and hurts nobody.
    pub(super) fn find_mount(&self) {
        let path = &self.setup.target.path;
        let real = self.bare_context().timed(Operation::Lookup, || std::fs::canonicalize(path));
        let mounts = platform::mounts().unwrap_or_default();
        let found = real.ok().and_then(|real| Some((Mount::of_path(&mounts, &real)?.clone(), real)));
        *self.mount.borrow_mut() = found.map(|(mount, real)| Reached::of(mount, &real));
    }

    /// Asks once more where the tool that knows the version gave no answer, as while a session is made again after sleep:
    /// else the whole round would be booked without it. Tells what came of it.
    pub(super) fn ask_again(&self) -> io::Result<()> {
        let lacks_version = |reached: &Reached| reached.protocol.lacks_version();
        if !self.mount.borrow().as_ref().is_some_and(lacks_version) {
            return Ok(());
        }
        self.find_mount();
        self.say(&self.ready())
    }

    pub(super) fn ready(&self) -> Message {
        let reached = self.mount.borrow();
        Message::Ready {
            protocol: reached.as_ref().map(|reached| reached.protocol.clone()),
            negotiated: reached.as_ref().map(|reached| reached.negotiated.clone()).unwrap_or_default(),
            server: reached.as_ref().and_then(|reached| reached.mount.server),
            version: VERSION.to_owned(),
        }
    }

    /// What tells this run's epoch apart: what was negotiated, and what this longhaul does otherwise than an earlier one.
    pub(super) fn circumstances(&self) -> Negotiated {
        let told = self.mount.borrow().as_ref().map(|reached| reached.negotiated.clone());
        let own = platform::OWN_CIRCUMSTANCES.iter();
        let own = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        told.unwrap_or_default().into_iter().chain(own).collect()
    }
}
