//! What a plan costs, in words.

use longhaul_measure::model::{Role, Scale, Target};
use longhaul_service::config::Schedule;
use longhaul_service::cost::{Basis, Bound, Cost, Load, Wanted, cost};
use longhaul_service::draft::knows;

use crate::render::units;

/// Rounds that the schedule has in 24 hours when nothing else is said.
pub fn rounds_per_day() -> f64 {
    Schedule::default().rounds_per_day as f64
}

/// What was chosen, as far as it costs something.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is measured.
    pub targets: Vec<Target>,
    /// How large the test data is.
    pub scale: Scale,
    /// Bytes that may be read and written on one target in 24 hours.
    pub bytes_per_day: Option<u64>,
    /// Share of time that rounds may take, in percent.
    pub duty_percent: Option<f64>,
}

impl Plan {
    fn shares(&self) -> usize {
        self.targets.iter().filter(|target| target.role == Role::Share).count()
    }

    /// What it costs.
    pub fn cost(&self, load: Load) -> Cost {
        cost(&Wanted {
            targets: self.targets.len(),
            load,
            rounds_per_day: rounds_per_day(),
            bytes_per_day: self.bytes_per_day,
            duty: self.duty_percent.map(|percent| percent / 100.0),
        })
    }

    /// Keys of the configuration beside targets and scale, as far as this longhaul has them. A budget that allows fewer
    /// rounds than the schedule has is spread over the day.
    pub fn values(&self, cost: &Cost) -> Vec<(&'static str, &'static str, f64)> {
        let spread = match cost.bound {
            Bound::Schedule => None,
            Bound::Bytes | Bound::Time => Some(cost.rounds_per_day).filter(|rounds| *rounds >= 1.0),
        };
        let values = [
            ("limits", "megabytes-per-day", self.bytes_per_day.map(|bytes| (bytes / 1_000_000) as f64)),
            ("schedule", "duty-percent", self.duty_percent),
            ("schedule", "rounds-per-day", spread),
        ];
        let values = values.into_iter().filter_map(|(section, key, value)| Some((section, key, value?)));
        values.filter(|(section, key, _)| knows(section, key)).collect()
    }

    /// The cost as a person reads it, with where each figure comes from.
    pub fn text(&self, (load, basis): (Load, Basis)) -> String {
        let cost = self.cost(load);
        let bound = match cost.bound {
            Bound::Schedule => "one an hour, on a machine that sleeps seven hours a night",
            Bound::Bytes => "as many as the bytes a day allow",
            Bound::Time => "as many as the share of time allows",
        };
        let basis = match basis {
            Basis::Measured { runs } => format!("measured in {runs} runs on this machine"),
            Basis::Assumed => "estimated for 1 ms an operation and 30 MB/s; real shares differ".to_owned(),
        };
        format!(
            "What this costs ({basis}):\n  \
             a round      about {} and {} on each target\n  \
             rounds       about {:.0} a day: {bound}\n  \
             a day        about {} read and written on each target\n  \
             an hour      about {:.0} min in which one target at a time is busy\n  \
             test data    about {} on each target, made once and kept\n\
             {}",
            units::bytes(load.bytes),
            time(load.seconds),
            cost.rounds_per_day,
            units::bytes(cost.bytes_per_day),
            cost.minutes_per_hour.ceil(),
            units::bytes(corpus_bytes(self.scale)),
            self.visible(&cost),
        )
    }

    fn visible(&self, cost: &Cost) -> String {
        match (self.shares(), cost.weeks_until_visible) {
            (0 | 1, _) => {
                "With fewer than two shares there is nothing to compare; a single one is watched over time."
                    .to_owned()
            }
            (_, Some(weeks)) => format!(
                "A difference of 10 % will be visible after about {} weeks on typical Wi-Fi at {:.0} rounds a day: an \
                 estimate from simulation, where 80 % of such differences were found by then. By wire it takes less, on \
                 rough Wi-Fi eight weeks and more. No verdict is given before 14 days.",
                halves(weeks),
                cost.rounds_per_day
            ),
            (4.., None) => {
                "When a difference will be visible among more than three shares was not simulated.".to_owned()
            }
            (_, None) => format!(
                "At {:.0} rounds a day a difference of 10 % takes longer than the 5½ weeks that 4 rounds a day need; so \
                 few were not simulated. Allow more, or choose a smaller scale.",
                cost.rounds_per_day
            ),
        }
    }
}

/// What the test data of all slices take (`longhaul config --print`, `scale`).
fn corpus_bytes(scale: Scale) -> f64 {
    match scale {
        Scale::Quick => 0.4e9,
        Scale::Standard => 2.3e9,
        Scale::Large => 12e9,
    }
}

fn time(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// Weeks to the half: `2½`.
fn halves(weeks: f64) -> String {
    let halves = (weeks * 2.0).round() as u32;
    let whole = halves / 2;
    if halves % 2 == 1 { format!("{whole}½") } else { whole.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(targets: usize) -> Plan {
        let target = |number| Target {
            name: format!("t{number}").parse().unwrap(),
            path: "/x".into(),
            role: Role::Share,
        };
        Plan {
            targets: (0..targets).map(target).collect(),
            scale: Scale::Standard,
            bytes_per_day: None,
            duty_percent: None,
        }
    }

    fn load() -> (Load, Basis) {
        (Load { bytes: 600e6, seconds: 120.0 }, Basis::Assumed)
    }

    #[test]
    fn the_cost_is_told_with_where_it_comes_from() {
        let text = plan(2).text(load());
        for part in [
            "estimated for 1 ms an operation",
            "about 600 MB and 2 min on each target",
            "about 17 a day: one an hour",
            "about 10.2 GB read and written on each target",
            "about 4 min",
            "about 2.30 GB on each target",
            "after about 2½ weeks on typical Wi-Fi at 17 rounds a day: an estimate from simulation",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        let measured = plan(2).text((load().0, Basis::Measured { runs: 20 }));
        assert!(measured.contains("measured in 20 runs"));
    }

    #[test]
    fn what_was_not_simulated_is_not_promised() {
        assert!(plan(1).text(load()).contains("nothing to compare"));
        assert!(plan(4).text(load()).contains("not simulated"));
        let little = Plan { bytes_per_day: Some(1_000_000_000), ..plan(2) };
        assert!(
            little.text(load()).contains("At 1 rounds a day")
                && little.text(load()).contains("not simulated")
        );
    }

    #[test]
    fn only_keys_that_the_configuration_has_are_set() {
        let plan = Plan { bytes_per_day: Some(5_000_000_000), duty_percent: Some(5.0), ..plan(2) };
        let values = plan.values(&plan.cost(load().0));
        assert!(values.contains(&("limits", "megabytes-per-day", 5000.0)));
        assert!(values.iter().all(|(section, key, _)| knows(section, key)));
        assert_eq!(values.len() == 1, !knows("schedule", "duty-percent"));
    }
}
