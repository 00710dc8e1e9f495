//! The totals of blogbench, and the table and figures made from them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use longhaul_analysis::stats::Steadiness;
use longhaul_model::{Figure, Unit};

/// The totals since the start of the run, shared by all threads.
#[derive(Default)]
pub(super) struct Counts {
    /// Number of blogs that writers have started.
    pub(super) blogs_started: AtomicU64,
    /// Number of blogs that are complete.
    pub(super) blogs_finished: AtomicU64,
    /// Number of visits of readers.
    pub(super) visits: AtomicU64,
    pub(super) files_read: [AtomicU64; 3],
    pub(super) files_written: [AtomicU64; 3],
}

impl Counts {
    pub(super) fn snapshot(&self) -> [u64; 7] {
        let get = |counts: &[AtomicU64; 3], kind: usize| counts[kind].load(Relaxed);
        let (r, w) = (&self.files_read, &self.files_written);
        [self.blogs_finished.load(Relaxed), get(r, 0), get(w, 0), get(r, 1), get(w, 1), get(r, 2), get(w, 2)]
    }
}

/// Formats the table that blogbench prints: blogs so far, and files read and written in each interval.
pub(super) fn table(lines: &[[u64; 7]]) -> String {
    let head =
        "  Nb blogs   R articles    W articles    R pictures    W pictures    R comments    W comments"
            .to_owned();
    let line = |[blogs, rest @ ..]: &[u64; 7]| {
        let columns = rest.iter().zip([13, 14, 14, 14, 14, 14]);
        columns.fold(format!("{blogs:>10}"), |line, (count, width)| format!("{line}{count:>width$}"))
    };
    std::iter::once(head).chain(lines.iter().map(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the counts, the rates and the steadiness of a run of so many seconds.
pub(super) fn figures(counts: &Counts, lines: &[[u64; 7]], seconds: f64) -> Vec<Figure> {
    let [blogs, articles_read, articles, _, pictures, _, comments] = counts.snapshot();
    let count = |name, value: u64| Figure::new(name, Unit::Count, value as f64);
    let files = articles + pictures + comments;
    let mut figures = vec![
        count("blogs", blogs),
        count("visits", counts.visits.load(Relaxed)),
        count("articles-read", articles_read),
        count("articles-written", articles),
        count("pictures-written", pictures),
        count("comments-written", comments),
        Figure::new("files-written", Unit::PerSecond, files as f64 / seconds),
        Figure::new("seconds", Unit::Seconds, seconds),
    ];
    let written: Vec<f64> = lines.iter().map(|line| (line[2] + line[4] + line[6]) as f64).collect();
    if let Some(steadiness) = Steadiness::of_rates(&written) {
        figures.push(Figure::new("spread", Unit::Share, steadiness.spread));
        figures.push(Figure::new("drift", Unit::Share, steadiness.drift.abs()));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_the_format_of_the_original() {
        let first =
            "       173      1151009          9724        714923          8232        591264         24967";
        assert_eq!(
            table(&[[173, 1_151_009, 9724, 714_923, 8232, 591_264, 24_967]]).lines().nth(1),
            Some(first)
        );
        assert_eq!(table(&[]).len(), first.len());
    }
}
