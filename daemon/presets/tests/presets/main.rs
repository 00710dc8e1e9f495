//! Tests of profiles and presets on a local folder.

#![allow(clippy::unwrap_used)]

mod hard_links;
mod profiles;
#[path = "../../../measure/tests/measure/world.rs"]
mod world;
