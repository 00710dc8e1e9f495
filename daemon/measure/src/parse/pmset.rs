//! Parser for the output of `pmset -g batt` (PowerManagement pmset/pmset.m).

use longhaul_model::Power;

/// Returns the power source in the first line. A UPS counts as a battery, because it supplies power only if
/// mains power fails.
pub fn pmset(output: &str) -> Option<Power> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("Now drawing from"))?;
    match line.trim().trim_matches('\'') {
        "AC Power" => Some(Power::Mains),
        "Battery Power" | "UPS Power" => Some(Power::Battery),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_source_is_in_the_first_line() {
        let laptop = include_str!("../../tests/fixtures/pmset-battery.txt");
        let charging = include_str!("../../tests/fixtures/pmset-charging.txt");
        assert_eq!(pmset(laptop), Some(Power::Battery));
        assert_eq!(pmset(charging), Some(Power::Mains));
        assert_eq!(pmset("Now drawing from 'AC Power'\n"), Some(Power::Mains));
        assert_eq!(pmset("Now drawing from 'UPS Power'\n"), Some(Power::Battery));
    }

    #[test]
    fn an_unknown_power_source_is_not_guessed() {
        assert_eq!(pmset("Now drawing from 'Sunlight'\n"), None);
        assert_eq!(pmset(" -InternalBattery-0 (id=1)\t95%; charging"), None);
        assert_eq!(pmset(""), None);
    }
}
