//! Serves the pages with synthetic data, to look at and to measure: `cargo run --release -p longhaul-web --example
//! face -- FOLDER PORT [WEEKS] [live]`. The database is kept in the folder, so the next start is fast; `live`
//! simulates rounds.

#![allow(clippy::unwrap_used)]

#[path = "../tests/web/world.rs"]
mod world;

use std::path::PathBuf;
use std::sync::Arc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("usage: face FOLDER PORT [WEEKS] [live]"));
    let port = arguments.next().map_or(0, |port| port.parse().expect("a port"));
    let weeks = arguments.next().map_or(8, |weeks| weeks.parse().expect("a number of weeks"));
    let is_live = arguments.next().is_some();
    let path = folder.join("longhaul.sqlite");
    let database = if path.exists() { path } else { world::database(&folder, weeks) };
    let control = world::control(database);
    let handle = Arc::clone(&control.service);
    println!("http://127.0.0.1:{port}/ is ready; the token is {}", world::TOKEN);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if is_live {
            tokio::spawn(longhaul_demo::repeat_rounds(handle));
        }
        world::serve(port, control, std::future::pending()).await;
    });
}
