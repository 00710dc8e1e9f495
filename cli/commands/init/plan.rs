//! Computes and describes the cost of a plan.

use longhaul_analysis::summary::MIN_ROUNDS_PER_DAY;
use longhaul_model::{Role, Scale, Target};
use longhaul_service::config::Schedule;
use longhaul_service::config_draft::has_key;
use longhaul_service::cost::{
    CostBasis, CostEstimate, CostRequest, LimitingFactor, RoundLoad, estimate_cost,
};
use longhaul_service::schedule::baseline_interval;

use longhaul_view::units;
use longhaul_view::units::count;

/// Returns the number of rounds per day in the default schedule.
pub fn rounds_per_day() -> f64 {
    Schedule::default().rounds_per_day as f64
}

/// The choices that determine the cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Targets to measure.
    pub targets: Vec<Target>,
    /// Size of the test data.
    pub scale: Scale,
    /// Bytes that may be read and written on one target in 24 hours; `None` for no limit.
    pub bytes_per_day: Option<u64>,
    /// Maximum share of time that rounds may take, in percent; `None` for no limit.
    pub duty_percent: Option<f64>,
    /// Large folders that the user opens a week; `None` if that is counted, or not given.
    pub folder_openings: Option<f64>,
}

impl Plan {
    fn share_count(&self) -> usize {
        self.targets.iter().filter(|target| target.role == Role::Share).count()
    }

    /// Returns the mean number of targets in a round.
    fn targets_per_round(&self) -> f64 {
        let shares = self.share_count();
        let baselines = self.targets.len() - shares;
        shares as f64 + baselines as f64 / baseline_interval(&self.targets) as f64
    }

    /// Estimates the cost of the plan.
    pub fn cost(&self, load: RoundLoad) -> CostEstimate {
        estimate_cost(&CostRequest {
            shares: self.share_count(),
            targets_per_round: self.targets_per_round(),
            round_load: load,
            rounds_per_day: rounds_per_day(),
            bytes_per_day: self.bytes_per_day,
            max_time_share: self.duty_percent.map(|percent| percent / 100.0),
        })
    }

    /// Returns the configuration values of the plan, except targets and scale. If the budget allows fewer rounds
    /// than the schedule, the rounds are spread over the day.
    pub fn config_values(&self, cost: &CostEstimate) -> Vec<(&'static str, &'static str, f64)> {
        let spread = match cost.limited_by {
            LimitingFactor::Schedule => None,
            LimitingFactor::Bytes | LimitingFactor::Time => {
                Some(cost.rounds_per_day).filter(|rounds| *rounds >= 1.0)
            }
        };
        let values = [
            ("limits", "megabytes-per-day", self.bytes_per_day.map(|bytes| (bytes / 1_000_000) as f64)),
            ("schedule", "max-time-percent", self.duty_percent),
            ("schedule", "rounds-per-day", spread),
            ("usage-profile", "folder-openings", self.folder_openings),
        ];
        let values = values.into_iter().filter_map(|(section, key, value)| Some((section, key, value?)));
        values.filter(|(section, key, _)| has_key(section, key)).collect()
    }

    /// Describes the cost, with the basis of the estimate.
    pub fn cost_text(&self, load: RoundLoad, basis: CostBasis) -> String {
        let cost = self.cost(load);
        let bound = match cost.limited_by {
            LimitingFactor::Schedule => "one an hour, if the machine sleeps seven hours a night",
            LimitingFactor::Bytes => "limited by the bytes per day",
            LimitingFactor::Time => "limited by the share of time",
        };
        let basis = match basis {
            CostBasis::Measured { runs } => format!("measured in {} on this machine", count(runs, "run")),
            CostBasis::Assumed => {
                "estimated for 1 ms per operation and 30 MB/s; real shares differ".to_owned()
            }
        };
        format!(
            "What this costs ({basis}):\n  \
             per round    about {} and {} on each target\n  \
             rounds       about {:.0} per day: {bound}\n  \
             per day      about {} read and written on each target\n  \
             per hour     about {:.0} min in which one target at a time is busy\n  \
             test data    at least {} on each target, made once and kept\n\
             {}",
            units::bytes(load.bytes),
            units::estimated_duration(load.seconds),
            cost.rounds_per_day,
            units::bytes(cost.bytes_per_day),
            cost.minutes_per_hour.ceil(),
            units::bytes(corpus_bytes(self.scale)),
            self.detectability_text(&cost),
        )
    }

    fn detectability_text(&self, cost: &CostEstimate) -> String {
        match (self.share_count(), cost.weeks_until_detectable) {
            (0 | 1, _) => {
                "With fewer than two shares there is nothing to compare; a single share is only monitored over time."
                    .to_owned()
            }
            _ if cost.rounds_per_day < MIN_ROUNDS_PER_DAY as f64 => format!(
                "With {} a day there is never a verdict: days with fewer than {MIN_ROUNDS_PER_DAY} rounds do not count. Allow more \
                 rounds, or choose a smaller scale.",
                count(cost.rounds_per_day, "round")
            ),
            (_, Some(weeks)) => format!(
                "A difference of 10 % will be visible after about {} weeks on typical Wi-Fi with {} a day: an \
                 estimate from simulation, where 80 % of such differences were found by then. A wired network takes three to four \
                 weeks, poor Wi-Fi twelve or more. A verdict needs 14 days (5 if the difference is large).",
                round_to_half(weeks),
                count(cost.rounds_per_day.round(), "round")
            ),
            (4.., None) => {
                "The time until a difference is visible was not simulated for more than three shares.".to_owned()
            }
            (_, None) => format!(
                "With {} a day, a difference of 10 % takes more than seven weeks to detect; so few rounds were not \
                 simulated. Allow more rounds, or choose a smaller scale.",
                count(cost.rounds_per_day.round(), "round")
            ),
        }
    }
}

/// Returns the size of the test data of all slices, in bytes, as documented at `scale` in `longhaul config
/// --print`.
fn corpus_bytes(scale: Scale) -> f64 {
    match scale {
        Scale::Quick => 0.4e9,
        Scale::Standard => 2.3e9,
        Scale::Large => 12e9,
    }
}

/// Formats a number of weeks, rounded to halves, such as `2½`.
fn round_to_half(weeks: f64) -> String {
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
            folder_openings: None,
        }
    }

    const LOAD: RoundLoad = RoundLoad { bytes: 600e6, seconds: 120.0 };

    fn assumed_cost(plan: &Plan) -> String {
        plan.cost_text(LOAD, CostBasis::Assumed)
    }

    #[test]
    fn cost_text_names_the_basis_of_the_estimate() {
        let text = assumed_cost(&plan(2));
        for part in [
            "estimated for 1 ms per operation",
            "about 600 MB and 2 min on each target",
            "about 17 per day: one an hour",
            "about 10.2 GB read and written on each target",
            "about 4 min",
            "at least 2.30 GB on each target",
            "after about 4½ weeks on typical Wi-Fi with 17 rounds a day: an estimate from simulation",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        let measured = plan(2).cost_text(LOAD, CostBasis::Measured { runs: 20 });
        assert!(measured.contains("measured in 20 runs"));
    }

    #[test]
    fn no_duration_is_promised_without_a_simulation() {
        assert!(assumed_cost(&plan(1)).contains("nothing to compare"));
        assert!(assumed_cost(&plan(4)).contains("not simulated"));
        let little = Plan { bytes_per_day: Some(2_400_000_000), ..plan(2) };
        assert!(
            assumed_cost(&little).contains("With 4 rounds a day")
                && assumed_cost(&little).contains("not simulated")
        );
    }

    #[test]
    fn one_round_a_day_promises_no_verdict() {
        let text = assumed_cost(&Plan { bytes_per_day: Some(1_000_000_000), ..plan(2) });
        assert!(text.contains("With 1 round a day there is never a verdict"), "{text}");
    }

    #[test]
    fn baseline_costs_a_quarter_of_a_share() {
        let mut with_baseline = plan(3);
        with_baseline.targets[2].role = Role::Baseline;
        let [alone, more] = [plan(2), with_baseline].map(|plan| plan.cost(LOAD));
        assert!((more.minutes_per_hour / alone.minutes_per_hour - 1.125).abs() < 1e-9);
        assert_eq!(more.weeks_until_detectable, alone.weeks_until_detectable);
    }

    #[test]
    fn only_known_config_keys_are_set() {
        let plan = Plan { bytes_per_day: Some(5_000_000_000), duty_percent: Some(5.0), ..plan(2) };
        let values = plan.config_values(&plan.cost(LOAD));
        assert!(values.contains(&("limits", "megabytes-per-day", 5000.0)));
        assert!(values.iter().all(|(section, key, _)| has_key(section, key)));
        assert_eq!(values.len() == 1, !has_key("schedule", "max-time-percent"));
    }
}
