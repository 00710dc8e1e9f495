//! Tests the charts of the weekly report: correct drawing, shared axes, and no overlapping text on the narrowest page.

use longhaul_analysis::summary::RatioEstimate;
use longhaul_view::charts::svg::CHARACTER_WIDTH;
use longhaul_view::charts::{
    Chart, DailyRatios, Forest, ForestGroup, ForestRow, MarkFill, RatioLevel, SeriesStyle, SeriesStyles,
    TimeRow, TimeRows, TimesChart, daily_ratios::day_of,
};
use longhaul_view::words;
use proptest::prelude::*;
use roxmltree::{Document, Node};

use crate::world;

fn row(label: &str, (value, low, high): (f64, f64, f64), fill: MarkFill) -> ForestRow {
    ForestRow {
        label: label.to_owned(),
        ratio: Some(RatioEstimate { value, low, high, days: 24 }),
        verdict_text: "decided".to_owned(),
        style: SeriesStyle::for_share(0),
        fill,
    }
}

fn forest(id: &str, rows: Vec<ForestRow>) -> Forest {
    Forest {
        id: id.to_owned(),
        title: format!("{id}, task by task"),
        groups: vec![ForestGroup { left: "nfs".to_owned(), right: "smb".to_owned(), rows }],
        threshold: 1.1,
    }
}

pub fn percent(node: &Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().strip_suffix('%').unwrap().parse().unwrap()
}

fn lines_down(node: &Node<'_, '_>, attribute: &str) -> f64 {
    node.attribute(attribute).unwrap().strip_suffix("em").unwrap().parse().unwrap()
}

/// Maps all elements of an SVG document with the given name and CSS class.
pub fn all<T>(svg: &str, element: &str, class: &str, map: impl Fn(&Node<'_, '_>) -> T) -> Vec<T> {
    let document = Document::parse(svg).unwrap();
    let has = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|known| known.split(' ').any(|one| one == class))
    };
    document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", element)) && has(node))
        .map(|node| map(&node))
        .collect()
}

/// Returns the horizontal positions in the outline of a path, in percent: paths of rows have 1000 units across.
fn across(svg: &str, class: &str) -> Vec<f64> {
    let outline = all(svg, "path", class, |path| path.attribute("d").unwrap().to_owned()).remove(0);
    let starts = outline.split(['M', 'H']).skip(1);
    let number = |part: &str| part.split([' ', 'V', 'Z']).next().unwrap().parse::<f64>().unwrap() / 10.0;
    starts.map(number).collect()
}

/// Returns the rows of a chart that have lines of an axis, from top to bottom in lines (em).
fn rows_with_lines(svg: &str) -> Vec<(f64, f64)> {
    let outline = all(svg, "path", "one", |path| path.attribute("d").unwrap().to_owned()).remove(0);
    let lines =
        outline.split('M').skip(1).map(|line| line.split_once(' ').unwrap().1.split_once('V').unwrap());
    lines.map(|(from, to)| (from.parse::<f64>().unwrap() / 10.0, to.parse::<f64>().unwrap() / 10.0)).collect()
}

/// Returns pairs of texts that overlap on a page of 320 px, assuming [`CHARACTER_WIDTH`].
pub fn overlapping(chart: &Chart) -> Vec<(String, String)> {
    let svg = chart.standalone(288);
    let document = Document::parse(&svg).unwrap();
    let boxes: Vec<(String, f64, f64, f64)> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
        .map(|node| {
            let words = node.text().unwrap_or("").to_owned();
            let width = words.chars().count() as f64 * CHARACTER_WIDTH;
            let room = node
                .attribute("dx")
                .map_or(0.0, |dx| dx.trim_end_matches("em").parse::<f64>().unwrap() * 2.0 * CHARACTER_WIDTH);
            let x = percent(&node, "x") + room;
            let left = match node.attribute("text-anchor") {
                Some("middle") => x - width / 2.0,
                Some("end") => x - width,
                _ => x,
            };
            (words, left, left + width, lines_down(&node, "y"))
        })
        .collect();
    let mut found = vec![];
    for (place, a) in boxes.iter().enumerate() {
        for b in &boxes[place + 1..] {
            if a.1 < b.2 && b.1 < a.2 && (a.3 - b.3).abs() < 0.7 {
                found.push((a.0.clone(), b.0.clone()));
            }
        }
    }
    found
}

/// Returns the SVG text of a chart, with one element per line.
pub fn drawn(chart: &Chart) -> String {
    chart.inline().into_string().replace("><", ">\n<")
}

#[test]
fn a_forest_plot_is_drawn() {
    let forest = forest(
        "a",
        vec![
            row("all tasks together", (1.22, 1.14, 1.31), MarkFill::Solid),
            row("opening a batch of photos, cold", (0.97, 0.88, 1.07), MarkFill::Hollow),
            ForestRow { ratio: None, ..row("an incremental backup", (1.0, 1.0, 1.0), MarkFill::Hollow) },
        ],
    );
    insta::assert_snapshot!(drawn(&forest.draw(Forest::shared_scale([&forest]))));
}

#[test]
fn share_card_is_drawn() {
    let card = longhaul_view::share_card(&world::last_week());
    roxmltree::Document::parse(&card).unwrap();
    insta::assert_snapshot!(card.replace("><", ">\n<"));
}

#[test]
fn days_are_drawn() {
    let weekly = world::last_week();
    let days = DailyRatios::from_comparison(weekly.pairs[1].headline.as_ref().unwrap(), 1.1, &weekly.events)
        .unwrap();
    assert!(days.other_level.is_some(), "the change of the ratio must be shown");
    insta::assert_snapshot!(drawn(&days.draw(DailyRatios::shared_scale([&days]))));
}

#[test]
fn times_are_drawn() {
    let weekly = world::twenty_percent_faster();
    let styles = SeriesStyles::for_targets(&weekly.targets);
    let rows = weekly.table[0].targets.iter().map(|on| TimeRow {
        name: on.target.to_string(),
        style: styles.style(&on.target),
        times: on.epoch,
    });
    let task = TimeRows { label: words::subject(&weekly.table[0].subject), rows: rows.collect() };
    let chart = TimesChart { id: "times".to_owned(), title: "Times".to_owned(), tasks: vec![task] };
    insta::assert_snapshot!(drawn(&chart.draw(chart.scale())));
}

#[test]
fn days_without_data_are_not_bridged() {
    let weekly = world::last_week();
    let days = DailyRatios::from_comparison(weekly.pairs[0].headline.as_ref().unwrap(), 1.1, &[]).unwrap();
    let svg = days.draw(DailyRatios::shared_scale([&days])).standalone(720);
    assert!(
        ["<polyline", "<polygon"].iter().all(|element| !svg.contains(element)),
        "no line may connect days"
    );
    // Days 17 to 20 of the scenario are holidays without rounds.
    let holidays = (world::MONDAY + 17)..(world::MONDAY + 21);
    assert!(days.ratios.iter().all(|(day, _)| !holidays.contains(day)) && days.ratios[0].0 < holidays.start);
    let (first, last) = (days.ratios[0].0, days.ratios.last().unwrap().0);
    let place = |day: i64| 13.0 + (day - first) as f64 * 86.0 / (last - first + 1) as f64;
    let gap = (place(holidays.start) + 0.1, place(holidays.end) - 0.1);
    let bands = all(&svg, "rect", "sure", |rect| (percent(rect, "x"), percent(rect, "width")));
    let marks = all(&svg, "svg", "mark", |mark| percent(mark, "x"));
    assert!(bands.len() > 30 && marks.len() == days.ratios.len());
    assert!(bands.iter().all(|(x, width)| x + width < gap.0 || *x > gap.1), "{gap:?}");
    assert!(marks.iter().all(|x| *x < gap.0 || *x > gap.1), "{gap:?}");
}

#[test]
fn last_band_equals_the_interval_of_the_verdict() {
    let weekly = world::twenty_percent_faster();
    let headline = weekly.pairs[0].headline.as_ref().unwrap();
    let days = DailyRatios::from_comparison(headline, 1.1, &[]).unwrap();
    let (day, low, high) = *days.intervals.last().unwrap();
    let ratio = headline.ratio.unwrap();
    assert_eq!(day_of(&headline.days.last().unwrap().date), Some(day));
    assert!((low - ratio.low).abs() < 1e-9 && (high - ratio.high).abs() < 1e-9, "{low} {high} {ratio:?}");
}

#[test]
fn charts_drawn_together_share_their_scale() {
    let near = forest("near", vec![row("a", (1.02, 0.99, 1.05), MarkFill::Solid)]);
    let far = forest("far", vec![row("b", (2.5, 2.0, 3.0), MarkFill::Solid)]);
    let scale = Forest::shared_scale([&near, &far]);
    let axis = |forest: &Forest, scale| {
        let svg = forest.draw(scale).standalone(720);
        [across(&svg, "one"), across(&svg, "grid")]
    };
    assert_eq!(axis(&near, scale), axis(&far, scale));
    assert_ne!(
        axis(&near, Forest::shared_scale([&near])),
        axis(&near, scale),
        "a scale of its own must be larger"
    );
    let weekly = world::last_week();
    let of = |place: usize| {
        DailyRatios::from_comparison(weekly.pairs[place].headline.as_ref().unwrap(), 1.1, &[]).unwrap()
    };
    let (a, b) = (of(0), of(1));
    let scale = DailyRatios::shared_scale([&a, &b]);
    let heights = |days: &DailyRatios| {
        let svg = days.draw(scale).standalone(720);
        all(&svg, "line", "grid", |line| lines_down(line, "y1"))
    };
    assert_eq!(heights(&a), heights(&b));
}

#[test]
fn shaded_band_is_the_threshold_around_one() {
    let one = forest("a", vec![row("a", (1.0, 0.8, 1.25), MarkFill::Hollow)]);
    let scale = Forest::shared_scale([&one]);
    let svg = one.draw(scale).standalone(720);
    let band = across(&svg, "band");
    assert!(
        (band[0] - scale.position(1.0 / 1.1)).abs() < 0.06 && (band[1] - scale.position(1.1)).abs() < 0.06,
        "{band:?}"
    );
    let line = across(&svg, "one")[0];
    assert!(
        (line - (band[0] + band[1]) / 2.0).abs() < 0.11,
        "1 must be the middle of the band on a logarithmic axis"
    );
    assert!(svg.contains(">no difference<") && svg.contains("logarithmic"));
}

#[test]
fn no_line_of_a_forest_plot_crosses_a_label() {
    let rows = vec![row("a", (1.3, 1.2, 1.4), MarkFill::Solid), row("b", (1.0, 0.5, 2.0), MarkFill::Hollow)];
    let forest = forest("a", rows);
    let svg = forest.draw(Forest::shared_scale([&forest])).standalone(288);
    let lines = rows_with_lines(&svg);
    assert_eq!(lines.len(), 2);
    // A text reaches from 0.8 lines above its base line to 0.2 below. Labels left of the figures may meet the axis.
    let labels = all_texts(&svg).into_iter().filter(|(x, _)| *x < 50.0);
    for (_, base) in labels {
        assert!(lines.iter().all(|(from, to)| base + 0.2 <= *from || base - 0.8 >= *to), "{base}: {lines:?}");
    }
}

/// Returns the horizontal position of all texts in percent, with their base line in lines (em).
fn all_texts(svg: &str) -> Vec<(f64, f64)> {
    let document = Document::parse(svg).unwrap();
    let texts =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.map(|node| (percent(&node, "x"), lines_down(&node, "y"))).collect()
}

#[test]
fn undecided_marks_are_hollow_and_days_are_labelled() {
    let rows = vec![row("a", (1.3, 1.2, 1.4), MarkFill::Solid), row("b", (1.0, 0.5, 2.0), MarkFill::Hollow)];
    let forest = forest("a", rows);
    let svg = forest.draw(Forest::shared_scale([&forest])).standalone(720);
    assert_eq!((all(&svg, "path", "hollow", |_| ()).len(), all(&svg, "path", "solid", |_| ()).len()), (1, 1));
    assert_eq!(svg.matches(">24 days<").count(), 2);
}

#[test]
fn single_day_is_written_in_the_singular() {
    let mut one = row("a", (1.2, 1.1, 1.3), MarkFill::Solid);
    one.ratio = one.ratio.map(|ratio| RatioEstimate { days: 1, ..ratio });
    let forest = forest("a", vec![one]);
    let weekly = world::last_week();
    let headline = weekly.pairs[1].headline.as_ref().unwrap();
    let mut days = DailyRatios::from_comparison(headline, 1.1, &[]).unwrap();
    days.other_level = days.other_level.map(|level| RatioLevel { days: 1, ..level });
    let forest = forest.draw(Forest::shared_scale([&forest])).standalone(720);
    let days = days.draw(DailyRatios::shared_scale([&days])).standalone(720);
    for svg in [forest, days] {
        assert!(svg.contains(", 1 day") && !svg.contains(" 1 days"), "{svg}");
    }
}

#[test]
fn interval_beyond_the_axis_ends_in_an_arrow() {
    let forest = forest(
        "a",
        vec![row("a", (1.1, 1e-6, 1e6), MarkFill::Hollow), row("b", (1.1, 1.0, 1.2), MarkFill::Hollow)],
    );
    let svg = forest.draw(Forest::shared_scale([&forest])).standalone(720);
    assert_eq!(all(&svg, "svg", "arrow", |_| ()).len(), 2);
}

#[test]
fn page_and_chart_css_share_only_intended_classes() {
    let classes = |css: &str| -> Vec<String> {
        let named = css
            .split('.')
            .skip(1)
            .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect());
        named.filter(|name: &String| name.starts_with(|c: char| c.is_ascii_alphabetic())).collect()
    };
    let page = classes(include_str!("../../src/page/style.css"));
    let shared: Vec<String> =
        classes(longhaul_view::charts::STYLE).into_iter().filter(|name| page.contains(name)).collect();
    assert!(shared.iter().all(|name| ["chart", "key"].contains(&name.as_str())), "{shared:?}");
}

#[test]
fn texts_of_daily_ratios_do_not_overlap_on_a_phone() {
    let weekly = world::last_week();
    let threshold = weekly.settings.threshold;
    let days: Vec<DailyRatios> = weekly
        .pairs
        .iter()
        .filter_map(|pair| DailyRatios::from_comparison(pair.headline.as_ref()?, threshold, &weekly.events))
        .collect();
    let scale = DailyRatios::shared_scale(&days);
    for days in &days {
        assert_eq!(overlapping(&days.draw(scale)), [], "{}", days.title);
    }
}

proptest! {
    #[test]
    fn texts_of_a_forest_plot_do_not_overlap_on_a_phone(
        values in proptest::collection::vec((0.05f64..20.0, 1.001f64..30.0), 1..6)
    ) {
        let rows = values.iter().map(|(value, width)| {
            row("switching to the next photo, cold", (*value, value / width, value * width), MarkFill::Hollow)
        });
        let forest = forest("a", rows.collect());
        let chart = forest.draw(Forest::shared_scale([&forest]));
        prop_assert_eq!(overlapping(&chart), vec![]);
    }

    #[test]
    fn any_numbers_give_a_valid_chart(
        values in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..4),
        days in proptest::collection::vec((-1_000_000i64..1_000_000, any::<f64>()), 0..6),
    ) {
        let forest = forest("a", values.into_iter().map(|value| row("<b>&", value, MarkFill::Solid)).collect());
        let svg = forest.draw(Forest::shared_scale([&forest])).standalone(320);
        prop_assert!(Document::parse(&svg).is_ok() && !svg.contains("NaN") && !svg.contains("inf%"));
        let days = DailyRatios {
            is_verdict_adjusted: false,
            id: "d".into(), title: "&".into(), sides: ("<".into(), ">".into()), ratios: days, intervals: vec![], estimate_text: None,
            threshold: 1.1, other_level: None, ticks: vec![],
        };
        let svg = days.draw(DailyRatios::shared_scale([&days])).standalone(320);
        prop_assert!(Document::parse(&svg).is_ok());
    }
}
