//! A pair of shares before and after a day or an event.

use longhaul_analysis::summary::{BeforeAfter, MAX_DAYS_PER_SIDE, PairSummary};

use super::words;
use crate::document::Document;
use crate::table::Table;
use crate::units::{self, NO_VALUE};

/// A day or an event, and a pair before and after it.
#[derive(Debug, Clone, Copy)]
pub struct BeforeAfterView<'a> {
    /// The day or the event, for example `mtu on 2026-11-12`.
    pub what: &'a str,
    /// All metrics of the pair.
    pub rows: &'a [BeforeAfter],
}

/// Returns the comparison of a pair before and after a day or an event.
pub fn before_after(pair: &PairSummary, around: &BeforeAfterView<'_>) -> Document {
    let mut document = Document::new();
    let table = table(pair, around.rows);
    document.section("around", format!("Before and after {}", around.what)).table(table).note(note());
    document
}

/// Returns how the ratios and the times before and after a day are to be read.
pub fn note() -> String {
    format!(
        "At most {MAX_DAYS_PER_SIDE} days on each side, without the day itself. The ratio is tested with a false alarm rate of 1 %. \
         The times of each share are only descriptive: they drift by themselves, and a change that affects both shares alike shows \
         only there."
    )
}

/// Returns the table of all metrics of a pair before and after a day.
pub fn table(pair: &PairSummary, rows: &[BeforeAfter]) -> Table {
    let ratio = format!("{} as a multiple of {}", pair.b, pair.a);
    let levels = [&pair.a, &pair.b].map(|name| format!("{name}, before → after"));
    let mut table = Table::new(format!("{} and {} before and after the day", pair.a, pair.b))
        .words(["task", &ratio, "", "days", &levels[0], &levels[1]]);
    for row in rows {
        table.row(cells(row));
    }
    table
}

/// Returns name, ratio, verdict on the change, days, and the median times of both targets.
fn cells(row: &BeforeAfter) -> [String; 6] {
    let (ratio, change) = match row.ratio {
        Some(ratio) => (
            format!("{:.2} → {:.2}", ratio.before, ratio.after),
            if ratio.changed { "changed".to_owned() } else { "no proven change".to_owned() },
        ),
        None => (NO_VALUE.to_owned(), format!("{MAX_DAYS_PER_SIDE} days on each side are needed")),
    };
    let level = |level: Option<(f64, f64)>| {
        level.map_or(NO_VALUE.to_owned(), |(before, after)| {
            format!("{} → {}", units::seconds(before), units::seconds(after))
        })
    };
    let days = format!("{} and {}", row.days.0, row.days.1);
    [words::subject(&row.subject), ratio, change, days, level(row.levels[0]), level(row.levels[1])]
}
