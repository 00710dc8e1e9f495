//! The summary of a week, to be passed on: as [`markdown`] for a forum, as one page of [`html`], as [`charts`], and as an
//! [`Exchange`] that somebody else's longhaul shows beside its own.
//!
//! Everything here is pure: a [`Weekly`](longhaul_measure::summary::Weekly) in, text out. No verdict is made here, and
//! nothing leaves that names a person, a machine, a server or a path (see [`private`]).

pub mod charts;
mod environment;
pub mod exchange;
pub mod findings;
mod markdown;
pub mod method;
pub mod page;
pub mod private;
pub mod runs;
pub mod units;
pub mod words;

pub use environment::Environment;
pub use exchange::{Exchange, ExchangeError, beside, exchange, read};
pub use markdown::{markdown, markdown_beside};
pub use page::{html, html_beside};
