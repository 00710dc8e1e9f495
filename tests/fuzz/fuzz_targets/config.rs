//! Fuzzes the parser of the configuration file.
#![no_main]

use std::path::Path;

use longhaul_service::config::Config;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = Config::parse(text, Path::new("config.toml"));
});
