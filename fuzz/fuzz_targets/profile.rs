//! Profiles: any text is read or refused, and what is read has a cost at every scale.
#![no_main]

use longhaul_measure::model::Scale;
use longhaul_measure::profile::Profile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(profile) = Profile::parse(text) {
        let _ = Scale::ALL.map(|scale| profile.at(scale).cost());
    }
});
