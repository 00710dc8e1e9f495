//! Stands in for `apple_tools.rs`: a Mac on which none of Apple's tools can be started. That file itself is tested on Linux
//! with scripts in place of the tools (`daemon/measure/src/platform/apple_tools/tests.rs`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use super::keep_awake::KeepAwake;
use crate::parse::{NfsMount, SmbSession, ThermalState};
use longhaul_model::{Mount, NegotiatedOptions, NetworkLink, Power};

/// The tools of the system.
pub struct Tools;

/// Error of a tool that is missing.
#[derive(Debug)]
pub struct Missing;

impl Tools {
    pub fn system() -> Self {
        Self
    }
}

pub fn negotiated_with(_: &Tools, _: &Mount) -> Result<NegotiatedOptions, Missing> {
    Err(Missing)
}

pub fn smb_session_with(_: &Tools, _: &Path) -> Result<SmbSession, Missing> {
    Err(Missing)
}

pub fn nfs_mount_with(_: &Tools, _: &Path) -> Result<NfsMount, Missing> {
    Err(Missing)
}

pub fn power_with(_: &Tools) -> Result<Power, Missing> {
    Err(Missing)
}

pub fn battery_percent_with(_: &Tools) -> Result<Option<f64>, Missing> {
    Err(Missing)
}

pub fn dark_wake_with(_: &Tools) -> Result<Option<bool>, Missing> {
    Err(Missing)
}

pub fn low_power_with(_: &Tools) -> Result<Option<bool>, Missing> {
    Err(Missing)
}

pub fn thermal_state_with(_: &Tools) -> Result<ThermalState, Missing> {
    Err(Missing)
}

pub fn backup_running_with(_: &Tools) -> Result<bool, Missing> {
    Err(Missing)
}

pub fn destination_facts_with(_: &Tools) -> BTreeMap<String, String> {
    BTreeMap::new()
}

pub fn link_with(_: &Tools, _: Option<IpAddr>) -> Result<Option<NetworkLink>, Missing> {
    Err(Missing)
}

pub fn keep_awake_with(_: &Tools) -> Option<KeepAwake> {
    None
}

pub fn is_rotational_with(_: &Tools, _: &Path) -> Result<Option<bool>, Missing> {
    Err(Missing)
}
