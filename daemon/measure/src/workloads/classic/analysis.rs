//! What AJA's System Test and Stibium make of each call: frames that came too late; means and a slope over sizes.

use super::log::Repetition;
use crate::model::{Figure, Unit};
use crate::profile::Analysis;
use crate::stats::median;

/// The frame rates that are looked at.
const RATES: [(&str, f64); 3] = [("dropped-24", 24.0), ("dropped-30", 30.0), ("dropped-60", 60.0)];
/// The share that a trimmed mean leaves out, half of it at each end.
const TRIMMED: f64 = 0.20;
/// The smallest file that counts: Stibium ignores those below 10 KB.
const LEAST_BYTES: u64 = 10_000;

/// The figures of an analysis; none where nothing was repeated.
pub fn figures(analysis: Analysis, each: &[Repetition]) -> Vec<Figure> {
    match analysis {
        Analysis::Frames => frames(each),
        Analysis::Transfers => transfers(each),
    }
}

/// A frame whose call took longer than it is to be shown is counted as dropped: there is no buffer that hides it.
fn frames(each: &[Repetition]) -> Vec<Figure> {
    let Some(worst) = each.iter().map(|frame| frame.seconds).reduce(f64::max) else { return vec![] };
    let dropped = RATES.iter().map(|(name, rate)| {
        let late = each.iter().filter(|frame| frame.seconds > 1.0 / rate).count();
        Figure::new(name, Unit::Count, late as f64)
    });
    dropped.chain([Figure::new("worst-frame", Unit::Seconds, worst)]).collect()
}

fn transfers(each: &[Repetition]) -> Vec<Figure> {
    let files: Vec<(f64, f64)> = each
        .iter()
        .filter(|file| file.bytes >= LEAST_BYTES && file.seconds > 0.0)
        .map(|file| (file.seconds, file.bytes as f64))
        .collect();
    let speeds: Vec<f64> = files.iter().map(|(seconds, bytes)| bytes / seconds).collect();
    let figures = [
        ("mean-speed", mean(&speeds)),
        ("trimmed-speed", trimmed_mean(speeds)),
        ("slope-speed", theil_sen(&files)),
    ];
    let known = figures.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.map(|(name, value)| Figure::new(name, Unit::BytesPerSecond, value)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean without the slowest and the fastest tenth.
fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * TRIMMED / 2.0).floor() as usize;
    mean(&values[cut..values.len() - cut])
}

/// The slope of bytes over seconds: the median of the slopes of all pairs (Theil 1950, Sen 1968). What a call takes
/// however small it is does not enter it.
fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let pairs = points.iter().enumerate().flat_map(|(place, a)| points[..place].iter().map(move |b| (a, b)));
    let slopes: Vec<f64> =
        pairs.filter(|(a, b)| a.0 != b.0 && a.1 != b.1).map(|(a, b)| (a.1 - b.1) / (a.0 - b.0)).collect();
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_the_speed_without_what_each_call_takes() {
        let file = |bytes: u64| Repetition { seconds: 0.1 + bytes as f64 / 1e8, bytes };
        let each: Vec<Repetition> =
            [2, 4, 8, 100, 400, 1000].map(|megabytes| file(megabytes * 1_000_000)).to_vec();
        let figures = transfers(&each);
        assert!((figures[2].value / 1e8 - 1.0).abs() < 1e-6, "{figures:?}");
        assert!(figures[0].value < 0.7e8, "the mean has it: {figures:?}");
    }

    #[test]
    fn one_outlier_does_not_move_a_trimmed_mean() {
        let values = [vec![100.0; 19], vec![1e9]].concat();
        assert_eq!(trimmed_mean(values), Some(100.0));
        assert_eq!(trimmed_mean(vec![]), None);
    }

    #[test]
    fn a_late_frame_is_dropped_at_the_rates_it_is_late_for() {
        let frame = |seconds| Repetition { seconds, bytes: 1 };
        let figures = frames(&[frame(0.01), frame(0.02), frame(0.035), frame(0.5)]);
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 0.5]);
        assert!(frames(&[]).is_empty());
    }
}
