//! The worker: the only process that accesses a target. Each target has its own worker process.
//!
//! A worker reads commands from its standard input and answers on its standard output. A thread reads commands all
//! the time, so that a stop command takes effect during a run. When the input ends, the supervisor is gone, and
//! the worker exits after the operation in flight. A worker never decides what to measure or when.

mod commands;
mod examination;
mod failure_report;
mod fidelity;
mod freshness;
mod integrity;
mod latency_probe;
mod message;
mod mount;
mod output;
mod round_trip;
mod runs;
mod self_check;
mod state;
mod target_mount;
mod worker_lock;

pub use commands::serve;
pub use examination::TargetExamination;
pub use message::{
    Assignment, FailureReport, FidelityStep, FreshnessAnswer, FreshnessCommand, RunReport, VERSION,
    WorkerCommand, WorkerMessage, WorkerSetup,
};
pub use worker_lock::lock_path;
