//! The result of one task in a few words, for tables.

use longhaul_analysis::summary::{Comparison, Verdict};

use super::percent::Percent;
use super::{sentences, so_far};
use crate::units;

/// Returns the result of one task in a few words.
pub fn result(task: &Comparison) -> String {
    if task.is_instant() {
        return "both instant".to_owned();
    }
    let Some((ratio, (faster, _))) = task.ratio.zip(task.faster_and_slower()) else {
        return so_far::brief(task)
            .map_or("not enough data yet".to_owned(), |so_far| so_far + "; not decided");
    };
    let saved = Percent::saved(ratio);
    match task.verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster => {
            match sentences::often_failed(task) {
                None => format!("{faster}: {saved} less time ({})", saved.range()),
                Some(failed) if sentences::always_failed(task) => format!("{faster}: {failed}"),
                Some(failed) => format!("{faster}: {saved} less time ({}); {failed}", saved.range()),
            }
        }
        Verdict::TooSmall => format!("{faster}: {saved} less time, too little to matter"),
        Verdict::NoRealDifference => "no real difference".to_owned(),
        Verdict::NotEnoughData => {
            let so_far = so_far::brief(task).map_or(String::new(), |so_far| so_far + "; ");
            let until = task
                .days_needed
                .map_or(String::new(), |days| format!("; about {} more", units::count(days, "day")));
            format!("{so_far}not decided{until}")
        }
    }
}
