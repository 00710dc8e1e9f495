//! Tests the sentences of verdicts on simulated weeks, and that JSON has them beside the data.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use longhaul_analysis::summary::{
    AtRoundTrip, ClientCaching, PairSummary, SequentialWeeks, Unadjusted, Verdict, WeekRatio, WeeklySummary,
};
use longhaul_model::{Outcome, Role, STANDARD_TASKS};
use longhaul_view::json as forms;
use longhaul_view::screens::round_trips::StatedIn;
use longhaul_view::screens::sentences::{self, headline, headline_without_round_trip};
use longhaul_view::screens::task_rows::TaskBar;
use longhaul_view::screens::{self, recommendation, words};
use serde_json::{Value, json};

use crate::world::{self, SimulatedRun, World, steady};

fn pair(weekly: &WeeklySummary) -> &PairSummary {
    &weekly.pairs[0]
}

#[test]
fn undecided_answer_says_how_many_days_are_missing() {
    let scenario = |run: SimulatedRun| steady(if run.target == 0 { 8.0 } else { 10.0 }, run);
    let weekly = World::pair().simulate(0..14, &scenario).after_days(14);
    let text = headline(pair(&weekly));
    assert!(
        text.contains("A verdict is expected in about 2 days."),
        "only 12 days remain after the warm-up: {text}"
    );
}

#[test]
fn difference_among_many_comparisons_may_be_decided_by_more_days() {
    let mut weekly = world::twenty_percent_faster();
    let task = &mut weekly.pairs[0].tasks[0];
    (task.verdict, task.days_needed) = (Verdict::NotEnoughData, None);
    let text = sentences::comparison(task);
    assert!(
        text.ends_with(
            "Alone it would be decided, but not among this many comparisons; more days may decide it."
        ),
        "{text}"
    );
    let ratio = task.ratio.as_mut().unwrap();
    (ratio.low, ratio.high) = (0.5, 2.0);
    let text = sentences::comparison(task);
    assert!(text.ends_with("More days are not expected to decide it."), "{text}");
}

#[test]
fn decided_answer_has_interval_and_rounds() {
    let text = headline(pair(&world::twenty_percent_faster()));
    assert_eq!(
        text,
        "smb is clearly faster than nfs for all tasks together: 19.9 % less time (18.6 to 21.1 %); it won 156 of 156 rounds."
    );
}

#[test]
fn winner_of_most_rounds_that_loses_on_average_is_not_called_the_fastest() {
    let mut weekly = world::twenty_percent_faster();
    let task = &mut weekly.pairs[0].tasks[0];
    task.ratio_with_outliers = Some(1.0 / 1.1);
    let result = screens::result::result(task, StatedIn::Sentence);
    let label = words::subject(&task.subject);
    assert!(
        result.starts_with("smb: 19 %") && result.ends_with(") in most rounds, 1.10× averaged over all"),
        "{result}"
    );
    let rows = screens::task_rows::task_rows(&weekly);
    let fastest = |label: &str| rows.iter().find(|row| row.label == label).unwrap().result.as_str();
    assert_eq!(fastest(&label), "no share beats all others");
    assert_eq!(fastest(&words::subject(&weekly.pairs[0].tasks[1].subject)), "smb is fastest");
}

/// Two of seven days have rounds of another kind.
#[test]
fn rounds_of_two_kinds_are_said_and_decide_nothing() {
    let scenario = |run: SimulatedRun| {
        let factor = if run.day % 7 < 5 { 0.8 } else { 3.0 };
        steady(if run.target == 0 { 10.0 } else { 10.0 * factor }, run)
    };
    let text = headline(pair(&World::pair().simulate(0..28, &scenario).after_days(28)));
    assert!(text.contains("nothing is certain for all tasks together"), "{text}");
    assert!(text.contains("over all rounds, nfs took 1.1") && text.contains("no verdict"), "{text}");
}

/// One of seven days is of another kind.
#[test]
fn difference_that_is_larger_on_sundays_is_said_to_be_so_on_most_days() {
    let scenario = |run: SimulatedRun| {
        let factor = if run.day % 7 < 6 { 0.8 } else { 0.2 };
        steady(if run.target == 0 { 10.0 } else { 10.0 * factor }, run)
    };
    let text = headline(pair(&World::pair().simulate(0..28, &scenario).after_days(28)));
    assert!(text.contains("faster than smb for all tasks together: 2"), "{text}");
    let size = " The difference has this size on most days; averaged over all, nfs took 0.6";
    assert!(text.contains(size), "{text}");
    let same = headline(pair(&world::twenty_percent_faster()));
    assert!(!same.contains("on most days"), "{same}");
}

#[test]
fn share_that_always_failed_has_no_percentage() {
    let scenario = |run: SimulatedRun| match run.target {
        1 => (Outcome::Error, 0.1),
        _ => steady(10.0, run),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    let text = headline(pair(&weekly));
    assert!(text.starts_with("Every task failed on nfs in all ") && !text.contains('%'), "{text}");
    let tasks = pair(&weekly).tasks.iter();
    let rows: Vec<String> = tasks.map(|task| screens::result::result(task, StatedIn::Sentence)).collect();
    assert!(rows.iter().all(|row| row.starts_with("smb: nfs failed in all ")), "{rows:?}");
}

#[test]
fn failures_of_the_first_days_are_counted() {
    let scenario = |run: SimulatedRun| match (run.target, run.turn) {
        (1, 0) => (Outcome::Error, 0.1),
        _ => steady(10.0, run),
    };
    let weekly = World::pair().simulate(0..1, &scenario).after_days(1);
    let rows = screens::task_rows::task_rows(&weekly);
    let bars: Vec<String> = rows[0].bars.iter().map(TaskBar::description).collect();
    assert!(bars[0].starts_with("smb: ") && bars[0].ends_with("; 6 measurements, 0 failed"), "{bars:?}");
    assert!(bars[1].starts_with("nfs: ") && bars[1].ends_with("; 5 measurements, 1 failed"), "{bars:?}");
}

#[test]
fn two_equal_shares_and_a_slow_one_are_ranked() {
    let shares =
        [("smb", Role::Share, "SMB 3.1.1"), ("nfs", Role::Share, "NFS 4.2"), ("afp", Role::Share, "AFP")];
    let scenario = |run: SimulatedRun| steady([10.0, 10.0, 20.0][run.target], run);
    let weekly = World::new(&shares).simulate(0..28, &scenario).after_days(28);
    assert_eq!(
        recommendation::heading(&weekly),
        "No single share is best: smb 1st to 2nd, nfs 1st to 2nd, afp 3rd of 3 shares."
    );
}

#[test]
fn reference_is_named_while_another_share_has_no_speed() {
    let mut weekly = world::last_week();
    weekly.scores.iter_mut().find(|scores| scores.target.as_str() == "afp").unwrap().speed = None;
    let all = &weekly.scores;
    let speeds: Vec<(&str, String)> =
        all.iter().map(|scores| (scores.target.as_str(), words::speed_text(scores, all))).collect();
    assert!(speeds.contains(&("smb", "100 (reference)".to_owned())), "{speeds:?}");
    assert!(speeds.contains(&("afp", "not known".to_owned())), "{speeds:?}");
}

#[test]
fn verdict_beside_many_failures_counts_them() {
    let scenario = |run: SimulatedRun| match (run.target, run.day % 2) {
        (1, 0) => (Outcome::Error, 0.1),
        _ => steady(10.0, run),
    };
    let text = headline(pair(&World::pair().simulate(0..28, &scenario).after_days(28)));
    assert!(!text.contains("faster") || text.contains("nfs failed in"), "{text}");
}

/// Returns a round trip time in milliseconds that differs from day to day.
fn round_trip_ms(day: i64) -> f64 {
    2.0 + (7 * day).rem_euclid(20) as f64 / 2.0
}

/// Simulates days on which the first target needs more round trips, and both take equally long at 5 ms.
fn days_with_round_trips(days: i64, known_ms: impl Fn(i64) -> Option<f64>) -> WeeklySummary {
    let scenario = |run: SimulatedRun| {
        let trips = if run.target == 0 { 600.0 } else { 200.0 };
        let outside = if run.target == 0 { 5.0 } else { 7.0 };
        steady(outside + trips * round_trip_ms(run.day) / 1000.0, run)
    };
    let mut world = World::pair().simulate(0..days, &scenario);
    let day_of: BTreeMap<i64, i64> =
        world.history.rounds.iter().map(|round| (round.number, round.day() - world::MONDAY)).collect();
    for run in &mut world.history.runs {
        run.rtt = known_ms(day_of[&run.round]).map(|ms| Duration::from_secs_f64(ms / 1000.0));
    }
    world.after_days(days)
}

fn weeks_with_round_trips(known_ms: fn(i64) -> f64) -> WeeklySummary {
    days_with_round_trips(30, |day| Some(known_ms(day)))
}

#[test]
fn break_even_of_a_few_days_is_not_stated() {
    let weekly = days_with_round_trips(11, |day| Some(round_trip_ms(day)));
    let form = forms::pair(pair(&weekly))["headline"].clone();
    assert!(
        form["break_even_low_rtt_ms"].is_number() && form["break_even_high_rtt_ms"].is_number(),
        "{form}"
    );
    let text = headline(pair(&weekly));
    assert!(!text.contains("is faster below"), "{text}");
}

#[test]
fn days_without_a_round_trip_time_are_told() {
    let weekly = days_with_round_trips(18, |day| Some(round_trip_ms(day)).filter(|_| day % 6 != 3));
    let basis = words::basis(pair(&weekly).headline.as_ref().unwrap()).unwrap();
    assert!(basis.contains(" on 13 days and "), "{basis}");
    assert!(basis.contains("(3 days without a known round trip time)"), "{basis}");
}

#[test]
fn verdict_states_its_round_trip_time_and_the_break_even() {
    let weekly = weeks_with_round_trips(round_trip_ms);
    let text = headline(pair(&weekly));
    assert!(text.contains("all tasks together at a round trip time of 6."), "{text}");
    assert!(text.contains("smb is faster below 4.7 ms, nfs above (between 4.3 ms and 5 ms)."), "{text}");
    let form = forms::pair(pair(&weekly))["headline"].clone();
    let crossing = form["break_even_rtt_ms"].as_f64().unwrap();
    // The log ratio is not quite a line.
    assert!((crossing - 5.0).abs() < 0.4, "{crossing}");
    assert!((form["at_rtt_ms"].as_f64().unwrap() - 6.75).abs() < 0.3, "{form}");
    assert!(form["unadjusted"]["ratio"]["value"].is_number());
}

#[test]
fn break_even_names_no_winner_where_the_verdict_names_none() {
    let weekly = weeks_with_round_trips(round_trip_ms);
    let mut open = pair(&weekly).headline.clone().unwrap();
    open.verdict = Verdict::NotEnoughData;
    let mut text_at = |at_rtt_ms| {
        open.at_round_trip.as_mut().unwrap().at_rtt_ms = at_rtt_ms;
        sentences::comparison(&open)
    };
    let text = text_at(4.9);
    assert!(text.contains("Not decided yet: "), "{text}");
    let sides = "Decided at other round trip times: smb is faster below 4.3 ms, nfs above 5 ms.";
    assert!(text.ends_with(sides), "{text}");
    let text = text_at(6.8);
    assert!(!text.contains("is faster below"), "{text}");
    open.verdict = Verdict::TooSmall;
    let text = sentences::comparison(&open);
    assert!(text.contains("smb is faster below 4.7 ms"), "{text}");
}

#[test]
fn round_trip_time_is_stated_once_beside_the_basis() {
    let weekly = weeks_with_round_trips(round_trip_ms);
    let text = headline_without_round_trip(pair(&weekly));
    assert!(text.contains("for all tasks together: ") && !text.contains("at a round trip time"), "{text}");
    assert!(text.contains("smb is faster below a round trip time of 4.7 ms, nfs above"), "{text}");
    let basis = words::basis(pair(&weekly).headline.as_ref().unwrap()).unwrap();
    assert!(basis.contains("Compared at a round trip time of 6."), "{basis}");
    assert!(
        basis.contains("; over all round trip times, nfs takes ") && basis.ends_with(" than smb."),
        "{basis}"
    );
}

#[test]
fn basis_names_the_targets_in_the_order_of_the_sentence() {
    let weekly = weeks_with_round_trips(round_trip_ms);
    let mut similar = pair(&weekly).headline.clone().unwrap();
    similar.verdict = Verdict::NoRealDifference;
    similar.ratio = similar.ratio.map(|ratio| ratio.inverse());
    let (sentence, basis) = (sentences::comparison(&similar), words::basis(&similar).unwrap());
    assert!(sentence.contains("(nfs takes "), "{sentence}");
    assert!(basis.contains("; over all round trip times, nfs takes "), "{basis}");
}

#[test]
fn round_trip_time_that_differs_from_the_basis_is_stated() {
    let mut weekly = world::twenty_percent_faster();
    let at = |at_rtt_ms: f64| AtRoundTrip {
        at_rtt_ms,
        break_even_rtt_ms: None,
        break_even_low_rtt_ms: None,
        break_even_high_rtt_ms: None,
        has_winner_on_each_side: false,
        unadjusted: Unadjusted { verdict: Verdict::Faster, ratio: None },
    };
    weekly.pairs[0].headline.as_mut().unwrap().at_round_trip = Some(at(6.0));
    let mut result = |of_task: Option<AtRoundTrip>| {
        weekly.pairs[0].tasks[0].at_round_trip = of_task;
        screens::result::result(&weekly.pairs[0].tasks[0], StatedIn::basis_of(&weekly.pairs[0]))
    };
    assert!(result(Some(at(6.04))).contains("less time ("), "6 ms are stated beside it");
    assert!(result(Some(at(9.0))).contains("less time at a round trip time of 9 ms ("));
    assert!(result(None).contains("less time over all round trip times ("));
}

#[test]
fn constant_round_trip_time_is_stated_as_unused() {
    let weekly = weeks_with_round_trips(|_| 3.0);
    let headline = pair(&weekly).headline.as_ref().unwrap();
    let basis = words::basis(headline).unwrap();
    assert!(basis.ends_with("Not adjusted for the round trip time: it hardly varied."), "{basis}");
    assert_eq!(forms::pair(pair(&weekly))["headline"]["at_rtt_ms"], Value::Null);
}

#[test]
fn interval_of_alternating_weeks_holds_at_every_look() {
    let weekly = world::twenty_percent_faster();
    let subject = &pair(&weekly).tasks[0].subject;
    let sentence = |ratio: Option<WeekRatio>| {
        let (weeks, pairs, pairs_needed) = ((7, 7), 7, 6);
        let found = SequentialWeeks { subject: subject.clone(), weeks, pairs, pairs_needed, ratio };
        sentences::sequential_weeks(pair(&weekly), &found)
    };
    let decided = sentence(Some(WeekRatio { value: 1.5, low: 1.2, high: 1.9, pairs: 7 }));
    assert!(
        decided.contains("(1.20 to 1.90, valid at every look; 7 weeks with smb and 7 with nfs,"),
        "{decided}"
    );
    let open = sentence(Some(WeekRatio { value: 1.1, low: 0.9, high: 1.3, pairs: 7 }));
    assert!(open.starts_with("Not decided") && open.contains("(valid at every look; 7 weeks"), "{open}");
    assert!(sentence(None).ends_with("; 6 pairs are needed."), "{}", sentence(None));
}

#[test]
fn share_that_is_no_longer_measured_is_named() {
    let shares = [
        ("smb", Role::Share, "SMB 3.1.1"),
        ("nfs", Role::Share, "NFS 4.2"),
        ("smb3", Role::Share, "SMB 3.1.1"),
    ];
    let scenario = |run: SimulatedRun| steady([8.0, 10.0, 8.0][run.target], run);
    let mut world = World::new(&shares).simulate(0..28, &scenario);
    world.history.runs.retain(|run| match run.target {
        0 => run.started < world::midnight(10),
        2 => run.started >= world::midnight(10),
        _ => true,
    });
    let weekly = world.after_days(28);
    let text = "smb has not been measured since 2026-09-30 and is left out.";
    assert_eq!(words::unmeasured(&weekly), [text]);
    let report = longhaul_view::render::terminal::render(&screens::brief::brief(&weekly));
    assert!(report.contains(text), "{report}");
}

#[test]
fn faster_target_that_fails_more_is_called_less_reliable() {
    let scenario = |run: SimulatedRun| match (run.target, run.turn) {
        (0, 3) if run.day % 2 == 0 => (Outcome::Error, 0.01),
        (0, _) => steady(5.0, run),
        _ => steady(8.0, run),
    };
    let weekly = World::pair().simulate(0..28, &scenario).after_days(28);
    let text = headline(pair(&weekly));
    assert!(text.starts_with("Faster but less reliable: smb"), "{text}");
}

#[test]
fn faster_target_with_damaged_data_is_not_called_better() {
    let scenario = |run: SimulatedRun| steady(if run.target == 0 { 8.0 } else { 10.0 }, run);
    let world = World::pair().simulate(0..28, &scenario);
    let weekly = world
        .event(20, Some("smb"), "mismatch", json!({"file": "photo-batch/16-0/IMG_0001.JPG"}))
        .after_days(28);
    let text = headline(pair(&weekly));
    assert!(
        text.starts_with("Data on smb differed from what was written, so the share is not called better"),
        "{text}"
    );
    assert!(text.contains("; `longhaul integrity` shows where. "), "{text}");
    assert_eq!((pair(&weekly).winner(), &weekly.recommendation.target), (None, &None));
}

#[test]
fn change_of_the_ratio_comes_first_with_its_cause() {
    let scenario = |run: SimulatedRun| {
        let is_slow = run.target == 1 && run.day < 28;
        steady(if is_slow { 10.0 } else { 5.0 }, run)
    };
    let world = World::pair().simulate(0..56, &scenario);
    let weekly = world.event(28, None, "os-update", json!({"after": "26.1"})).after_days(56);
    let text = headline(pair(&weekly));
    assert!(text.starts_with("The ratio changed on 2026-1") && text.contains("os-update"), "{text}");
}

#[test]
fn equal_shares_have_the_limit_of_the_settings_in_their_sentence() {
    let weekly = World::pair().simulate(0..28, &|run| steady(5.0, run)).after_days(28);
    let comparison = pair(&weekly).headline.as_ref().unwrap();
    assert_eq!(comparison.verdict, Verdict::NoRealDifference);
    assert!(sentences::comparison(comparison).contains("within ±10 %"));
}

#[test]
fn client_caching_is_known_from_three_rereads_on() {
    let found = ClientCaching {
        target: "nas".parse().unwrap(),
        protocol: Some("NFS 4.2".to_owned()),
        cached: Some(true),
        rereads: 3,
        median_share: Some(0.99),
    };
    assert_eq!(
        sentences::caching(&found),
        "nas (NFS 4.2): cached by the client: yes; 99 % of the bytes of 3 re-reads came from its cache (median)."
    );
    let unknown = sentences::caching(&ClientCaching { cached: None, rereads: 1, ..found });
    assert!(
        unknown.contains("not known before 3 re-reads") && unknown.contains("of 1 re-read "),
        "{unknown}"
    );
}

#[test]
fn json_has_the_sentences_beside_the_data() {
    let weekly = world::last_week();
    let form = forms::week(&weekly, &[]);
    let found = &form["pairs"][0];
    assert_eq!(*found, forms::pair(pair(&weekly)));
    assert_eq!(found["headline"]["text"], headline(pair(&weekly)));
    assert_eq!(found["tasks"][0]["text"], sentences::comparison(&pair(&weekly).tasks[0]));
    assert_eq!(found["tasks"][0]["so_far"]["text"], screens::so_far::sentence(&pair(&weekly).tasks[0]));
    assert_eq!(found["reliability_text"], sentences::reliability(pair(&weekly)));
}

/// Simulates 28 days on which smb is faster, but nfs is for some of the tasks, whose times on nfs are these.
fn weeks_with_exceptions(tasks: Range<usize>, seconds: f64) -> WeeklySummary {
    let scenario = |run: SimulatedRun| {
        let (nfs, ratio) = if tasks.contains(&run.workload) { (seconds, 1.3) } else { (10.0, 0.7) };
        steady(if run.target == 0 { nfs * ratio } else { nfs }, run)
    };
    World::pair().simulate(0..28, &scenario).after_days(28)
}

#[test]
fn tasks_that_another_share_is_faster_for_are_named() {
    let tasks = STANDARD_TASKS.len();
    let named = |weekly: &WeeklySummary| recommendation::exceptions(weekly);
    let one = weeks_with_exceptions(tasks - 1..tasks, 10.0);
    assert!(recommendation::heading(&one).starts_with("Use smb"));
    assert_eq!(
        named(&one).unwrap(),
        "Exception: nfs is faster than smb for a throttled Time Machine burst: 23 % less time (20 to 26 %); a throttled restore \
         from Time Machine (cold): 23 % less time (20 to 26 %)."
    );
    assert_eq!(
        named(&weeks_with_exceptions(tasks - 2..tasks, 10.0)).unwrap(),
        "Exception: nfs is faster than smb for a Time Machine burst: 23 % less time (21 to 26 %); restoring from Time Machine \
         (cold): 24 % less time (21 to 26 %); and 2 more."
    );
    assert_eq!(named(&weeks_with_exceptions(tasks - 1..tasks, 0.01)), None, "too short to be noticed");
    assert_eq!(named(&weeks_with_exceptions(0..0, 10.0)), None);
}
