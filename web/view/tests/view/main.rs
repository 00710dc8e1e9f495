//! Tests the screens of a week on simulated weeks: charts, the page and Markdown.

#![allow(clippy::unwrap_used)]

mod charts;
mod commons;
mod documents;
mod freshness;
mod integrity;
mod over_time;
mod pair;
mod record;
mod sentences;
mod what_if;
mod why;
mod world;
