//! Pictures: drawn honestly, and readable on the narrowest page.

use longhaul_measure::summary::Estimate;
use longhaul_report::charts::svg::CHARACTER;
use longhaul_report::charts::{
    Chart, Days, Fill, Forest, ForestGroup, ForestRow, Look, Looks, TimeRow, TimeRows, TimesChart,
    days::day_of,
};
use longhaul_report::words;
use proptest::prelude::*;
use roxmltree::{Document, Node};

use crate::world;

fn row(label: &str, (value, low, high): (f64, f64, f64), fill: Fill) -> ForestRow {
    ForestRow {
        label: label.to_owned(),
        ratio: Some(Estimate { value, low, high, days: 24 }),
        said: "decided".to_owned(),
        look: Look::of_share(0),
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

/// What of a chart matches a class and an element, mapped.
pub fn all<T>(svg: &str, (element, class): (&str, &str), map: impl Fn(&Node<'_, '_>) -> T) -> Vec<T> {
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

/// Texts that lie over each other on a page of 320 px, by the width that characters have there.
pub fn overlapping(chart: &Chart) -> Vec<(String, String)> {
    let svg = chart.standalone(288);
    let document = Document::parse(&svg).unwrap();
    let boxes: Vec<(String, f64, f64, f64)> = document
        .descendants()
        .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")))
        .map(|node| {
            let words = node.text().unwrap_or("").to_owned();
            let width = words.chars().count() as f64 * CHARACTER;
            let room = node
                .attribute("dx")
                .map_or(0.0, |dx| dx.trim_end_matches("em").parse::<f64>().unwrap() * 2.0 * CHARACTER);
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

/// A drawing, an element a line.
pub fn drawn(chart: &Chart) -> String {
    chart.inline().into_string().replace("><", ">\n<")
}

#[test]
fn a_forest_plot_is_drawn() {
    let forest = forest(
        "a",
        vec![
            row("all tasks together", (1.22, 1.14, 1.31), Fill::Solid),
            row("opening a batch of photos, cold", (0.97, 0.88, 1.07), Fill::Hollow),
            ForestRow { ratio: None, ..row("an incremental backup", (1.0, 1.0, 1.0), Fill::Hollow) },
        ],
    );
    insta::assert_snapshot!(drawn(&forest.draw(Forest::shared_scale([&forest]))));
}

#[test]
fn days_are_drawn() {
    let weekly = world::last_week();
    let days = Days::of(weekly.pairs[1].headline.as_ref().unwrap(), 1.1, &weekly.events).unwrap();
    assert!(days.level.is_some(), "a change on the way is shown");
    insta::assert_snapshot!(drawn(&days.draw(Days::shared_scale([&days]))));
}

#[test]
fn times_are_drawn() {
    let weekly = world::a_fifth();
    let looks = Looks::of(&weekly.targets);
    let rows = weekly.table[0].targets.iter().map(|on| TimeRow {
        name: on.target.to_string(),
        look: looks.look(&on.target),
        times: on.epoch,
    });
    let task = TimeRows { label: words::subject(&weekly.table[0].subject), rows: rows.collect() };
    let chart = TimesChart { id: "times".to_owned(), title: "Times".to_owned(), tasks: vec![task] };
    insta::assert_snapshot!(drawn(&chart.draw(chart.scale())));
}

#[test]
fn a_gap_is_not_bridged() {
    let weekly = world::last_week();
    let days = Days::of(weekly.pairs[0].headline.as_ref().unwrap(), 1.1, &[]).unwrap();
    let svg = days.draw(Days::shared_scale([&days])).standalone(720);
    assert!(["<polyline", "<polygon"].iter().all(|element| !svg.contains(element)), "nothing joins days");
    // Days 17 to 20 of the story are holidays.
    let holidays = (world::MONDAY + 17)..(world::MONDAY + 21);
    assert!(days.days.iter().all(|(day, _)| !holidays.contains(day)) && days.days[0].0 < holidays.start);
    let (first, last) = (days.days[0].0, days.days.last().unwrap().0);
    let place = |day: i64| 13.0 + (day - first) as f64 * 86.0 / (last - first + 1) as f64;
    let gap = (place(holidays.start) + 0.1, place(holidays.end) - 0.1);
    let bands = all(&svg, ("rect", "sure"), |rect| (percent(rect, "x"), percent(rect, "width")));
    let marks = all(&svg, ("svg", "mark"), |mark| percent(mark, "x"));
    assert!(bands.len() > 30 && marks.len() == days.days.len());
    assert!(bands.iter().all(|(x, width)| x + width < gap.0 || *x > gap.1), "{gap:?}");
    assert!(marks.iter().all(|x| *x < gap.0 || *x > gap.1), "{gap:?}");
}

#[test]
fn what_was_known_last_is_the_interval_of_the_verdict() {
    let weekly = world::a_fifth();
    let headline = weekly.pairs[0].headline.as_ref().unwrap();
    let days = Days::of(headline, 1.1, &[]).unwrap();
    let (day, low, high) = *days.known.last().unwrap();
    let ratio = headline.ratio.unwrap();
    assert_eq!(day_of(&headline.days.last().unwrap().date), Some(day));
    assert!((low - ratio.low).abs() < 1e-9 && (high - ratio.high).abs() < 1e-9, "{low} {high} {ratio:?}");
}

#[test]
fn two_small_multiples_share_their_scale() {
    let near = forest("near", vec![row("a", (1.02, 0.99, 1.05), Fill::Solid)]);
    let far = forest("far", vec![row("b", (2.5, 2.0, 3.0), Fill::Solid)]);
    let scale = Forest::shared_scale([&near, &far]);
    let axis = |forest: &Forest, scale| {
        let svg = forest.draw(scale).standalone(720);
        (
            all(&svg, ("line", "one"), |line| percent(line, "x1")),
            all(&svg, ("line", "grid"), |line| percent(line, "x1")),
        )
    };
    assert_eq!(axis(&near, scale), axis(&far, scale));
    assert_ne!(
        axis(&near, Forest::shared_scale([&near])),
        axis(&near, scale),
        "alone it would be drawn larger"
    );
    let weekly = world::last_week();
    let of = |place: usize| Days::of(weekly.pairs[place].headline.as_ref().unwrap(), 1.1, &[]).unwrap();
    let (a, b) = (of(0), of(1));
    let scale = Days::shared_scale([&a, &b]);
    let heights = |days: &Days| {
        let svg = days.draw(scale).standalone(720);
        all(&svg, ("line", "grid"), |line| lines_down(line, "y1"))
    };
    assert_eq!(heights(&a), heights(&b));
}

#[test]
fn the_band_is_the_threshold_and_one_is_no_difference() {
    let one = forest("a", vec![row("a", (1.0, 0.8, 1.25), Fill::Hollow)]);
    let scale = Forest::shared_scale([&one]);
    let svg = one.draw(scale).standalone(720);
    let band =
        all(&svg, ("rect", "band"), |rect| (percent(rect, "x"), percent(rect, "x") + percent(rect, "width")))
            [0];
    assert!((band.0 - scale.at(1.0 / 1.1)).abs() < 0.02 && (band.1 - scale.at(1.1)).abs() < 0.02, "{band:?}");
    let line = all(&svg, ("line", "one"), |line| percent(line, "x1"))[0];
    assert!((line - (band.0 + band.1) / 2.0).abs() < 0.02, "on a logarithmic axis 1 is the middle of ±10 %");
    assert!(svg.contains(">no difference<") && svg.contains("logarithmic"));
}

#[test]
fn undecided_marks_are_hollow_and_days_stand_beside_every_mark() {
    let rows = vec![row("a", (1.3, 1.2, 1.4), Fill::Solid), row("b", (1.0, 0.5, 2.0), Fill::Hollow)];
    let forest = forest("a", rows);
    let svg = forest.draw(Forest::shared_scale([&forest])).standalone(720);
    assert_eq!(
        (all(&svg, ("path", "hollow"), |_| ()).len(), all(&svg, ("path", "solid"), |_| ()).len()),
        (1, 1)
    );
    assert_eq!(svg.matches(">24 days<").count(), 2);
}

#[test]
fn an_interval_that_goes_beyond_the_axis_ends_in_an_arrow() {
    let forest =
        forest("a", vec![row("a", (1.1, 1e-6, 1e6), Fill::Hollow), row("b", (1.1, 1.0, 1.2), Fill::Hollow)]);
    let svg = forest.draw(Forest::shared_scale([&forest])).standalone(720);
    assert_eq!(all(&svg, ("svg", "arrow"), |_| ()).len(), 2);
}

#[test]
fn a_page_and_its_charts_share_no_class_by_accident() {
    let classes = |css: &str| -> Vec<String> {
        let named = css
            .split('.')
            .skip(1)
            .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect());
        named.filter(|name: &String| name.starts_with(|c: char| c.is_ascii_alphabetic())).collect()
    };
    let page = classes(include_str!("../../src/page/style.css"));
    let both: Vec<String> =
        classes(longhaul_report::charts::STYLE).into_iter().filter(|name| page.contains(name)).collect();
    assert!(both.iter().all(|name| ["chart", "key"].contains(&name.as_str())), "{both:?}");
}

#[test]
fn no_text_of_the_week_lies_over_another_on_a_phone() {
    let weekly = world::last_week();
    let threshold = weekly.premises.threshold;
    let days: Vec<Days> = weekly
        .pairs
        .iter()
        .filter_map(|pair| Days::of(pair.headline.as_ref()?, threshold, &weekly.events))
        .collect();
    let scale = Days::shared_scale(&days);
    for days in &days {
        assert_eq!(overlapping(&days.draw(scale)), [], "{}", days.title);
    }
}

proptest! {
    #[test]
    fn no_text_of_a_forest_lies_over_another_on_a_phone(
        values in proptest::collection::vec((0.05f64..20.0, 1.001f64..30.0), 1..6)
    ) {
        let rows = values.iter().map(|(value, width)| {
            row("switching to the next photo, cold", (*value, value / width, value * width), Fill::Hollow)
        });
        let forest = forest("a", rows.collect());
        let chart = forest.draw(Forest::shared_scale([&forest]));
        prop_assert_eq!(overlapping(&chart), vec![]);
    }

    #[test]
    fn any_numbers_make_a_picture(
        values in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..4),
        days in proptest::collection::vec((-1_000_000i64..1_000_000, any::<f64>()), 0..6),
    ) {
        let forest = forest("a", values.into_iter().map(|value| row("<b>&", value, Fill::Solid)).collect());
        let svg = forest.draw(Forest::shared_scale([&forest])).standalone(320);
        prop_assert!(Document::parse(&svg).is_ok() && !svg.contains("NaN") && !svg.contains("inf%"));
        let days = Days {
            id: "d".into(), title: "&".into(), sides: ("<".into(), ">".into()), days, known: vec![], found: None,
            threshold: 1.1, level: None, ticks: vec![],
        };
        let svg = days.draw(Days::shared_scale([&days])).standalone(320);
        prop_assert!(Document::parse(&svg).is_ok());
    }
}
