//! Fuzzes the parser of profiles: a parsed profile has a computable cost at every scale.
#![no_main]

use longhaul_model::Scale;
use longhaul_presets::profile::Profile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(profile) = Profile::parse(text) {
        let _ = Scale::ALL.map(|scale| profile.scaled_to(scale).cost());
    }
});
