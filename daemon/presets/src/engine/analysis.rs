//! The additional analyses of two presets: late frames (AJA System Test), and mean, trimmed mean and slope
//! (Stibium).

use super::repetition_log::Repetition;
use crate::profile::Analysis;
use longhaul_model::{Figure, Unit, median};

/// The frame rates for which dropped frames are counted: the name of the figure, and frames per second.
const FRAME_RATES: [(&str, f64); 3] = [("dropped-24", 24.0), ("dropped-30", 30.0), ("dropped-60", 60.0)];
/// The share of values that a trimmed mean leaves out, half of it at each end.
const TRIMMED_SHARE: f64 = 0.20;
/// The smallest transfer that is analyzed: Stibium ignores files below 10 KB.
const MIN_BYTES: u64 = 10_000;
/// The largest number of transfers whose pairs are compared: two million slopes, 16 MB.
const MAX_SLOPE_POINTS: usize = 2000;

/// Returns the figures of an analysis; empty if there was no repetition.
pub fn figures(analysis: Analysis, repetitions: &[Repetition]) -> Vec<Figure> {
    match analysis {
        Analysis::Frames => frame_figures(repetitions),
        Analysis::Transfers => transfer_figures(repetitions),
    }
}

/// Counts dropped frames: a frame is dropped if its own call took longer than the frame is displayed.
///
/// There is no buffer that could hide a late frame.
fn frame_figures(frames: &[Repetition]) -> Vec<Figure> {
    let Some(worst) = frames.iter().map(|frame| frame.seconds).reduce(f64::max) else { return vec![] };
    let dropped = FRAME_RATES.iter().map(|(name, rate)| {
        let late = frames.iter().filter(|frame| frame.seconds > 1.0 / rate).count();
        Figure::new(name, Unit::Count, late as f64)
    });
    dropped.chain([Figure::new("worst-frame", Unit::Seconds, worst)]).collect()
}

fn transfer_figures(transfers: &[Repetition]) -> Vec<Figure> {
    let files: Vec<(f64, f64)> = transfers
        .iter()
        .filter(|file| file.bytes >= MIN_BYTES && file.seconds > 0.0)
        .map(|file| (file.seconds, file.bytes as f64))
        .collect();
    let speeds: Vec<f64> = files.iter().map(|(seconds, bytes)| bytes / seconds).collect();
    let figures = [
        ("mean-speed", mean(&speeds)),
        ("trimmed-speed", trimmed_mean(speeds)),
        ("slope-speed", theil_sen(files)),
    ];
    let known = figures.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.map(|(name, value)| Figure::new(name, Unit::BytesPerSecond, value)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the mean without the smallest and the largest tenth of the values; `None` if there are no values.
fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let cut = (values.len() as f64 * TRIMMED_SHARE / 2.0).floor() as usize;
    mean(&values[cut..values.len() - cut])
}

/// Returns the slope of bytes over seconds: the median of the slopes of all pairs (Theil 1950, Sen 1968).
///
/// The slope does not include the fixed cost of a call. `None` if there are fewer than two distinct points, or if larger
/// files did not take longer, because then other delays hide the speed.
///
/// Of more than [`MAX_SLOPE_POINTS`] points, every nth in the order of their sizes and times is used, so that each size
/// keeps its part and its spread.
fn theil_sen(mut points: Vec<(f64, f64)>) -> Option<f64> {
    points.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.total_cmp(&b.0)));
    let every = points.len().div_ceil(MAX_SLOPE_POINTS).max(1);
    let points: Vec<(f64, f64)> = points.into_iter().step_by(every).collect();
    let pairs = points.iter().enumerate().flat_map(|(index, a)| points[..index].iter().map(move |b| (a, b)));
    let slopes: Vec<f64> =
        pairs.filter(|(a, b)| a.0 != b.0 && a.1 != b.1).map(|(a, b)| (a.1 - b.1) / (a.0 - b.0)).collect();
    median(&slopes).filter(|slope| *slope > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_speed_excludes_the_fixed_cost_of_a_call() {
        let file = |bytes: u64| Repetition { seconds: 0.1 + bytes as f64 / 1e8, bytes };
        let each: Vec<Repetition> =
            [2, 4, 8, 100, 400, 1000].map(|megabytes| file(megabytes * 1_000_000)).to_vec();
        let figures = transfer_figures(&each);
        assert!((figures[2].value / 1e8 - 1.0).abs() < 1e-6, "{figures:?}");
        assert!(figures[0].value < 0.7e8, "the mean includes the fixed cost: {figures:?}");
    }

    #[test]
    fn slope_of_many_transfers_is_that_of_a_part_with_all_sizes() {
        let megabytes = |index: u64| if index.is_multiple_of(2) { 1 } else { 10 };
        let file = |bytes: u64| Repetition { seconds: 0.1 + bytes as f64 / 1e8, bytes };
        let each: Vec<Repetition> = (0..50_000).map(|index| file(megabytes(index) * 1_000_000)).collect();
        let figures = transfer_figures(&each);
        assert!((figures[2].value / 1e8 - 1.0).abs() < 1e-6, "{figures:?}");
    }

    #[test]
    fn slope_speed_is_left_out_if_larger_files_were_quicker() {
        let file = |seconds: f64, bytes: u64| Repetition { seconds, bytes };
        let figures = transfer_figures(&[file(3.0, 20_000), file(2.0, 30_000), file(1.0, 40_000)]);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["mean-speed", "trimmed-speed"]);
    }

    #[test]
    fn one_outlier_does_not_move_a_trimmed_mean() {
        let values = [vec![100.0; 19], vec![1e9]].concat();
        assert_eq!(trimmed_mean(values), Some(100.0));
        assert_eq!(trimmed_mean(vec![]), None);
    }

    #[test]
    fn a_slow_frame_is_dropped_at_each_rate_it_misses() {
        let frame = |seconds| Repetition { seconds, bytes: 1 };
        let figures = frame_figures(&[frame(0.01), frame(0.02), frame(0.035), frame(0.5)]);
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 0.5]);
        assert!(frame_figures(&[]).is_empty());
    }
}
