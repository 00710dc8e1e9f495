//! Screens about the service: its status, its round in progress, its targets, and `longhaul doctor`.

pub mod doctor;
pub mod live;
pub mod mounts;
pub mod status;
pub mod targets;
