//! Tests of the exports of many machines, and of the SQL that is shipped for them.

#![allow(clippy::unwrap_used)]

mod bucket;
mod folder;
mod hostile_bucket;
mod shipped_sql;
mod support;
