//! How it was measured and decided, with the constants of the code, and what the figures do not show.

use longhaul_measure::summary::{
    ALPHA, CAP_FACTOR, EARLY_DAYS, EARLY_RATIO, NOT_SMOOTH, OPENING_DAYS, UNNOTICED_SECONDS, Weekly,
};

use crate::units::plain;

/// The method in three lines.
pub fn in_three_lines(weekly: &Weekly) -> [String; 3] {
    let percent = |ratio: f64| plain((ratio - 1.0) * 100.0, 1);
    [
        "Measured: each round does every task on every target, minutes apart and in drawn order. A day is the median of \
         its rounds' ratios; a verdict rests on all days of the current protocol, options and path up to the end of this \
         week. A week alone gets none."
            .to_owned(),
        format!(
            "Decided: from {OPENING_DAYS} days on (from {EARLY_DAYS} on only if the whole interval lies beyond ±{} %). From {} % \
             on a difference matters; of what a person waits for, less than {} s is not noticed. All intervals together miss \
             with at most {} %, however often somebody looks.",
            percent(EARLY_RATIO),
            percent(weekly.premises.threshold),
            plain(UNNOTICED_SECONDS, 3),
            plain(ALPHA * 100.0, 1),
        ),
        format!(
            "Kept apart: cold and warm, epochs, sizes of the test data, and failures, which have no time (in ratios they count \
             as {} times the usual time, within bounds). Nothing is dropped without being counted.",
            plain(CAP_FACTOR, 1),
        ),
    ]
}

/// What the three scores are.
pub fn scores() -> String {
    format!(
        "Speed: the reference share is 100; 120 does all tasks in 100/120 of the time. Smoothness: the share of tasks that took \
         less than {} times the usual time of their day. Reliability: the share of rounds without a failure. Place: where a share \
         stands among all, as far as it is decided. The three are never made into one.",
        plain(NOT_SMOOTH, 1),
    )
}

/// What the figures do not show.
pub const LIMITS: [&str; 5] = [
    "They hold for this machine, this network, this server and this mix of tasks, and for nothing else.",
    "They show that two ways differ, not why: signing, read sizes, caches and the server's own work are all in them.",
    "Cold is as cold as the system lets a program make it; where nothing confirmed it, the run says so.",
    "Times while somebody works on the share at once are not controlled; both shares of a round meet them alike.",
    "Intervals hold if days are about independent; where the ratio wanders from day to day, it says so above.",
];
