//! Tests the screens of a week on simulated weeks: charts, the page, Markdown and the exchange file.

#![allow(clippy::unwrap_used)]

mod charts;
mod commons;
mod documents;
mod exchange;
mod freshness;
mod integrity;
mod over_time;
mod record;
mod sentences;
mod what_if;
mod why;
mod world;
