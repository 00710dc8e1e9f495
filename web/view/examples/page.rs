//! Prints the report page of eight simulated weeks, for viewing in a browser:
//! `cargo run -p longhaul-view --example page > page.html`.
//!
//! The first argument selects another form: `markdown` or `early` (after one week).

#![allow(clippy::unwrap_used, dead_code)]

#[path = "../tests/view/world.rs"]
mod world;

use longhaul_view::{html, markdown};

fn main() {
    let weekly = world::last_week();
    let environment = world::environment();
    match std::env::args().nth(1).as_deref() {
        Some("markdown") => println!("{}", markdown(&weekly)),
        Some("early") => println!("{}", html(&world::eight_weeks().after_days(7), &environment)),
        Some(_) | None => println!("{}", html(&weekly, &environment)),
    }
}
