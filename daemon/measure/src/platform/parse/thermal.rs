//! Whether a Mac slows itself down because it is too hot.

/// What `pmset -g therm` says (PowerManagement pmset/pmset.m, `show_thermal_warning_level` and its neighbours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heat {
    /// Nothing was recorded. On Apple silicon that is so however hot it is (exelban/stats#749, macmade/Hot#80).
    NotRecorded,
    /// The processors are not slowed down.
    Cool,
    /// They are.
    Hot,
}

/// What is recorded of heat: levels, and what the processors are limited to. `None`: this is not that output.
pub fn pmset_heat(output: &str) -> Option<Heat> {
    let mut heat = None;
    for line in output.lines().map(str::trim) {
        let found = match line.split_once('=') {
            Some((name, value)) => recorded(name.trim_end(), value.trim().parse().ok()?),
            None if line.starts_with("Note: No ") => Some(Heat::NotRecorded),
            None => None,
        };
        heat = heat.max(found);
    }
    heat
}

/// A level is behind the time of the question in its line: 0 normal, 255 not known, all others warn (IOKit
/// pwr_mgt/IOPM.h). Limits are in percent.
fn recorded(name: &str, value: u32) -> Option<Heat> {
    let is_level = name.ends_with("Thermal Warning Level") || name.ends_with("Performance Warning Level");
    match (name, value) {
        ("CPU_Speed_Limit" | "CPU_Scheduler_Limit", percent) if percent < 100 => Some(Heat::Hot),
        ("CPU_Speed_Limit", _) => Some(Heat::Cool),
        (_, 0) if is_level => Some(Heat::Cool),
        (_, 255) if is_level => Some(Heat::NotRecorded),
        _ if is_level => Some(Heat::Hot),
        _ => None,
    }
}

/// The state of `com.apple.system.thermalpressurelevel` (libkern/OSThermalNotification.h): 0 nominal, 1 moderate, 2 heavy,
/// 3 trapping, 4 sleeping. At moderate the fans run and background work is slowed; from heavy on everything is.
pub fn is_heavy_pressure(level: u64) -> Option<bool> {
    match level {
        0 | 1 => Some(false),
        2..=4 => Some(true),
        _ => None,
    }
}

/// Whether the machine is too hot, by both sources: one that says so is enough.
pub fn is_too_hot(pressure: Option<bool>, recorded: Option<Heat>) -> Option<bool> {
    let recorded = recorded.filter(|heat| *heat != Heat::NotRecorded).map(|heat| heat == Heat::Hot);
    pressure.max(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_recorded_is_neither_hot_nor_cool() {
        let notes =
            "Note: No thermal warning level has been recorded\nNote: No CPU power status has been recorded\n";
        assert_eq!(pmset_heat(notes), Some(Heat::NotRecorded));
        assert_eq!(is_too_hot(None, Some(Heat::NotRecorded)), None);
        assert_eq!(is_too_hot(Some(false), Some(Heat::NotRecorded)), Some(false));
        assert_eq!(is_too_hot(Some(true), Some(Heat::Cool)), Some(true));
        assert_eq!(is_too_hot(Some(true), None), Some(true), "a tool that does not answer hides nothing");
    }

    #[test]
    fn a_level_of_pressure_that_is_not_known_says_nothing() {
        let levels = [0, 1, 2, 3, 4, 5, 50];
        let known = [Some(false), Some(false), Some(true), Some(true), Some(true), None, None];
        assert_eq!(levels.map(is_heavy_pressure), known);
    }

    proptest! {
        #[test]
        fn any_text_ends_without_panic(text in "((Note: No |CPU_Speed_Limit|Thermal Warning Level)[ -~]{0,20}\n){0,5}") {
            let _ = pmset_heat(&text);
        }
    }
}
