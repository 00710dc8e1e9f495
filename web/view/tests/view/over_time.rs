//! Tests the charts of latency over time: shared axes, gaps, and marked failures.

use jiff::tz::TimeZone;
use longhaul_model::time::DAY;
use longhaul_view::Table;
use longhaul_view::charts::{
    Availability, BandChart, Calendar, Chart, Curve, Ecdf, HeatMap, QuantileStep, SeriesStyle, TimeScale,
};
use proptest::prelude::*;
use roxmltree::Document;

use crate::charts::{all, drawn, overlapping, percent};
use crate::world;
use longhaul_model::Timestamp;

/// Returns a band chart of days from 2026-09-21 on, with the given medians; `None` is a day without a value.
fn band_chart(place: usize, days: &[Option<f64>]) -> BandChart {
    let first = world::midnight(0);
    let step = |(day, median): (usize, &Option<f64>)| QuantileStep {
        at: first + day as u32 * DAY,
        quantiles: median.map(|median| [0.5, 0.8, 1.0, 1.3, 2.0].map(|factor| factor * median)),
        max: median.map(|median| 9.0 * median),
        count: if median.is_some() { 60 } else { 0 },
        failed: u64::from(day == 1),
    };
    BandChart {
        id: format!("bands-{place}"),
        title: "read, day by day".to_owned(),
        name: format!("share-{place}"),
        style: SeriesStyle::for_share(place),
        steps: days.iter().enumerate().map(step).collect(),
        table_steps: vec![],
        table_step: DAY,
        step: DAY,
        events: vec![
            (first + DAY / 2, "MTU changed from 1500 to 9000 and back again".to_owned()),
            (first + 900 * DAY, "later".to_owned()),
        ],
        time: TimeScale { span: (first, first + days.len() as u32 * DAY), zone: TimeZone::UTC },
    }
}

/// Returns the attribute `d` of all paths of a CSS class.
fn paths(chart: &Chart, class: &str) -> Vec<String> {
    all(&chart.standalone(800), "path", class, |node| node.attribute("d").unwrap().to_owned())
}

#[test]
fn band_chart_is_drawn() {
    let chart = band_chart(0, &[Some(0.001), Some(0.0012), None, Some(0.0009)]);
    insta::assert_snapshot!(drawn(&chart.draw(BandChart::shared_scale([&chart]))));
}

#[test]
fn gap_is_not_bridged() {
    let step = Some(0.001);
    let complete = band_chart(0, &[step; 5]);
    let with_gap = band_chart(0, &[step, step, None, step, step]);
    let mut missing = complete.clone();
    missing.steps.remove(2);
    for (chart, pieces) in [(&complete, 1), (&with_gap, 2), (&missing, 2)] {
        let chart = chart.draw(BandChart::shared_scale([chart]));
        for class in ["outer", "inner", "median"] {
            assert_eq!(paths(&chart, class)[0].matches('M').count(), pieces, "{class}");
        }
    }
}

#[test]
fn band_charts_of_a_page_share_their_heights() {
    let (calm, wild) =
        (band_chart(0, &[Some(0.001); 3]), band_chart(1, &[Some(0.001), Some(0.5), Some(0.001)]));
    let scale = BandChart::shared_scale([&calm, &wild]);
    let first =
        |chart: &BandChart| paths(&chart.draw(scale), "median")[0].split('h').next().unwrap().to_owned();
    assert_eq!(first(&calm), first(&wild));
    let alone = |chart: &BandChart| paths(&chart.draw(BandChart::shared_scale([chart])), "median")[0].clone();
    assert_ne!(alone(&calm).split('h').next(), alone(&wild).split('h').next(), "separate scales must differ");
}

#[test]
fn failures_are_marked_at_their_step_and_counted() {
    let chart =
        band_chart(0, &[Some(0.001); 3]).draw(BandChart::shared_scale([&band_chart(0, &[Some(0.001); 3])]));
    let crosses = all(&chart.standalone(800), "svg", "failed", |node| percent(node, "x"));
    assert_eq!(crosses.len(), 1);
    assert!(
        (crosses[0] - (13.0 + 86.5 / 2.0)).abs() < 0.1,
        "the cross must be in the middle of the second day"
    );
    assert!(chart.drawing.into_string().contains("n 180 ✗1"));
}

#[test]
fn event_in_the_window_is_a_tick_with_a_note() {
    let mut chart = band_chart(0, &[Some(0.001); 3]);
    let ticks = |chart: &BandChart| {
        let svg = chart.draw(BandChart::shared_scale([chart])).standalone(800);
        all(&svg, "line", "event", |node| percent(node, "x1"))
    };
    let notes = |chart: &BandChart| chart.draw(BandChart::shared_scale([chart])).notes;
    assert_eq!(ticks(&chart).len(), 1, "events after the window must not be drawn");
    assert_eq!(notes(&chart), ["1 MTU changed from 1500 to 9000 and back again, 21 Sep"]);
    chart.events = (0..20).map(|hour| (chart.steps[0].at + hour * DAY / 24, "wake".to_owned())).collect();
    assert_eq!(ticks(&chart).len(), 20, "every event must be drawn");
    assert_eq!(notes(&chart), ["20 events: see the event log"]);
}

fn curve(place: usize, times: &[f64], failed: usize) -> Curve {
    Curve {
        name: format!("share-{place}"),
        style: SeriesStyle::for_share(place),
        times: times.to_vec(),
        failed,
    }
}

fn ecdf() -> Ecdf {
    let times: Vec<f64> = (1..=20).map(|time| f64::from(time) / 10.0).collect();
    let curves = vec![curve(0, &times, 0), curve(1, &times[5..], 5)];
    Ecdf { id: "all".to_owned(), title: "Every time".to_owned(), curves }
}

#[test]
fn ecdf_is_drawn() {
    let ecdf = ecdf();
    insta::assert_snapshot!(drawn(&ecdf.draw(Ecdf::shared_scale([&ecdf]))));
}

#[test]
fn curve_with_failures_ends_below_100_percent() {
    let ecdf = ecdf();
    let chart = ecdf.draw(Ecdf::shared_scale([&ecdf]));
    let last = |path: &String| path.rsplit('V').next().unwrap().parse::<f64>().unwrap();
    let ends: Vec<f64> = paths(&chart, "median").iter().map(last).collect();
    assert_eq!(ends, [0.0, 250.0], "the curves must end at 100 % and 75 %");
}

fn heat(place: usize, factor: f64) -> HeatMap {
    let field = |day: usize, hour: usize| (hour > 5).then_some((factor * (1 + day + hour) as f64 / 1e3, 60));
    HeatMap {
        id: format!("hours-{place}"),
        title: "by weekday and hour".to_owned(),
        name: format!("share-{place}"),
        style: SeriesStyle::for_share(place),
        cells: std::array::from_fn(|day| std::array::from_fn(|hour| field(day, hour))),
    }
}

#[test]
fn hours_without_values_stay_empty() {
    let heat = heat(0, 1.0);
    let chart = heat.draw(HeatMap::shared_scale([&heat]));
    assert_eq!(fields(&chart, "unknown"), 7 * 6);
    insta::assert_snapshot!(drawn(&chart));
}

#[test]
fn heat_maps_of_a_page_share_their_shades() {
    let (fast, slow) = (heat(0, 1.0), heat(1, 20.0));
    let scale = HeatMap::shared_scale([&fast, &slow]);
    let darkest = |heat: &HeatMap| fields(&heat.draw(scale), "h5");
    assert_eq!(darkest(&fast), 0, "no fast field may be as dark as a slow one");
    assert!(darkest(&slow) > 10);
}

/// Returns the number of fields of a class: they are one path.
fn fields(chart: &Chart, class: &str) -> usize {
    paths(chart, class).first().map_or(0, |outline| outline.matches('M').count())
}

#[test]
fn legend_of_a_heat_map_has_distinct_values() {
    let even = HeatMap { cells: [[Some((0.000_51, 60)); 24]; 7], ..heat(0, 1.0) };
    let noisy = HeatMap {
        cells: std::array::from_fn(|day| {
            std::array::from_fn(|hour| Some((0.000_51 + (day + hour) as f64 * 1e-8, 60)))
        }),
        ..heat(1, 1.0)
    };
    for heat in [even, noisy, heat(2, 1.0)] {
        let svg = heat.draw(HeatMap::shared_scale([&heat])).standalone(800);
        let document = Document::parse(&svg).unwrap();
        let texts =
            document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
        let mut labels: Vec<&str> =
            texts.filter_map(|node| node.text()).filter(|text| text.starts_with("from ")).collect();
        let all = labels.len();
        labels.dedup();
        assert!(all > 0 && labels.len() == all, "{labels:?}");
    }
}

#[test]
fn chart_without_values_is_a_sentence() {
    let chart = band_chart(0, &[None, None]);
    let chart = chart.draw(BandChart::shared_scale([&chart]));
    assert!(chart.is_sentence());
    let shown = longhaul_view::render::html::figure(&chart).into_string();
    assert!(shown.contains("No value in this period; 1 failure.") && !shown.contains("<svg"), "{shown}");
}

#[test]
fn days_without_requests_are_not_good_days() {
    let day = |answers, slow, failed| Availability { answers, slow, failed };
    let calendar = Calendar {
        id: "days".to_owned(),
        title: "day by day".to_owned(),
        name: "share-0".to_owned(),
        style: SeriesStyle::for_share(0),
        days: vec![
            (world::MONDAY, day(60, 0, 0)),
            (world::MONDAY + 1, day(60, 2, 0)),
            (world::MONDAY + 3, day(9, 0, 4)),
        ],
        span: (world::MONDAY, world::MONDAY + 6),
    };
    let chart = calendar.draw();
    assert_eq!(["h1", "h3", "h0", "unknown"].map(|class| fields(&chart, class)), [1, 1, 1, 4]);
    insta::assert_snapshot!(drawn(&chart));
}

#[test]
fn texts_of_latency_charts_do_not_overlap_on_a_phone() {
    let (chart, ecdf, heat) = (band_chart(0, &[Some(0.001); 40]), ecdf(), heat(0, 1.0));
    let charts = [
        chart.draw(BandChart::shared_scale([&chart])),
        ecdf.draw(Ecdf::shared_scale([&ecdf])),
        heat.draw(HeatMap::shared_scale([&heat])),
    ];
    for chart in charts {
        assert_eq!(overlapping(&chart), [], "{}", chart.id);
    }
}

proptest! {
    #[test]
    fn any_window_has_a_valid_axis(from in -2_000_000_000_000_000i64..4_000_000_000_000_000, length in 1i64..200_000_000_000_000) {
        let (from, to) = (Timestamp::from_us(from), Timestamp::from_us(from + length));
        let time = TimeScale { span: (from, to), zone: TimeZone::UTC };
        let ticks = time.ticks(0.2);
        prop_assert!(ticks.len() <= 6);
        prop_assert!(ticks.iter().all(|(at, _)| (from..to).contains(at)));
    }

    #[test]
    fn any_values_give_a_valid_chart(medians in prop::collection::vec(prop::option::of(1e-9f64..1e9), 0..50)) {
        let chart = band_chart(0, &medians);
        let chart = chart.draw(BandChart::shared_scale([&chart]));
        let svg = chart.standalone(800);
        prop_assert!(Document::parse(&svg).is_ok() && !svg.contains("NaN") && !svg.contains("inf"));
        let is_empty = medians.iter().all(Option::is_none);
        prop_assert_eq!(chart.is_sentence(), is_empty);
        prop_assert_eq!(chart.table.rows.len(), if is_empty { 0 } else { medians.len() });
    }
}

#[test]
fn csv_is_quoted_and_contains_no_formulas() {
    let mut table = Table::new("counts").words(["task"]).figures(["n"]);
    table.row(["opening, \"cold\"", "=1+1"]);
    assert_eq!(table.csv(), "task,n\r\n\"opening, \"\"cold\"\"\",'=1+1\r\n");
}
