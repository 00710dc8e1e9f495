//! Pictures of what went on all day: shared axes, gaps as gaps, failures marked.

use jiff::tz::TimeZone;
use longhaul_report::charts::{
    Availability, Calendar, Chart, Curve, Ecdf, Heat, Look, Smoke, Spread, Table, TimeScale,
};
use proptest::prelude::*;
use roxmltree::Document;

use crate::charts::{all, drawn, overlapping, percent};
use crate::world;

const DAY_US: i64 = 86_400_000_000;

/// Days from 2026-09-21 on; what is `None` had no answer.
fn smoke(place: usize, days: &[Option<f64>]) -> Smoke {
    let first_us = world::MONDAY * DAY_US;
    let step = |(day, median): (usize, &Option<f64>)| Spread {
        at_us: first_us + day as i64 * DAY_US,
        quantiles: median.map(|median| [0.5, 0.8, 1.0, 1.3, 2.0].map(|factor| factor * median)),
        longest: median.map(|median| 9.0 * median),
        count: if median.is_some() { 60 } else { 0 },
        failed: u64::from(day == 1),
    };
    Smoke {
        id: format!("smoke-{place}"),
        title: "read, day by day".to_owned(),
        name: format!("share-{place}"),
        look: Look::of_share(place),
        steps: days.iter().enumerate().map(step).collect(),
        step_us: DAY_US,
        events: vec![
            (first_us + DAY_US / 2, "mtu".to_owned()),
            (first_us + 900 * DAY_US, "later".to_owned()),
        ],
        time: TimeScale { span_us: (first_us, first_us + days.len() as i64 * DAY_US), zone: TimeZone::UTC },
    }
}

/// The `d` of the paths of a class.
fn paths(chart: &Chart, class: &str) -> Vec<String> {
    all(&chart.standalone(800), ("path", class), |node| node.attribute("d").unwrap().to_owned())
}

#[test]
fn smoke_is_drawn() {
    let smoke = smoke(0, &[Some(0.001), Some(0.0012), None, Some(0.0009)]);
    insta::assert_snapshot!(drawn(&smoke.draw(Smoke::shared_scale([&smoke]))));
}

#[test]
fn nothing_is_drawn_across_a_gap() {
    let step = Some(0.001);
    let whole = smoke(0, &[step; 5]);
    let torn = smoke(0, &[step, step, None, step, step]);
    let mut missing = whole.clone();
    missing.steps.remove(2);
    for (smoke, pieces) in [(&whole, 1), (&torn, 2), (&missing, 2)] {
        let chart = smoke.draw(Smoke::shared_scale([smoke]));
        for class in ["outer", "inner", "median"] {
            assert_eq!(paths(&chart, class)[0].matches('M').count(), pieces, "{class}");
        }
    }
}

#[test]
fn equal_times_have_equal_heights_in_all_smokes_of_a_page() {
    let (calm, wild) = (smoke(0, &[Some(0.001); 3]), smoke(1, &[Some(0.001), Some(0.5), Some(0.001)]));
    let scale = Smoke::shared_scale([&calm, &wild]);
    let first = |smoke: &Smoke| paths(&smoke.draw(scale), "median")[0].split('H').next().unwrap().to_owned();
    assert_eq!(first(&calm), first(&wild));
    let alone = |smoke: &Smoke| paths(&smoke.draw(Smoke::shared_scale([smoke])), "median")[0].clone();
    assert_ne!(
        alone(&calm).split('H').next(),
        alone(&wild).split('H').next(),
        "scales of their own would mislead"
    );
}

#[test]
fn failures_are_marked_where_they_happened_and_counted() {
    let chart = smoke(0, &[Some(0.001); 3]).draw(Smoke::shared_scale([&smoke(0, &[Some(0.001); 3])]));
    let crosses = all(&chart.standalone(800), ("svg", "failed"), |node| percent(node, "x"));
    assert_eq!(crosses.len(), 1);
    assert!((crosses[0] - (13.0 + 86.5 / 2.0)).abs() < 0.1, "in the middle of the second day");
    assert!(chart.drawing.into_string().contains("n 180 ✗1"));
}

#[test]
fn what_happened_in_the_window_is_a_tick_with_its_words() {
    let mut smoke = smoke(0, &[Some(0.001); 3]);
    let ticks = |smoke: &Smoke| {
        let svg = smoke.draw(Smoke::shared_scale([smoke])).standalone(800);
        all(&svg, ("line", "event"), |node| percent(node, "x1"))
    };
    assert_eq!(ticks(&smoke).len(), 1, "not what happened later");
    assert_eq!(smoke.notes(), ["1 mtu (2026-09-21 12:00)"]);
    smoke.events =
        (0..20).map(|hour| (smoke.steps[0].at_us + hour * DAY_US / 24, "wake".to_owned())).collect();
    assert_eq!(ticks(&smoke).len(), 20, "none is left out of the picture");
    assert_eq!(smoke.notes(), ["20 events: the journal tells them"]);
}

fn curve(place: usize, times: &[f64], failed: usize) -> Curve {
    Curve { name: format!("share-{place}"), look: Look::of_share(place), times: times.to_vec(), failed }
}

fn ecdf() -> Ecdf {
    let times: Vec<f64> = (1..=20).map(|time| f64::from(time) / 10.0).collect();
    let curves = vec![curve(0, &times, 0), curve(1, &times[5..], 5)];
    Ecdf { id: "all".to_owned(), title: "Every time".to_owned(), curves }
}

#[test]
fn every_time_is_drawn() {
    let ecdf = ecdf();
    insta::assert_snapshot!(drawn(&ecdf.draw(Ecdf::shared_scale([&ecdf]))));
}

#[test]
fn a_curve_with_failures_ends_below_the_top() {
    let ecdf = ecdf();
    let chart = ecdf.draw(Ecdf::shared_scale([&ecdf]));
    let last = |path: &String| path.rsplit('V').next().unwrap().parse::<f64>().unwrap();
    let ends: Vec<f64> = paths(&chart, "median").iter().map(last).collect();
    assert_eq!(ends, [0.0, 250.0], "all, and three quarters");
}

fn heat(place: usize, factor: f64) -> Heat {
    let field = |day: usize, hour: usize| (hour > 5).then_some((factor * (1 + day + hour) as f64 / 1e3, 60));
    Heat {
        id: format!("hours-{place}"),
        title: "by weekday and hour".to_owned(),
        name: format!("share-{place}"),
        look: Look::of_share(place),
        fields: std::array::from_fn(|day| std::array::from_fn(|hour| field(day, hour))),
    }
}

#[test]
fn hours_are_drawn_and_unknown_ones_stay_empty() {
    let heat = heat(0, 1.0);
    let chart = heat.draw(Heat::shared_scale([&heat]));
    let empty = all(&chart.standalone(800), ("rect", "unknown"), |_| ());
    assert_eq!(empty.len(), 7 * 6);
    insta::assert_snapshot!(drawn(&chart));
}

#[test]
fn equal_times_have_equal_shades_in_all_heats_of_a_page() {
    let (fast, slow) = (heat(0, 1.0), heat(1, 20.0));
    let scale = Heat::shared_scale([&fast, &slow]);
    let darkest = |heat: &Heat| all(&heat.draw(scale).standalone(800), ("rect", "h5"), |_| ()).len();
    // The legend has one of each.
    assert_eq!(darkest(&fast), 1, "none of the fast ones is as dark as a slow one");
    assert!(darkest(&slow) > 10);
}

#[test]
fn days_that_nobody_asked_on_are_no_good_days() {
    let day = |answers, slow, failed| Availability { answers, slow, failed };
    let calendar = Calendar {
        id: "days".to_owned(),
        title: "day by day".to_owned(),
        name: "share-0".to_owned(),
        look: Look::of_share(0),
        days: vec![
            (world::MONDAY, day(60, 0, 0)),
            (world::MONDAY + 1, day(60, 2, 0)),
            (world::MONDAY + 3, day(9, 0, 4)),
        ],
        span: (world::MONDAY, world::MONDAY + 6),
    };
    let chart = calendar.draw();
    // One of each is the legend's.
    let count = |class: &str| all(&chart.standalone(800), ("rect", class), |_| ()).len() - 1;
    assert_eq!(["h1", "h3", "h5", "unknown"].map(count), [1, 1, 1, 4]);
    insta::assert_snapshot!(drawn(&chart));
}

#[test]
fn no_words_of_the_new_pictures_lie_over_each_other_on_a_phone() {
    let (smoke, ecdf, heat) = (smoke(0, &[Some(0.001); 40]), ecdf(), heat(0, 1.0));
    let charts = [
        smoke.draw(Smoke::shared_scale([&smoke])),
        ecdf.draw(Ecdf::shared_scale([&ecdf])),
        heat.draw(Heat::shared_scale([&heat])),
    ];
    for chart in charts {
        assert_eq!(overlapping(&chart), [], "{}", chart.id);
    }
}

proptest! {
    #[test]
    fn any_window_has_an_axis(from in -2_000_000_000_000_000i64..4_000_000_000_000_000, length in 1i64..200_000_000_000_000) {
        let time = TimeScale { span_us: (from, from + length), zone: TimeZone::UTC };
        let ticks = time.ticks(0.2);
        prop_assert!(ticks.len() <= 6);
        prop_assert!(ticks.iter().all(|(at_us, _)| (from..from + length).contains(at_us)));
    }

    #[test]
    fn any_values_make_a_picture(medians in prop::collection::vec(prop::option::of(1e-9f64..1e9), 0..50)) {
        let smoke = smoke(0, &medians);
        let chart = smoke.draw(Smoke::shared_scale([&smoke]));
        let svg = chart.standalone(800);
        prop_assert!(Document::parse(&svg).is_ok() && !svg.contains("NaN") && !svg.contains("inf"));
        prop_assert_eq!(chart.table.rows.len(), medians.len());
    }
}

#[test]
fn a_table_is_whole_as_csv_and_no_cell_is_a_formula() {
    let mut table = Table::new(["task", "n"]);
    table.rows.push(vec!["opening, \"cold\"".to_owned(), "=1+1".to_owned()]);
    assert_eq!(table.csv(), "task,n\r\n\"opening, \"\"cold\"\"\",'=1+1\r\n");
}
