//! Fuzzes the parsers of Apple's tools for power, heat and routes.
#![no_main]

use longhaul_measure::parse;

libfuzzer_sys::fuzz_target!(|output: &str| {
    let _ = (parse::pmset(output), parse::pmset_percent(output), parse::pmset_low_power(output));
    let _ =
        (parse::pmset_thermal_state(output), parse::tmutil_running(output), parse::diskutil_spins(output));
    let _ = (parse::route_interface(output), parse::ifconfig(output), parse::hardware_ports(output));
});
