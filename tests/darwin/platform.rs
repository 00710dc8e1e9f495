//! Platform code of longhaul, as `daemon/measure/src/platform/mod.rs` puts it together on a Mac.
#![allow(dead_code, reason = "not every call is tested here")]

#[path = "missing_tools.rs"]
mod apple_tools;
#[path = "../../daemon/measure/src/platform/common_facts.rs"]
mod common_facts;
#[path = "../../daemon/measure/src/platform/counter_mapping.rs"]
mod counter_mapping;
#[path = "../../daemon/measure/src/platform/keep_awake.rs"]
mod keep_awake;
#[path = "../../daemon/measure/src/platform/macos.rs"]
pub mod macos;
#[path = "../../daemon/measure/src/platform/macos_counters.rs"]
pub mod macos_counters;
#[path = "../../daemon/measure/src/platform/macos_host.rs"]
pub mod macos_host;
#[path = "../../daemon/measure/src/platform/macos_probe.rs"]
pub mod macos_probe;
#[path = "../../daemon/measure/src/platform/request_totals.rs"]
mod request_totals;
#[path = "../../daemon/measure/src/platform/tool_process.rs"]
mod tool_process;
#[path = "../../daemon/measure/src/platform/types.rs"]
pub mod types;
#[path = "../../daemon/measure/src/platform/unix.rs"]
pub mod unix;

use macos::system_version;
use unix::wall_clock;
