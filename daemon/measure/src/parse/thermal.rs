//! Parsers for the thermal throttling of a Mac.

/// Thermal state as `pmset -g therm` prints it (PowerManagement pmset/pmset.m, `show_thermal_warning_level`
/// and its neighbours).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThermalState {
    /// Nothing was recorded. On Apple silicon nothing ever is, however hot the machine is (exelban/stats#749,
    /// macmade/Hot#80).
    NotRecorded,
    /// The processors are not throttled.
    Cool,
    /// The processors are throttled, or a thermal warning is recorded.
    Hot,
}

/// Returns the recorded thermal state, from warning levels and limits of the processors; `None` if the text
/// is not that output.
pub fn pmset_thermal_state(output: &str) -> Option<ThermalState> {
    let mut heat = None;
    for line in output.lines().map(str::trim) {
        let found = match line.split_once('=') {
            Some((name, value)) => state_of_level(name.trim_end(), value.trim().parse().ok()?),
            None if line.starts_with("Note: No ") => Some(ThermalState::NotRecorded),
            None => None,
        };
        heat = heat.max(found);
    }
    heat
}

/// Returns the state that one level or limit means. The name of a level follows the time of the query in its
/// line: 0 is normal, 255 unknown, and all others are warnings (IOKit pwr_mgt/IOPM.h). Limits are in percent.
fn state_of_level(name: &str, value: u32) -> Option<ThermalState> {
    let is_level = name.ends_with("Thermal Warning Level") || name.ends_with("Performance Warning Level");
    match (name, value) {
        ("CPU_Speed_Limit" | "CPU_Scheduler_Limit", percent) if percent < 100 => Some(ThermalState::Hot),
        ("CPU_Speed_Limit", _) => Some(ThermalState::Cool),
        (_, 0) if is_level => Some(ThermalState::Cool),
        (_, 255) if is_level => Some(ThermalState::NotRecorded),
        _ if is_level => Some(ThermalState::Hot),
        _ => None,
    }
}

/// Returns whether a level of `com.apple.system.thermalpressurelevel` is heavy; `None` for an unknown level
/// (libkern/OSThermalNotification.h): 0 nominal, 1 moderate, 2 heavy, 3 trapping, 4 sleeping. At moderate the
/// fans run and background work is slowed; from heavy on everything is.
pub fn is_heavy_pressure(level: u64) -> Option<bool> {
    match level {
        0 | 1 => Some(false),
        2..=4 => Some(true),
        _ => None,
    }
}

/// Returns whether the machine is too hot by either of two sources; `None` if neither knows.
pub fn is_too_hot(pressure: Option<bool>, recorded: Option<ThermalState>) -> Option<bool> {
    let recorded =
        recorded.filter(|heat| *heat != ThermalState::NotRecorded).map(|heat| heat == ThermalState::Hot);
    pressure.max(recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_is_neither_hot_nor_cool() {
        let notes =
            "Note: No thermal warning level has been recorded\nNote: No CPU power status has been recorded\n";
        assert_eq!(pmset_thermal_state(notes), Some(ThermalState::NotRecorded));
        assert_eq!(is_too_hot(None, Some(ThermalState::NotRecorded)), None);
        assert_eq!(is_too_hot(Some(false), Some(ThermalState::NotRecorded)), Some(false));
        assert_eq!(is_too_hot(Some(true), Some(ThermalState::Cool)), Some(true));
        assert_eq!(
            is_too_hot(Some(true), None),
            Some(true),
            "a missing answer of the tool does not hide the pressure"
        );
    }

    #[test]
    fn an_unknown_level_of_pressure_is_none() {
        let levels = [0, 1, 2, 3, 4, 5, 50];
        let known = [Some(false), Some(false), Some(true), Some(true), Some(true), None, None];
        assert_eq!(levels.map(is_heavy_pressure), known);
    }
}
