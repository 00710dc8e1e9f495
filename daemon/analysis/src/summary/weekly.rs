//! Builds the weekly summary, the value from which the terminal, the web page and the exports are rendered.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;

use super::comparison::{Comparison, ComparisonInput, PairNames, Subject, TestParams, compare};
use super::damage::damaged;
use super::events::{EventLine, events_of_week};
use super::freshness::{Freshness, freshness};
use super::pair_data::{MetricComparison, MetricIndex, PairData};
use super::pair_summary::PairSummary;
use super::pairing::TargetPair;
use super::recent_days::{UnmeasuredShare, unmeasured_shares};
use super::recommendation::{Recommendation, recommendation};
use super::reliability::{self, Attempt, Failures, attempts, failures, is_failing_alone, since};
use super::replay::{ReplayFidelity, replay_fidelity};
use super::scores::{Scores, reliability as reliability_score, smoothness};
use super::sequential::sequential_weeks;
use super::table::{MetricRow, metric_rows};
use super::verdict::{ALPHA, MIN_VERDICT_DAYS, RatioEstimate, Significance};
use super::weekly_minutes::{WeeklyMinutes, weekly_minutes};
use super::window::AnalysisWindow;
use super::{Excluded, Week, date_of_day};
use crate::stats::{DaySeries, e_bh, pairwise_alpha};
use longhaul_model::{AnalysisSettings, History, PROFILE_LINES, ProfileLine};
use longhaul_model::{Role, RoundStatus, Scale, TargetName, WaitKind};

/// Version of the serialized form of [`WeeklySummary`].
const SCHEMA: u32 = 1;

/// Parameters of a weekly summary.
#[derive(Debug, Clone)]
pub struct WeeklyQuery {
    /// Week to show. Verdicts use all data up to its end.
    pub week: Week,
    /// Scale of the test data; `None` selects the configured scale, or that of most runs.
    pub scale: Option<Scale>,
    /// First day whose rounds are used, in days since 1970-01-01; `None` for all. The warm-up is that of the whole history.
    pub since: Option<i64>,
    /// Time zone of the user, which determines the number of hours of the week.
    pub zone: TimeZone,
}

/// Summary of one week, with verdicts that use all data up to its end.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WeeklySummary {
    /// Version of the serialized form.
    pub schema: u32,
    /// Week that the summary shows.
    pub week: Week,
    /// First day of the week, as an ISO date.
    pub first_day: String,
    /// Last day of the week, as an ISO date.
    pub last_day: String,
    /// Number of hours of the week; not 168 if daylight saving time changed.
    pub hours: f64,
    /// Scale of the test data; `None` if there is no run.
    pub scale: Option<Scale>,
    /// Analysis settings that were fixed before the first run.
    pub settings: AnalysisSettings,
    /// Shares and baselines with at least one run.
    pub targets: Vec<TargetLine>,
    /// Shares that are no longer measured; missing if there are none. No pair and no score is about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<UnmeasuredShare>,
    /// The recommended share, if the data supports one.
    pub recommendation: Recommendation,
    /// Comparisons of each pair of shares: headline, tasks, reliability, minutes a week.
    pub pairs: Vec<PairSummary>,
    /// Scores of each share: speed, smoothness, reliability.
    pub scores: Vec<Scores>,
    /// Times of each metric on each target.
    pub table: Vec<MetricRow>,
    /// Failures of each target in its newest epoch.
    pub failures: Vec<Failures>,
    /// Freshness of each target in its newest epoch; empty if it was not checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub freshness: Vec<Freshness>,
    /// Times of the recording that is replayed; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayFidelity>,
    /// Counts of the week's rounds.
    pub rounds: RoundsOfWeek,
    /// Events of the week, oldest first.
    pub events: Vec<EventLine>,
    /// Runs excluded from the verdicts, with the reason.
    pub excluded: Vec<Excluded>,
}

/// A target as listed in the weekly summary.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TargetLine {
    /// Name of the target.
    pub name: TargetName,
    /// Role of the target: share or baseline.
    pub role: Role,
    /// Protocol in the newest epoch; `None` if unknown.
    pub protocol: Option<String>,
    /// First day after the warm-up, as an ISO date; `None` without a run.
    pub counted_from: Option<String>,
    /// Number of epochs of the target so far, including the newest one. Epochs are never pooled.
    pub epochs: usize,
}

/// Counts of the rounds of a week.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct RoundsOfWeek {
    /// Number of all rounds of the week, including skipped and void ones.
    pub planned: usize,
    /// Number of rounds by status; `not-ended` for a round that has not ended.
    pub by_status: BTreeMap<&'static str, usize>,
    /// Number of rounds by the reason for which they were skipped, void or incomplete.
    pub reasons: BTreeMap<String, usize>,
}

impl WeeklyQuery {
    /// Returns the runs of a history that this asks for.
    pub(super) fn window<'h>(&self, history: &'h History) -> AnalysisWindow<'h> {
        let days = self.since.unwrap_or(i64::MIN)..=self.week.last_day();
        AnalysisWindow::new(history, days, self.scale)
    }
}

/// Computes the summary of a week. Pure: the same history gives the same value.
pub fn summarize_week(history: &History, query: &WeeklyQuery) -> WeeklySummary {
    summarize(&query.window(history), query)
}

/// Returns all pairs of shares alone, also of those that are no longer measured, from all data up to a day: the verdicts without
/// the description of the times waited, whose bootstrap takes most of the time of a summary and decides nothing. Verdicts that
/// are adjusted for the round trip time are about the stated one; `None` for the median of the weeks.
pub fn pair_verdicts(
    history: &History,
    last_day: i64,
    stated_round_trip: Option<Duration>,
) -> Vec<PairSummary> {
    let mut scope = AnalysisWindow::new(history, i64::MIN..=last_day, None);
    (scope.stated_round_trip, scope.describes_waits) = (stated_round_trip, false);
    pairs(&scope, &attempts(&scope))
}

fn summarize(scope: &AnalysisWindow<'_>, query: &WeeklyQuery) -> WeeklySummary {
    let (history, week) = (scope.history, query.week);
    let unmeasured = unmeasured_shares(scope);
    let left_out: Vec<usize> =
        unmeasured.iter().filter(|(_, share)| share.is_left_out).map(|(share, _)| *share).collect();
    let shares: Vec<usize> = scope.shares().into_iter().filter(|share| !left_out.contains(share)).collect();
    let attempts = attempts(scope);
    let left_out = share_names(scope, &left_out);
    let mut pairs = pairs(scope, &attempts);
    pairs.retain(|pair| !left_out.iter().any(|name| pair.includes(name)));
    let failures: Vec<Failures> = (0..scope.active_epochs.len())
        .filter(|target| scope.active_epochs[*target].is_some())
        .map(|target| failures(scope, target, &attempts))
        .collect();
    WeeklySummary {
        schema: SCHEMA,
        week,
        first_day: date_of_day(week.first_day()).to_string(),
        last_day: date_of_day(week.last_day()).to_string(),
        hours: week.hours(&query.zone),
        scale: scope.scale,
        settings: history.settings.clone(),
        targets: (0..scope.active_epochs.len()).filter_map(|target| target_line(scope, target)).collect(),
        unmeasured: unmeasured.into_iter().map(|(_, share)| share).collect(),
        scores: {
            let results = ShareResults { shares: &shares, pairs: &pairs, failures: &failures };
            shares.iter().map(|share| scores(scope, *share, &results)).collect()
        },
        table: metric_rows(scope, week),
        failures,
        freshness: freshness(scope),
        replay: replay_fidelity(scope),
        rounds: rounds_of_week(history, week),
        events: events_of_week(history, week),
        excluded: scope.excluded.clone(),
        recommendation: recommendation(&share_names(scope, &shares), &pairs, reference(scope, &shares)),
        pairs,
    }
}

fn test_params(scope: &AnalysisWindow<'_>) -> TestParams {
    // Bonferroni: the overall intervals of all pairs hold together (docs/methodology.md#many-comparisons).
    let alpha = pairwise_alpha(ALPHA, scope.shares().len());
    TestParams { alpha, threshold: scope.history.settings.threshold }
}

fn share_names<'h>(scope: &AnalysisWindow<'h>, shares: &[usize]) -> Vec<&'h TargetName> {
    shares.iter().map(|place| &scope.history.targets[*place].name).collect()
}

fn target_line(scope: &AnalysisWindow<'_>, place: usize) -> Option<TargetLine> {
    let active = scope.active_epochs[place]?;
    let target = &scope.history.targets[place];
    let epochs = || scope.history.epochs.iter().filter(|epoch| epoch.target == target.name);
    Some(TargetLine {
        name: target.name.clone(),
        role: target.role,
        protocol: epochs()
            .find(|epoch| epoch.number == active.epoch)
            .and_then(|epoch| epoch.protocol.clone()),
        counted_from: Some(date_of_day(active.first_counted_day).to_string()),
        epochs: epochs().filter(|epoch| epoch.number <= active.epoch).count(),
    })
}

/// Compares every pair of shares. The significance of the metrics is decided jointly over all pairs (e-BH). Shares that are no longer
/// measured count, too: removing one must not make the verdicts about the others less strict.
fn pairs(scope: &AnalysisWindow<'_>, attempts: &[Vec<Attempt>]) -> Vec<PairSummary> {
    let (params, shares) = (test_params(scope), scope.shares());
    // The cap of a metric depends on all targets, so it is the same for all pairs.
    let caps: BTreeMap<MetricIndex, f64> = MetricIndex::all()
        .map(|position| (position, scope.failure_cap(position.workload, position.index)))
        .collect();
    let pairs = shares
        .iter()
        .enumerate()
        .flat_map(|(place, a)| shares[place + 1..].iter().map(|b| TargetPair { a: *a, b: *b }));
    let pair_data: Vec<PairData<'_, '_>> = pairs.map(|pair| PairData::new(scope, pair, &caps)).collect();
    let cells: Vec<Vec<(MetricIndex, MetricComparison)>> = pair_data
        .iter()
        .map(|pair_data| {
            MetricIndex::all()
                .filter_map(|position| Some((position, pair_data.compare_metric(position)?)))
                .collect()
        })
        .collect();
    let compared = cells.iter().flatten().filter(|(_, cell)| is_compared(cell)).count();
    // A single difference among so many comparisons needs this e-value (e-BH).
    let least_ln_e = (compared as f64 / ALPHA).ln();
    let mut significances = significance(&cells, |cell| cell.series).into_iter();
    let mut unadjusted = significance(&cells, |cell| cell.unadjusted).into_iter();
    let mut summaries = vec![];
    for (pair_data, cells) in pair_data.iter().zip(&cells) {
        let significances = significances.by_ref().zip(unadjusted.by_ref());
        let judged = cells.iter().zip(significances).map(|((position, cell), (significance, unadjusted))| {
            compare(
                Subject::for_metric(*position),
                target_names(pair_data),
                ComparisonInput { cell, significance, unadjusted, least_ln_e },
                params,
            )
        });
        summaries.push(pair_summary(pair_data, judged.collect(), attempts, params));
    }
    summaries
}

/// Returns which differences are significant at a false discovery rate of 5 % (docs/methodology.md#many-comparisons).
/// Comparisons below [`MIN_VERDICT_DAYS`] days enter with an e-value of 1, those without a round after the warm-up not
/// at all.
fn significance(
    cells: &[Vec<(MetricIndex, MetricComparison)>],
    series: impl Fn(&MetricComparison) -> Option<DaySeries>,
) -> Vec<Significance> {
    let compared = cells.iter().flatten().map(|(_, cell)| cell).filter(|cell| is_compared(cell));
    let ln_e_values = compared.map(|cell| match series(cell) {
        Some(series) if series.days() >= MIN_VERDICT_DAYS => series.ln_e_value(),
        Some(_) | None => 0.0,
    });
    let mut significant = e_bh(&ln_e_values.collect::<Vec<_>>(), ALPHA).into_iter();
    // The result is unused below 14 days: an early verdict only needs the whole interval beyond 25 %.
    let mut judge = |cell: &MetricComparison| match is_compared(cell) && significant.next() == Some(true) {
        true => Significance::Significant,
        false => Significance::NotSignificant,
    };
    cells.iter().flatten().map(|(_, cell)| judge(cell)).collect()
}

fn target_names<'e>(pair_data: &'e PairData<'_, '_>) -> PairNames<'e> {
    let targets = &pair_data.window.history.targets;
    PairNames { a: &targets[pair_data.pair.a].name, b: &targets[pair_data.pair.b].name }
}

fn pair_summary(
    pair_data: &PairData<'_, '_>,
    tasks: Vec<Comparison>,
    attempts: &[Vec<Attempt>],
    params: TestParams,
) -> PairSummary {
    let scope = pair_data.window;
    let from = scope.first_counted_day(pair_data.pair).unwrap_or(i64::MAX);
    let [on_a, on_b] = [pair_data.pair.a, pair_data.pair.b].map(|target| since(&attempts[target], from));
    let judge = |cell: Option<MetricComparison>, subject: Subject| {
        Some(compare_several_metrics(subject, target_names(pair_data), &cell?, params))
    };
    let of = |kind: WaitKind, key, activity| {
        let cell = pair_data.compare_weighted(|metric| metric.wait_kind == kind);
        judge(cell, Subject::overall(key, activity, kind))
    };
    let overall = pair_data.compare_overall();
    let days = overall.as_ref().map_or(pair_data.counted_days.clone(), |cell| cell.days.clone());
    let headline = judge(overall, Subject::overall("overall", "all tasks together", WaitKind::Background));
    let by_wait_kind = [
        of(WaitKind::Interactive, "interactive", "what a user waits for"),
        of(WaitKind::Background, "background", "what runs in the background"),
    ];
    let PairNames { a, b } = target_names(pair_data);
    let profile = &scope.history.settings.usage_profile;
    let waits = |line: &'static ProfileLine| line.waits_a_week(line.ordinary);
    let ordinary = PROFILE_LINES.iter().filter(|line| line.ordinary > 0.0).flat_map(waits).collect();
    let counted_days = scope.history.settings.usage_counted_days;
    let minutes = |profile| {
        let minutes = weekly_minutes(pair_data, profile, params.alpha, &days)?;
        Some(WeeklyMinutes { counted_days, ..minutes })
    };
    let own_minutes = minutes(profile);
    PairSummary {
        a: a.clone(),
        b: b.clone(),
        headline,
        by_wait_kind: by_wait_kind.into_iter().flatten().collect(),
        // Weeks are only evaluated if the two targets were measured in turns. One round of both by hand is no valid day.
        sequential_weeks: match tasks.iter().all(|task| task.days.is_empty()) {
            true => sequential_weeks(scope, pair_data.pair, params.alpha),
            false => vec![],
        },
        tasks,
        reliability: reliability::reliability(&on_a, &on_b, params.alpha),
        weekly_minutes: own_minutes.filter(|minutes| minutes.is_of_all_days),
        own_minutes,
        ordinary_minutes: profile.is_empty().then(|| minutes(&ordinary)).flatten(),
        damaged: damaged(scope, [pair_data.pair.a, pair_data.pair.b]),
        failing: failing(target_names(pair_data), &on_a, &on_b),
    }
}

/// Returns the comparison over several metrics. e-BH only applies to single metrics: these use the level of the pair
/// (docs/methodology.md#many-comparisons).
fn compare_several_metrics(
    subject: Subject,
    names: PairNames<'_>,
    cell: &MetricComparison,
    params: TestParams,
) -> Comparison {
    let input = ComparisonInput {
        cell,
        significance: Significance::Significant,
        unadjusted: Significance::Significant,
        least_ln_e: f64::NEG_INFINITY,
    };
    compare(subject, names, input, params)
}

/// Returns the target whose last rounds all failed while the other one worked; at most one.
fn failing(names: PairNames<'_>, a: &[Attempt], b: &[Attempt]) -> Vec<TargetName> {
    let failing = [(names.a, is_failing_alone(a, b)), (names.b, is_failing_alone(b, a))];
    failing.into_iter().filter(|(_, is_failing)| *is_failing).map(|(name, _)| name.clone()).collect()
}

/// Returns true if a round after the warm-up compares both targets.
fn is_compared(cell: &MetricComparison) -> bool {
    cell.paired_days.rounds.complete > 0
}

/// Returns the share that others are held against: the first SMB share (macOS prefers SMB), else the first share.
fn reference<'h>(scope: &AnalysisWindow<'h>, shares: &[usize]) -> Option<&'h TargetName> {
    let is_smb = |place: &usize| {
        let line = target_line(scope, *place);
        line.and_then(|line| line.protocol).is_some_and(|protocol| protocol.starts_with(SMB_PREFIX))
    };
    let place = shares.iter().copied().find(is_smb).or(shares.first().copied())?;
    Some(&scope.history.targets[place].name)
}

/// Results of all shares, from which scores are computed.
struct ShareResults<'a> {
    shares: &'a [usize],
    pairs: &'a [PairSummary],
    failures: &'a [Failures],
}

/// Returns the scores of a share. Ratios are geometric means, so the choice of the reference changes no comparison.
fn scores(scope: &AnalysisWindow<'_>, share: usize, results: &ShareResults<'_>) -> Scores {
    let ShareResults { shares, pairs, failures } = *results;
    let name = &scope.history.targets[share].name;
    let reference = reference(scope, shares);
    let headlines = || pairs.iter().filter_map(|pair| pair.headline.as_ref());
    let speed = headlines().find_map(|headline| {
        let ratio = headline.ratio?;
        match reference {
            Some(reference) if headline.a == *name && headline.b == *reference => Some(ratio),
            Some(reference) if headline.b == *name && headline.a == *reference => Some(ratio.inverse()),
            Some(_) | None => None,
        }
    });
    let own_pairs = || pairs.iter().filter(|pair| pair.includes(name));
    let won = own_pairs().filter(|pair| pair.winner() == Some(name)).count();
    let lost = own_pairs().filter(|pair| pair.winner().is_some_and(|winner| winner != name)).count();
    Scores {
        target: name.clone(),
        is_reference: reference == Some(name),
        speed: speed.map(|ratio| RatioEstimate {
            value: 100.0 * ratio.value,
            low: 100.0 * ratio.low,
            high: 100.0 * ratio.high,
            days: ratio.days,
        }),
        smoothness: smoothness(scope, share),
        reliability: failures.iter().find(|failures| failures.target == *name).and_then(reliability_score),
        // Undecided pairs leave the rank open between these bounds (docs/methodology.md#scores).
        rank: (1 + lost, shares.len() - won),
    }
}

/// Prefix of every SMB protocol name as shown to users.
const SMB_PREFIX: &str = "SMB";

fn rounds_of_week(history: &History, week: Week) -> RoundsOfWeek {
    let mut rounds = RoundsOfWeek::default();
    for round in history.rounds.iter().filter(|round| week.contains(round.day())) {
        rounds.planned += 1;
        *rounds.by_status.entry(round.status.map_or("not-ended", RoundStatus::name)).or_default() += 1;
        if let Some(reason) = &round.reason {
            *rounds.reasons.entry(reason.clone()).or_default() += 1;
        }
    }
    rounds
}
