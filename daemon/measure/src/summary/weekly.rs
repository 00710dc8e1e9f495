//! The summary of a week: the one value that terminal, page and exports show.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;

use super::cell::{Cell, EVER, Evidence, Position};
use super::comparison::{Comparison, Subject, Terms, compare};
use super::journal::{JournalEntry, journal};
use super::minutes::{MinutesAWeek, minutes_a_week};
use super::pairing::Pair;
use super::reliability::{self, Failures, Reliability, ReliabilityVerdict, attempts, failures};
use super::scope::Scope;
use super::scores::{Scores, reliability as reliability_score, smoothness};
use super::sequential::{SequentialWeeks, sequential_weeks};
use super::table::{EndpointRow, rows};
use super::verdict::{ALPHA, Estimate, OPENING_DAYS, Standing};
use super::{History, LeftOut, Premises, Week, calendar, words};
use crate::model::{Presence, Role, RoundStatus, Scale, TargetName};
use crate::stats::{e_bh, pairwise_alpha};

/// Version of the serialised form.
const SCHEMA: u32 = 1;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The week that is shown; verdicts rest on everything up to its end.
    pub week: Week,
    /// The corpus size; `None`: that of the last run.
    pub scale: Option<Scale>,
    /// The person's time zone: it says how long the week was.
    pub zone: TimeZone,
}

/// The summary of a week.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Weekly {
    /// Version of this form.
    pub schema: u32,
    /// The week.
    pub week: Week,
    /// Its first day.
    pub first_day: String,
    /// Its last day.
    pub last_day: String,
    /// How many hours it had; not 168 where the clock was changed.
    pub hours: f64,
    /// The corpus size; `None` if there is no run.
    pub scale: Option<Scale>,
    /// What was settled before the first run.
    pub premises: Premises,
    /// The targets.
    pub targets: Vec<TargetLine>,
    /// Each pair of shares: headline, tasks, failures, minutes.
    pub pairs: Vec<PairSummary>,
    /// Each share in three numbers.
    pub scores: Vec<Scores>,
    /// What each task took on each target.
    pub table: Vec<EndpointRow>,
    /// The failures of each target in its epoch.
    pub failures: Vec<Failures>,
    /// What became of the week's rounds.
    pub rounds: RoundsOfWeek,
    /// The week's events.
    pub events: Vec<JournalEntry>,
    /// What was left out of the verdicts, and why.
    pub left_out: Vec<LeftOut>,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TargetLine {
    /// Its name.
    pub name: TargetName,
    /// Whether it takes part in verdicts.
    pub role: Role,
    /// How it is reached in the epoch that is shown; `None` where that is not known.
    pub protocol: Option<String>,
    /// The first day that counts; `None` without a run.
    pub settled: Option<String>,
    /// How many epochs it had so far, this one included. They are never pooled.
    pub epochs: usize,
}

/// Two shares.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PairSummary {
    /// The first.
    pub a: TargetName,
    /// The second.
    pub b: TargetName,
    /// Over all tasks; `None` while no round has them all on both.
    pub headline: Option<Comparison>,
    /// What a person waits for, together; then what runs in the background.
    pub by_presence: Vec<Comparison>,
    /// Task by task, cold and warm apart.
    pub tasks: Vec<Comparison>,
    /// For targets that were measured in turns, a week each: what these weeks say. Empty for all others.
    pub sequential: Vec<SequentialWeeks>,
    /// How often each fails.
    pub reliability: Reliability,
    /// The same in words, with the time waited.
    pub reliability_text: String,
    /// For the person's own mix; `None` without one, or while anything fits.
    pub minutes_a_week: Option<MinutesAWeek>,
}

/// What became of the rounds of a week.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct RoundsOfWeek {
    /// All of them.
    pub planned: usize,
    /// How they ended; `going-on` for those without an end.
    pub by_status: BTreeMap<&'static str, usize>,
    /// Why they were not made, or not to their end.
    pub reasons: BTreeMap<String, usize>,
}

/// The summary of a week. Pure: the same history gives the same value.
pub fn weekly(history: &History, question: &Question) -> Weekly {
    let week = question.week;
    let scope = Scope::of(history, week.last_day(), question.scale);
    let shares = scope.shares();
    let terms = Terms { alpha: pairwise_alpha(ALPHA, shares.len()), threshold: history.premises.threshold };
    let pairs = pairs(&scope, &shares, terms);
    let failures: Vec<Failures> = (0..scope.lives.len())
        .filter(|target| scope.lives[*target].is_some())
        .map(|target| failures(&scope, target))
        .collect();
    Weekly {
        schema: SCHEMA,
        week,
        first_day: calendar(week.first_day()).to_string(),
        last_day: calendar(week.last_day()).to_string(),
        hours: week.hours(&question.zone),
        scale: scope.scale,
        premises: history.premises.clone(),
        targets: (0..scope.lives.len()).filter_map(|target| target_line(&scope, target)).collect(),
        scores: shares.iter().map(|share| scores(&scope, (*share, &shares), &pairs, &failures)).collect(),
        table: rows(&scope, week),
        failures,
        rounds: rounds_of_week(history, week),
        events: journal(history, week),
        left_out: scope.left_out.clone(),
        pairs,
    }
}

fn target_line(scope: &Scope<'_>, place: usize) -> Option<TargetLine> {
    let life = scope.lives[place]?;
    let target = &scope.history.targets[place];
    let epochs = || scope.history.epochs.iter().filter(|epoch| epoch.target == target.name);
    Some(TargetLine {
        name: target.name.clone(),
        role: target.role,
        protocol: epochs().find(|epoch| epoch.number == life.epoch).and_then(|epoch| epoch.protocol.clone()),
        settled: Some(calendar(life.settled).to_string()),
        epochs: epochs().filter(|epoch| epoch.number <= life.epoch).count(),
    })
}

/// Every pair with all its comparisons; which differences stand is decided over all of them at once.
fn pairs(scope: &Scope<'_>, shares: &[usize], terms: Terms) -> Vec<PairSummary> {
    let caps: BTreeMap<Position, f64> =
        Position::all().map(|position| (position, scope.cap(position.workload, position.place))).collect();
    let pairs = shares
        .iter()
        .enumerate()
        .flat_map(|(place, a)| shares[place + 1..].iter().map(|b| Pair { a: *a, b: *b }));
    let evidence: Vec<Evidence<'_, '_>> = pairs.map(|pair| Evidence::of(scope, pair, &caps)).collect();
    let cells: Vec<Vec<(Position, Cell)>> = evidence
        .iter()
        .map(|evidence| {
            Position::all().filter_map(|position| Some((position, evidence.on(position)?))).collect()
        })
        .collect();
    let mut standing = standing(&cells).into_iter();
    let mut summaries = vec![];
    for (evidence, cells) in evidence.iter().zip(&cells) {
        let judged = cells.iter().zip(standing.by_ref()).map(|((position, cell), standing)| {
            compare(Subject::of(*position), names(evidence), (cell, standing), terms)
        });
        summaries.push(pair_summary(evidence, judged.collect(), terms));
    }
    summaries
}

/// Which of all differences stand, at a false discovery rate of 5 %. Those before the opening day are not asked.
fn standing(cells: &[Vec<(Position, Cell)>]) -> Vec<Standing> {
    let evidence = cells.iter().flatten().map(|(_, cell)| match &cell.series {
        Some(series) if series.days() >= OPENING_DAYS => series.ln_e_value(),
        Some(_) | None => 0.0,
    });
    let stands = e_bh(&evidence.collect::<Vec<_>>(), ALPHA);
    // Before the opening day the early rule asks for the whole interval beyond 25 %, and for nothing else.
    stands.into_iter().map(|stands| if stands { Standing::Stands } else { Standing::MayBeChance }).collect()
}

fn names<'e>(evidence: &'e Evidence<'_, '_>) -> (&'e TargetName, &'e TargetName) {
    let targets = &evidence.scope.history.targets;
    (&targets[evidence.pair.a].name, &targets[evidence.pair.b].name)
}

fn pair_summary(evidence: &Evidence<'_, '_>, tasks: Vec<Comparison>, terms: Terms) -> PairSummary {
    let scope = evidence.scope;
    let from = scope.settled(evidence.pair).unwrap_or(i64::MAX);
    let reliability = reliability::reliability(
        &attempts(scope, evidence.pair.a, from),
        &attempts(scope, evidence.pair.b, from),
        terms.alpha,
    );
    let judge = |cell: Option<Cell>, key: &str, activity: &str| {
        let cell = cell?;
        Some(compare(Subject::overall(key, activity), names(evidence), (&cell, Standing::Stands), terms))
    };
    let of = |presence: Presence| evidence.weighted(|endpoint| endpoint.presence == presence);
    let overall = evidence.overall();
    let days = overall.as_ref().map_or(EVER, |cell| cell.days.clone());
    let mut headline = judge(overall, "overall", "all tasks together");
    let by_presence = [
        judge(of(Presence::Interactive), "interactive", "what somebody waits for"),
        judge(of(Presence::Background), "background", "what runs in the background"),
    ];
    if let Some(headline) = &mut headline {
        headline.text = words::with_reliability(headline, &reliability);
    }
    let (a, b) = names(evidence);
    PairSummary {
        a: a.clone(),
        b: b.clone(),
        reliability_text: words::reliability(names(evidence), &reliability, headline.as_ref()),
        headline,
        by_presence: by_presence.into_iter().flatten().collect(),
        sequential: if tasks.is_empty() { sequential_weeks(scope, evidence.pair) } else { vec![] },
        tasks,
        reliability,
        minutes_a_week: minutes_a_week(evidence, &scope.history.premises.mix, terms.alpha, &days),
    }
}

/// The three numbers of a share. The reference of speed is the first SMB share, which is what macOS would pick, or the
/// first share; ratios are geometric, so that the choice changes no comparison.
fn scores(
    scope: &Scope<'_>,
    (share, shares): (usize, &[usize]),
    pairs: &[PairSummary],
    failures: &[Failures],
) -> Scores {
    let name = &scope.history.targets[share].name;
    let is_smb = |place: &usize| {
        let line = target_line(scope, *place);
        line.and_then(|line| line.protocol).is_some_and(|protocol| protocol.starts_with(SMB))
    };
    let reference = shares.iter().copied().find(is_smb).or(shares.first().copied());
    let reference = reference.map(|place| &scope.history.targets[place].name);
    let headlines = || pairs.iter().filter_map(|pair| pair.headline.as_ref());
    let speed = headlines().find_map(|headline| {
        let ratio = headline.ratio?;
        match reference {
            Some(reference) if headline.a == *name && headline.b == *reference => Some(ratio),
            Some(reference) if headline.b == *name && headline.a == *reference => Some(ratio.inverse()),
            Some(_) | None => None,
        }
    });
    let mine = || pairs.iter().filter(|pair| concerns(pair, name));
    let won = mine().filter(|pair| winner(pair) == Some(name)).count();
    let lost = mine().filter(|pair| winner(pair).is_some_and(|winner| winner != name)).count();
    Scores {
        target: name.clone(),
        speed: speed.map(|ratio| Estimate {
            value: 100.0 * ratio.value,
            low: 100.0 * ratio.low,
            high: 100.0 * ratio.high,
            days: ratio.days,
        }),
        smoothness: smoothness(scope, share),
        reliability: failures.iter().find(|failures| failures.target == *name).and_then(reliability_score),
        rank: (1 + lost, shares.len() - won),
    }
}

/// How SMB is called when shown.
const SMB: &str = "SMB";

fn concerns(pair: &PairSummary, name: &TargetName) -> bool {
    pair.a == *name || pair.b == *name
}

/// Who is called better over all; nobody who fails more.
fn winner(pair: &PairSummary) -> Option<&TargetName> {
    let headline = pair.headline.as_ref()?;
    let winner = headline.winner()?;
    let fails_more = match pair.reliability.verdict {
        ReliabilityVerdict::WorseA => Some(&pair.a),
        ReliabilityVerdict::WorseB => Some(&pair.b),
        ReliabilityVerdict::NoFailures | ReliabilityVerdict::NotProven => None,
    };
    (fails_more != Some(winner)).then_some(winner)
}

fn rounds_of_week(history: &History, week: Week) -> RoundsOfWeek {
    let mut rounds = RoundsOfWeek::default();
    for round in history.rounds.iter().filter(|round| week.contains(round.day())) {
        rounds.planned += 1;
        *rounds.by_status.entry(round.status.map_or("going-on", RoundStatus::name)).or_default() += 1;
        if let Some(reason) = &round.reason {
            *rounds.reasons.entry(reason.clone()).or_default() += 1;
        }
    }
    rounds
}
