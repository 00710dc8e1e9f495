//! What longhaul measures and how.
//!
//! Nouns ([`model`]), numbers ([`stats`]), the door to the operating system ([`platform`]), the door through which
//! everything is timed ([`context`]), the sandbox on a target ([`arena`]), deterministic data ([`corpus`]), the
//! replayed tasks ([`workloads`]), tasks as data ([`profile`]), the same tasks beside their peers ([`bench`]), the process that does them ([`worker`]), what goes on
//! beside them ([`samplers`]), its files on the local disk and their removal ([`local`], [`inventory`]), and what many runs say
//! ([`summary`]).
//! No async runtime, no SQL, no HTTP.

pub mod arena;
pub mod bench;
pub mod bounded;
pub mod context;
pub mod corpus;
pub mod error;
pub mod inventory;
pub mod local;
pub mod lock;
pub mod model;
pub mod platform;
pub mod profile;
pub mod recorder;
pub mod samplers;
pub mod selfcheck;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod stats;
pub mod summary;
pub mod worker;
pub mod workloads;
