//! Prints the page of eight made-up weeks, to be looked at: `cargo run -p longhaul-report --example page > page.html`.
//! `markdown` and `beside` as the first argument print the other forms.

#![allow(clippy::unwrap_used, dead_code)]

#[path = "../tests/report/world.rs"]
mod world;

use longhaul_report::{exchange, html, html_beside, markdown};

fn main() {
    let weekly = world::last_week();
    let environment = world::environment();
    match std::env::args().nth(1).as_deref() {
        Some("markdown") => println!("{}", markdown(&weekly)),
        Some("beside") => {
            let other = exchange(&world::a_fifth(), &environment);
            println!("{}", html_beside(&weekly, &environment, &[other]));
        }
        Some("early") => println!("{}", html(&world::eight_weeks().after_days(7), &environment)),
        Some(_) | None => println!("{}", html(&weekly, &environment)),
    }
}
