//! Tests of the web server from outside: a real server on a real port, with synthetic data.

#![allow(clippy::unwrap_used)]

mod browser;
mod client;
mod crowd;
mod glance;
mod hostile;
mod interface;
mod live;
mod memory;
#[path = "../../../daemon/service/tests/service/own_process.rs"]
mod own_process;
mod pages;
mod requests;
mod status;
mod world;
