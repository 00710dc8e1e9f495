//! Tests of profiles and presets on a local folder.

#![allow(clippy::unwrap_used)]

mod hard_links;
mod profiles;
mod world;
