//! Runs longhaul's platform code for macOS on Linux, against a stand-in for Apple's kernel interfaces.
//!
//! [`platform`] compiles the files `daemon/measure/src/platform/macos*.rs` unchanged. Their names `libc` and `rustix` lead to
//! this crate, which holds Apple's constants and structs ([`apple`]) and the calls ([`kernel`], [`fs`], [`mm`]). `layouts.rs`
//! is compiled on a Mac too, there against the real `libc`, so that both agree on every layout and number.
//!
//! On a Mac the crate is empty apart from that check. docs/macos.md says what a run on the stand-in proves.

mod layouts;

#[cfg(target_os = "linux")]
extern crate libc as linux_libc;
#[cfg(target_os = "linux")]
extern crate rustix as linux_rustix;
// From here on, `libc::` and `rustix::` in the files of `platform` are this crate.
#[cfg(target_os = "linux")]
extern crate self as libc;
#[cfg(target_os = "linux")]
extern crate self as rustix;

#[cfg(target_os = "linux")]
pub mod apple;
#[cfg(target_os = "linux")]
pub mod errno;
#[cfg(target_os = "linux")]
pub mod fs;
#[cfg(target_os = "linux")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod mm;
#[cfg(target_os = "linux")]
pub mod platform;
#[cfg(target_os = "linux")]
pub mod sockets;

#[cfg(target_os = "linux")]
pub use {
    apple::*,
    errno::*,
    kernel::calls::*,
    linux_rustix::{event, io, param, process, system, time},
    longhaul_measure::{parse, private_files},
};
