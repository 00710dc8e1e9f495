//! Every screen as a [`Document`], built once in [`screens`] and printed by one of the renderers in [`render`]: for a terminal, as
//! [`markdown`] for a forum, or as HTML. Also [`charts`] and the JSON forms ([`json`]).
//!
//! All functions are pure: values in, text out. This crate makes no verdicts. What is shared contains no names of users,
//! machines, servers and paths (see [`redaction`]).
//!
//! ```
//! use longhaul_analysis::summary::{Week, WeeklyQuery, summarize_week};
//! use longhaul_model::History;
//!
//! let query = WeeklyQuery { week: Week::of_day(18_700), scale: None, since: None, zone: jiff::tz::TimeZone::UTC };
//! let weekly = summarize_week(&History::default(), &query);
//! assert!(longhaul_view::markdown(&weekly).starts_with("# "));
//! ```

use longhaul_analysis::summary::WeeklySummary;
use screens::week::{WeekReport, week};

pub mod charts;
pub mod document;
mod environment;
pub mod event_words;
pub mod json;
pub mod page;
pub mod redaction;
pub mod render;
pub mod screens;
pub mod table;
pub mod text;
pub mod time;
pub mod units;

pub use document::Document;
pub use environment::{Environment, negotiated_until};
pub use page::{document_page, html, share_card};
pub use screens::words;
pub use table::Table;
pub use text::{Text, Tone};

/// Renders the report of a week as Markdown for a forum, without private data.
pub fn markdown(weekly: &WeeklySummary) -> String {
    render::markdown::render(&week(&WeekReport::new(&redaction::redact_week(weekly))))
}
