//! The HTML pages, with the same figures as the terminal. Everything except live updates works without JavaScript.

mod checks;
mod event_log;
mod latency;
mod latency_query;
mod live_stream;
mod method;
mod overview;
mod runs;
mod shell;
mod targets;
mod task;
mod week;
mod why;

pub use checks::checks;
pub use event_log::events_page;
pub use latency::{latency, latency_chart, read_latency_series};
pub use latency_query::{LatencyParams as SeriesParams, LatencyQuery};
pub use live_stream::stream;
pub use method::method;
pub use overview::overview;
pub use runs::{run, runs};
pub use shell::{NavItem, PageError, error_page, not_found, read_cache, render_page, requested_week};
pub use targets::{run_command, targets};
pub use task::{first_task, task, task_chart};
pub use week::{badge, download, newest_week, week, week_chart};
pub use why::{WhatIfParams, why};
