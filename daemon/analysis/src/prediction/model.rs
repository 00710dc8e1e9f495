//! The model of a task's time, its fit and its predictions.

use std::time::Duration;

use longhaul_model::median;

use super::conditions::{COLUMNS, Measured, NetworkAndDisk, NoPrediction, Range, TRIPS, TimedRun};
use super::least_squares::{Fit, NormalEquations};
use crate::attribution::TripsInOrder;
use crate::stats::student_critical;

/// Minimum number of runs that are fitted.
const MIN_RUNS: usize = 12;
/// Factor beyond the conditions that were measured up to which a prediction is not called an extrapolation.
const MAX_REACH: f64 = 10.0;
/// Smallest relative standard deviation of the model itself, however well it fits (docs/validation/what-if.md).
const MIN_MODEL_ERROR: f64 = 0.03;
/// Addition to it if no source times each request: the client may need other round trips over a longer network.
const UNCOUNTED_ERROR: f64 = 0.02;
/// Addition to it for a task that only transfers bytes: how much of a transfer overlaps with its round trips depends on the
/// client's read-ahead.
const TRANSFER_ERROR: f64 = 0.05;
/// Largest relative error of a counted number of round trips that is used alone.
const MAX_TRIPS_ERROR: f64 = 0.1;
/// Standard deviations beyond which the residual of a run is winsorized: a run during which something else happened.
const OUTLIER: f64 = 2.5;
/// Number of times that outliers are looked for and the model is fitted again.
const REPETITIONS: usize = 5;

/// Predicted time of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Predicted time, in seconds.
    pub seconds: f64,
    /// Lower end of the 95 % interval, in seconds.
    pub low: f64,
    /// Upper end of the interval, in seconds.
    pub high: f64,
    /// True if the conditions are far outside of those that were measured.
    pub is_extrapolated: bool,
}

/// Model of one metric on one target, fitted to its runs.
#[derive(Debug, Clone)]
pub struct Model {
    measured: Measured,
    /// Bytes of the runs.
    bytes: Range,
    fit: Fit<COLUMNS>,
    /// Relative error of the number of round trips, beyond that of the fit.
    trips_error: f64,
}

/// Runs of one metric on one target, with a fit of the whole model.
#[derive(Debug, Clone)]
pub struct FittedRuns {
    runs: Vec<TimedRun>,
    measured: Measured,
    bytes: Range,
    fit: Fit<COLUMNS>,
}

impl FittedRuns {
    /// Fits the model to runs of one epoch, in any order. Runs without a positive round-trip time, bandwidth and time are
    /// left out.
    ///
    /// # Errors
    ///
    /// With too few runs.
    pub fn of(runs: &[TimedRun]) -> Result<Self, NoPrediction> {
        let runs = fitted_runs(runs);
        if runs.len() < MIN_RUNS {
            return Err(NoPrediction::TooFewRuns);
        }
        let measured = Measured::of(&runs).ok_or(NoPrediction::TooFewRuns)?;
        let bytes = runs.iter().map(|run| run.bytes).collect();
        let bytes = Range::of(bytes).ok_or(NoPrediction::TooFewRuns)?;
        let fit = fit_without_outliers(&runs, &measured).ok_or(NoPrediction::TooFewRuns)?;
        Ok(Self { runs, measured, bytes, fit })
    }

    /// Returns the model for a network with the round-trip time `near`, or the usual one: a client may need more round trips over
    /// a longer one, because what it keeps in memory expires meanwhile.
    pub fn model(&self, near: Option<Duration>) -> Model {
        let Self { runs, measured, bytes, fit } = self;
        let fitted = measured.round_trip.varies().then(|| fit.coefficients[TRIPS]);
        let near = near.map_or(measured.round_trip.middle, |time| time.as_secs_f64());
        let is_exact = |run: &&TimedRun| run.trips.is_some_and(|trips| trips.is_exact);
        let uncounted = if runs.iter().filter(is_exact).count() < MIN_RUNS { UNCOUNTED_ERROR } else { 0.0 };
        let counted = trips_of(&nearest(runs, near), fitted).and_then(|trips| {
            let measured = Measured { counted_trips: Some(trips.value), ..*measured };
            let fit = fit_without_outliers(runs, &measured)?;
            Some(Model { measured, bytes: *bytes, fit, trips_error: trips.error + uncounted })
        });
        counted.unwrap_or_else(|| Model {
            measured: *measured,
            bytes: *bytes,
            fit: fit.clone(),
            trips_error: uncounted,
        })
    }
}

impl Model {
    /// Returns the median of the conditions that were measured.
    pub fn usual(&self) -> NetworkAndDisk {
        NetworkAndDisk {
            round_trip: Duration::from_secs_f64(self.measured.round_trip.middle),
            bytes_per_second: self.measured.bandwidth.middle,
            disk: self.measured.disk.map(|disk| Duration::from_secs_f64(disk.middle)),
        }
    }

    /// Returns the share of the usual time that the bytes take, from 0 to 1.
    fn transfer_share(&self) -> f64 {
        let usual = self.usual();
        let transfer = self.bytes.middle / usual.bytes_per_second;
        transfer / self.seconds(usual).max(f64::MIN_POSITIVE)
    }

    /// Returns the time of the model, in seconds.
    fn seconds(&self, environment: NetworkAndDisk) -> f64 {
        self.fit.at(self.measured.row(environment))
            + self.measured.counted_seconds(environment, self.bytes.middle)
    }

    /// Predicts the time with a network and a disk.
    ///
    /// The interval is meant to contain the time of a typical run with a probability of 95 %. It covers the error of the fit
    /// and that of the model, which grows with the distance from what was measured. With more bandwidth than was measured it
    /// reaches up to the time without it, because something else than the network may have limited the rate. It does not begin
    /// before the time of the bytes of a small run.
    ///
    /// # Errors
    ///
    /// If a condition differs from the measured ones, but was nearly the same in all runs.
    pub fn predict(&self, environment: NetworkAndDisk) -> Result<Prediction, NoPrediction> {
        let reach = self.measured.reach(environment)?;
        let row = self.measured.row(environment);
        let seconds = self.seconds(environment);
        // A task that does not follow the model within the measured range follows it even less beyond it.
        let smallest = MIN_MODEL_ERROR + TRANSFER_ERROR * self.transfer_share() + self.trips_error;
        let model_error = self.fit.residual_variance.sqrt().max(smallest) * (1.0 + reach.log2());
        let fit_error = self.fit.variance_at(row).sqrt() / seconds.max(f64::MIN_POSITIVE);
        let critical = student_critical(0.05, self.fit.degrees_of_freedom as f64);
        // Errors are ratios, so the range is a factor up and down.
        let factor = (critical * fit_error.hypot(model_error)).exp();
        // No bytes arrive faster than the path carries them; one that is as usual was at times as fast as the fastest measured.
        let usual = self.measured.bandwidth;
        let fastest = match environment.bytes_per_second {
            rate if rate < usual.middle => rate,
            rate => rate.max(usual.high),
        };
        let bytes_per_second = environment.bytes_per_second.min(usual.high);
        let slowest = self.seconds(NetworkAndDisk { bytes_per_second, ..environment }).max(seconds);
        Ok(Prediction {
            seconds,
            low: (seconds / factor).max(self.bytes.low / fastest),
            high: slowest * factor,
            is_extrapolated: reach > MAX_REACH,
        })
    }
}

/// Returns the runs that a model is fitted to. If the disk time varies in enough of them, they are only those that have one: the
/// others tell nothing about the disk.
pub(super) fn fitted_runs(runs: &[TimedRun]) -> Vec<TimedRun> {
    let valid: Vec<TimedRun> = runs.iter().copied().filter(TimedRun::is_valid).collect();
    let known: Vec<TimedRun> = valid.iter().copied().filter(|run| run.environment.disk.is_some()).collect();
    let varies = Measured::of(&known).and_then(|measured| measured.disk).is_some_and(|disk| disk.varies());
    if varies && known.len() >= MIN_RUNS { known } else { valid }
}

/// Returns the counted part of a run's time, which is not longer than the run.
fn counted_seconds(measured: &Measured, run: &TimedRun) -> f64 {
    measured.counted_seconds(run.environment, run.bytes).min(run.seconds)
}

/// Counted number of round trips.
#[derive(Debug, Clone, Copy)]
struct CountedTrips {
    value: f64,
    /// Relative error.
    error: f64,
}

/// Returns the third of the runs whose round trips are counted whose round-trip times are nearest to one in seconds, but enough to fit.
fn nearest(runs: &[TimedRun], round_trip: f64) -> Vec<TimedRun> {
    let distance = |run: &TimedRun| (run.environment.round_trip.as_secs_f64() / round_trip).ln().abs();
    let mut runs: Vec<TimedRun> = runs.iter().copied().filter(|run| run.trips.is_some()).collect();
    runs.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    runs.truncate((runs.len() / 3).max(MIN_RUNS));
    runs
}

/// Returns the counted number of round trips, if it says more than the fitted one. Over short networks a transfer hides its round
/// trips, so that the fit finds too few, and a slow NAS may look like more of them than there are requests. Without a fitted one, both
/// limits must be close together.
fn trips_of(runs: &[TimedRun], fitted: Option<f64>) -> Option<CountedTrips> {
    let known: Vec<TripsInOrder> = runs.iter().filter_map(|run| run.trips).collect();
    let of = |limit: fn(&TripsInOrder) -> f64| median(&known.iter().map(limit).collect::<Vec<_>>());
    let (least, most) =
        of(|trips| trips.least).zip(of(|trips| trips.most)).filter(|_| known.len() >= MIN_RUNS)?;
    let error = ((most / least.max(f64::MIN_POSITIVE)).ln() / 2.0).max(0.0);
    match fitted {
        Some(fitted) if (least..=most).contains(&fitted) => None,
        Some(fitted) => Some(CountedTrips { value: fitted.clamp(least, most), error: 0.0 }),
        None => (error <= MAX_TRIPS_ERROR).then(|| CountedTrips { value: (least * most).sqrt(), error }),
    }
}

/// Fits all runs, then again with the time of each outlier moved to the edge of what is usual (Huber).
fn fit_without_outliers(runs: &[TimedRun], measured: &Measured) -> Option<Fit<COLUMNS>> {
    /// Ratio of the standard deviation of a normal distribution to its median absolute deviation.
    const DEVIATIONS: f64 = 1.4826;
    let mut times: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    // Relative errors count. They are relative to the expected time: relative to the measured one, short outliers would
    // count most.
    let mut expected = vec![median(&times)?; runs.len()];
    let mut fit = fit_times(runs, &times, &expected, measured)?;
    for _ in 0..REPETITIONS {
        expected = runs
            .iter()
            .map(|run| fit.at(measured.row(run.environment)) + counted_seconds(measured, run))
            .collect();
        let errors: Vec<f64> =
            runs.iter().zip(&expected).map(|(run, expected)| (run.seconds / expected - 1.0).abs()).collect();
        let limit = OUTLIER * DEVIATIONS * median(&errors)?;
        for ((time, run), expected) in times.iter_mut().zip(runs).zip(&expected) {
            *time = run.seconds.clamp(expected * (1.0 - limit).max(0.1), expected * (1.0 + limit));
        }
        fit = fit_times(runs, &times, &expected, measured)?;
    }
    Some(fit)
}

/// Fits the given times, each weighted by the time that is expected.
fn fit_times(
    runs: &[TimedRun],
    times: &[f64],
    expected: &[f64],
    measured: &Measured,
) -> Option<Fit<COLUMNS>> {
    let mut equations = NormalEquations::new();
    for ((run, seconds), expected) in runs.iter().zip(times).zip(expected) {
        let observed = seconds - counted_seconds(measured, run);
        equations.add(measured.row(run.environment), observed, 1.0 / expected.max(f64::MIN_POSITIVE));
    }
    equations.fit()
}

#[cfg(test)]
mod tests {
    use super::super::conditions::Dimension;
    use super::*;
    use proptest::prelude::*;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    const MEGABIT: f64 = 125_000.0;
    const BYTES: f64 = 1e7;

    fn environment(round_trip_ms: f64, megabits: f64, disk_ms: Option<f64>) -> NetworkAndDisk {
        NetworkAndDisk {
            round_trip: Duration::from_secs_f64(round_trip_ms / 1e3),
            bytes_per_second: megabits * MEGABIT,
            disk: disk_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
        }
    }

    /// Time of a task with 60 round trips, 10 MB and 20 disk requests, in seconds.
    fn truth(environment: NetworkAndDisk) -> f64 {
        let disk = environment.disk.map_or(0.0, |disk| disk.as_secs_f64());
        0.1 + 60.0 * environment.round_trip.as_secs_f64() + BYTES / environment.bytes_per_second + 20.0 * disk
    }

    /// Runs under each combination of conditions, with a random error of up to 4 %.
    fn runs(round_trips_ms: &[f64], megabits: &[f64], disks_ms: &[Option<f64>]) -> Vec<TimedRun> {
        let (mut runs, mut random) = (vec![], ChaCha8Rng::seed_from_u64(1));
        for round_trip_ms in round_trips_ms.iter().cycle().take(round_trips_ms.len() * 3) {
            for rate in megabits {
                for disk in disks_ms {
                    let environment = environment(*round_trip_ms, *rate, *disk);
                    let error = 0.08 * (f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5);
                    runs.push(TimedRun {
                        environment,
                        seconds: truth(environment) * (1.0 + error),
                        bytes: BYTES,
                        trips: None,
                    });
                }
            }
        }
        runs
    }

    fn assert_covers(model: &Model, environment: NetworkAndDisk) {
        let (prediction, truth) = (model.predict(environment).unwrap(), truth(environment));
        assert!((prediction.seconds / truth - 1.0).abs() < 0.05, "{prediction:?} for {truth}");
        assert!(prediction.low < truth && truth < prediction.high, "{prediction:?} for {truth}");
    }

    #[test]
    fn times_over_other_networks_and_disks_are_predicted() {
        let runs = runs(&[0.5, 1.0, 2.0, 5.0], &[100.0, 300.0, 1000.0], &[Some(0.1), Some(5.0)]);
        let model = fitted(&runs).unwrap();
        assert_covers(&model, environment(20.0, 300.0, Some(5.0)));
        assert_covers(&model, environment(1.0, 20.0, Some(0.1)));
        assert_covers(&model, environment(50.0, 5000.0, Some(15.0)));
        assert!(!model.predict(environment(20.0, 300.0, Some(5.0))).unwrap().is_extrapolated);
        assert!(model.predict(environment(200.0, 300.0, Some(5.0))).unwrap().is_extrapolated);
    }

    #[test]
    fn a_condition_that_never_varied_is_not_guessed() {
        let model = fitted(&runs(&[0.5, 0.55, 0.6], &[100.0, 1000.0], &[None])).unwrap();
        let refused = |environment| model.predict(environment).unwrap_err();
        assert_eq!(refused(environment(20.0, 300.0, None)), NoPrediction::NeverVaried(Dimension::RoundTrip));
        assert_eq!(refused(environment(0.5, 300.0, Some(1.0))), NoPrediction::NeverVaried(Dimension::Disk));
        assert_covers(&model, environment(0.55, 40.0, None));
    }

    fn fitted(runs: &[TimedRun]) -> Result<Model, NoPrediction> {
        FittedRuns::of(runs).map(|fitted| fitted.model(None))
    }

    fn with_trips(mut runs: Vec<TimedRun>, least: f64, most: f64) -> Vec<TimedRun> {
        runs.iter_mut().for_each(|run| run.trips = Some(TripsInOrder { least, most, is_exact: true }));
        runs
    }

    #[test]
    fn round_trips_that_a_short_network_hides_are_counted() {
        let mut runs = with_trips(runs(&[0.5, 1.0, 2.0], &[100.0, 300.0], &[None]), 60.0, 90.0);
        // The client reads ahead: all bytes are on the way while it waits for the first ones.
        runs.iter_mut().for_each(|run| run.seconds -= 60.0 * run.environment.round_trip.as_secs_f64());
        let far = environment(20.0, 300.0, None);
        assert_covers(&fitted(&runs).unwrap(), far);
        runs.iter_mut().for_each(|run| run.trips = None);
        assert!(fitted(&runs).unwrap().predict(far).unwrap().seconds < 0.5 * truth(far), "no round trips");
    }

    #[test]
    fn more_round_trips_over_a_longer_network_are_expected_to_remain() {
        // What the client keeps of the names expires while it waits.
        let mut runs = runs(&[0.5, 1.0, 2.0, 5.0], &[100.0, 300.0], &[None; 2]);
        for run in &mut runs {
            let round_trip = run.environment.round_trip.as_secs_f64();
            let trips = if round_trip > 4e-3 { 120.0 } else { 60.0 };
            run.seconds += (trips - 60.0) * round_trip;
            run.trips = Some(TripsInOrder { least: trips, most: trips, is_exact: true });
        }
        let far = environment(20.0, 300.0, None);
        let found = FittedRuns::of(&runs).unwrap().model(Some(far.round_trip)).predict(far).unwrap().seconds;
        assert!((found / (truth(far) + 60.0 * 0.02) - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn there_are_at_most_as_many_round_trips_as_requests() {
        // The NAS is slow whenever the network is.
        let mut runs = with_trips(runs(&[0.5, 1.0, 2.0], &[100.0, 300.0], &[None]), 50.0, 60.0);
        runs.iter_mut().for_each(|run| run.seconds += 200.0 * run.environment.round_trip.as_secs_f64());
        let far = environment(20.0, 300.0, None);
        let found = fitted(&runs).unwrap().predict(far).unwrap().seconds;
        assert!((found / truth(far) - 1.0).abs() < 0.25, "{found}");
    }

    #[test]
    fn counted_round_trips_need_no_network_that_varied() {
        let same = runs(&[0.5], &[100.0, 300.0], &[None; 2]);
        let far = environment(20.0, 300.0, None);
        assert_covers(&fitted(&with_trips(same.clone(), 57.0, 63.0)).unwrap(), far);
        let vague = fitted(&with_trips(same, 40.0, 90.0)).unwrap().predict(far);
        assert_eq!(vague.unwrap_err(), NoPrediction::NeverVaried(Dimension::RoundTrip));
    }

    #[test]
    fn slow_rounds_are_not_taken_for_a_slow_network() {
        // Everything takes longer in some rounds, and the rate that is reached falls with it.
        let mut runs = runs(&[1.0], &[100.0; 8], &[None]);
        for (index, run) in runs.iter_mut().enumerate() {
            let slowdown = 1.0 + (index % 4) as f64;
            run.seconds *= slowdown;
            run.environment.bytes_per_second /= slowdown;
        }
        let model = fitted(&runs).unwrap();
        let slow = model.predict(environment(1.0, 10.0, None)).unwrap();
        assert!(slow.seconds < 8.0 + 4.0, "10 MB take 8 s at 10 Mbit/s: {slow:?}");
    }

    #[test]
    fn more_bandwidth_may_help_nothing() {
        let model = fitted(&runs(&[1.0, 5.0], &[100.0], &[None; 3])).unwrap();
        let (usual, faster) =
            (model.predict(model.usual()).unwrap(), model.predict(environment(1.0, 1000.0, None)).unwrap());
        assert!(faster.seconds < usual.seconds && faster.high >= truth(environment(1.0, 100.0, None)));
    }

    #[test]
    fn a_few_runs_in_which_something_else_happened_change_little() {
        let mut runs = runs(&[0.5, 1.0, 2.0, 5.0], &[100.0, 300.0, 1000.0], &[None]);
        runs.iter_mut().step_by(12).for_each(|run| run.seconds *= 8.0);
        assert_covers(&fitted(&runs).unwrap(), environment(20.0, 300.0, None));
    }

    #[test]
    fn too_few_runs_and_impossible_ones_give_no_model() {
        let mut runs = runs(&[1.0, 5.0], &[100.0, 1000.0], &[None]);
        assert_eq!(runs.len(), MIN_RUNS);
        assert!(fitted(&runs).is_ok());
        runs[0].environment.round_trip = Duration::ZERO;
        assert_eq!(fitted(&runs).unwrap_err(), NoPrediction::TooFewRuns);
        assert_eq!(fitted(&[]).unwrap_err(), NoPrediction::TooFewRuns);
    }

    proptest! {
        #[test]
        fn any_runs_end_without_panic(
            values in proptest::collection::vec((any::<u32>(), any::<f64>(), any::<f64>(), any::<Option<u32>>()), 12..40),
        ) {
            let runs: Vec<TimedRun> = values.iter().map(|(round_trip, bytes_per_second, seconds, disk)| TimedRun {
                environment: NetworkAndDisk {
                    round_trip: Duration::from_micros((*round_trip).into()),
                    bytes_per_second: *bytes_per_second,
                    disk: disk.map(|disk| Duration::from_micros(disk.into())),
                },
                seconds: *seconds,
                bytes: seconds.abs(),
                trips: disk.map(|least| TripsInOrder {
                    least: f64::from(least),
                    most: f64::from(least) + f64::from(*round_trip),
                    is_exact: least % 2 == 0,
                }),
            }).collect();
            if let Ok(model) = fitted(&runs) {
                let _ = model.predict(environment(20.0, 100.0, Some(5.0)));
                let _ = model.predict(model.usual());
            }
        }
    }
}
