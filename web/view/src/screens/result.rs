//! The result of one task in a few words, and the table of all tasks of a pair.

use longhaul_analysis::summary::{Comparison, PairSummary, Verdict};

use super::percent::Percent;
use super::round_trips::{self, StatedIn};
use super::{sentences, so_far, words};
use crate::table::Table;
use crate::units;

/// Returns the typical times and the result of each task of a pair.
pub fn table(pair: &PairSummary) -> Table {
    let mut table = Table::new("Typical times and result of each task").words(["task"]);
    table = table.figures([pair.a.as_str(), pair.b.as_str()]).words(["result"]);
    for task in &pair.tasks {
        let (a, b) = task.median_seconds.unzip();
        let result = words::toned(result(task, StatedIn::basis_of(pair)), task.verdict);
        table.row([
            words::subject(&task.subject).into(),
            units::seconds_or_none(a).into(),
            units::seconds_or_none(b).into(),
            result,
        ]);
    }
    table
}

/// Returns the result of one task in a few words. `place` is the text that states its round trip time.
pub fn result(task: &Comparison, place: StatedIn<'_>) -> String {
    // A verdict on a background task names a winner however short the task is.
    if task.is_instant() && !task.verdict.has_winner() {
        return "both instant".to_owned();
    }
    let Some((ratio, (faster, _))) = task.ratio.zip(task.faster_and_slower()) else {
        return so_far::brief(task)
            .map_or("not enough data yet".to_owned(), |so_far| so_far + "; not decided");
    };
    let saved = Percent::saved(ratio);
    let stated = round_trips::stated(task, place);
    match task.verdict {
        Verdict::AlreadyClear | Verdict::Faster | Verdict::ClearlyFaster => {
            let failed = sentences::often_failed(task);
            if sentences::always_failed(task) {
                return format!("{faster}: {}", failed.unwrap_or_default());
            }
            let mean =
                sentences::most_of(task).map(|(when, mean)| format!(" {when}, {mean:.2}× averaged over all"));
            let notes = [mean, failed.map(|failed| format!("; {failed}"))];
            let notes: String = notes.into_iter().flatten().collect();
            format!("{faster}: {saved} less time{stated} ({}){notes}", saved.range())
        }
        Verdict::TooSmall => format!("{faster}: {saved} less time{stated}, too little to matter"),
        Verdict::NoRealDifference => "no real difference".to_owned(),
        Verdict::NotEnoughData => {
            let so_far = so_far::brief(task).map_or(String::new(), |so_far| so_far + "; ");
            let until = task
                .days_needed
                .map_or(String::new(), |days| format!("; verdict in about {}", so_far::days_or_weeks(days)));
            format!("{so_far}not decided{until}")
        }
    }
}
