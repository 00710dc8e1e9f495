//! The page and the Markdown: complete, private, self-contained, and never a bare winner.

use std::sync::LazyLock;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use longhaul_measure::model::{Event, RoundStatus};
use longhaul_measure::summary::{
    ALPHA, CAP_FACTOR, EARLY_DAYS, History, OPENING_DAYS, Question, Week, Weekly, weekly,
};
use longhaul_report::{Environment, Exchange, exchange, html, html_beside, markdown, private};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;

use crate::world::{self, World, steady};

/// An element: its name and its attributes.
type Element = (String, Vec<(String, String)>);

/// Everything on a page; mistakes in it are a failure.
fn elements(page: &str) -> Vec<Element> {
    let dom: RcDom = parse_document(RcDom::default(), ParseOpts::default()).one(page);
    assert_eq!(dom.errors.borrow().as_slice(), [] as [&str; 0]);
    let mut found = vec![];
    collect(&dom.document, &mut found);
    found
}

fn collect(node: &Handle, found: &mut Vec<Element>) {
    if let NodeData::Element { name, attrs, .. } = &node.data {
        let attributes = attrs.borrow();
        let attributes = attributes.iter().map(|one| (one.name.local.to_string(), one.value.to_string()));
        found.push((name.local.to_string(), attributes.collect()));
    }
    for child in node.children.borrow().iter() {
        collect(child, found);
    }
}

fn attributes(elements: &[Element], name: &str) -> Vec<String> {
    let all = elements.iter().flat_map(|(_, attributes)| attributes);
    all.filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
}

fn page() -> String {
    html(&world::last_week(), &world::environment())
}

fn with_another() -> String {
    let other = exchange(&world::a_fifth(), &world::environment());
    html_beside(&world::last_week(), &world::environment(), &[other])
}

#[test]
fn the_page_asks_no_network_and_runs_nothing() {
    for page in [page(), with_another()] {
        let elements = elements(&page);
        let loading = [
            "script", "iframe", "img", "object", "embed", "video", "audio", "source", "base", "form",
            "image", "use",
        ];
        assert!(elements.iter().all(|(name, _)| !loading.contains(&name.as_str())));
        let handlers =
            elements.iter().flat_map(|(_, attributes)| attributes).filter(|(name, _)| name.starts_with("on"));
        assert_eq!(handlers.count(), 0);
        for target in attributes(&elements, "href") {
            assert!(target.starts_with('#') || target == "data:,", "{target}");
        }
        assert_eq!(attributes(&elements, "src"), [] as [&str; 0]);
        for word in ["http:", "https:", "url(", "@import", "//"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

#[test]
fn the_page_holds_together() {
    for page in [page(), with_another()] {
        let elements = elements(&page);
        let mut ids = attributes(&elements, "id");
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all, "no id twice");
        let named = attributes(&elements, "aria-labelledby");
        let named = named.iter().flat_map(|names| names.split(' '));
        let linked = attributes(&elements, "href");
        let linked = linked.iter().filter_map(|href| href.strip_prefix('#'));
        for id in named.chain(linked) {
            assert!(ids.iter().any(|known| known == id), "{id} is there");
        }
    }
}

#[test]
fn every_chart_has_a_title_a_description_and_its_figures() {
    let page = page();
    let elements = elements(&page);
    let count = |wanted: &str| elements.iter().filter(|(name, _)| name == wanted).count();
    let charts = page.matches("<svg class=\"chart\"").count();
    assert_eq!(charts, 1 + 3 + 3 + 5, "overview, tasks, days, workloads");
    assert_eq!((count("figure"), count("desc")), (charts, charts));
    assert_eq!(count("title"), charts + 1);
    assert_eq!(page.matches("How to read it, and its figures").count(), charts);
}

#[test]
fn nothing_leaves_the_machine_that_names_a_person() {
    let weekly = world::last_week();
    let environment = world::environment();
    let json = exchange(&weekly, &environment).to_json();
    let own = [html(&weekly, &environment), markdown(&weekly), json.clone(), with_another()];
    for text in own {
        for secret in ["anna", "10.0.0.2", "/Volumes", "Volumes", "f00dfeed", "-build"] {
            assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret} in {text}");
        }
    }
    assert!(json.contains("\"Linux 6.1.0\"") && json.contains("\"signing\": \"on\""));
}

#[test]
fn a_target_that_is_called_like_a_machine_is_called_by_its_protocol() {
    let mut world = World::pair();
    world.history.targets[0].name = "annas-nas.local".parse().unwrap();
    world.history.epochs[0].target = "annas-nas.local".parse().unwrap();
    let mut world = world.live(0..20, &|moment| steady(5.0, moment));
    world = world.event(19, (Some("annas-nas.local"), "hang"), serde_json::json!({}));
    world.history = private::with_neutral_names(world.history);
    let names: Vec<&str> = world.history.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["smb", "nfs"]);
    let text = markdown(&world.after_days(20));
    assert!(!text.contains("annas") && text.contains("smb, hang"), "{text}");
}

#[test]
fn markdown_is_as_it_was_seen_to_be_good() {
    insta::assert_snapshot!(markdown(&world::a_fifth()));
}

#[test]
fn no_winner_stands_without_its_figures() {
    let weekly = world::last_week();
    let text = markdown(&weekly);
    let claims: Vec<&str> = text.lines().filter(|line| line.contains("faster")).collect();
    assert!(claims.len() > 5);
    assert!(claims.iter().all(|line| line.contains('%') && line.contains(" to ")), "{claims:?}");
    assert!(!text.contains("p-value") && !text.contains("p ="));
}

#[test]
fn constants_are_those_of_the_code() {
    let (page, text) = (page(), markdown(&world::last_week()));
    let said = [
        format!("from {OPENING_DAYS} days on (from {EARLY_DAYS} on"),
        format!("at most {} %", ALPHA * 100.0),
        format!("{CAP_FACTOR} times the usual time"),
    ];
    for words in said {
        assert!(page.contains(&words) && text.contains(&words), "{words}");
    }
}

#[test]
fn a_week_without_data_says_so() {
    let question = Question { week: Week::of_day(world::MONDAY), scale: None, zone: jiff::tz::TimeZone::UTC };
    let empty: Weekly = weekly(&History::default(), &question);
    let page = html(&empty, &Environment::default());
    elements(&page);
    assert!(
        page.contains("Nothing has been measured on a share yet") && page.contains("The week has no round.")
    );
    let text = markdown(&empty);
    assert!(text.contains("No target was measured") && text.contains("The week has no round."), "{text}");
}

#[test]
fn one_share_alone_has_a_page() {
    let world = World::new(&[("smb", longhaul_measure::model::Role::Share, "SMB 3.1.1")]);
    let weekly = world.live(0..20, &|moment| steady(5.0, moment)).after_days(20);
    let page = html(&weekly, &Environment::default());
    elements(&page);
    assert!(page.contains("There is one share only"));
}

#[test]
fn a_failure_is_told_on_the_first_screen() {
    let page = page();
    let first = page.split("<nav").next().unwrap();
    assert!(first.contains("nfs failed in 8 of 300 rounds (8 episodes): 7 runs hung, for 1 h 45 min in all; 5 ended with an error."));
    assert!(first.contains("3 of the week's 45 rounds were not made whole"));
    let calm = html(&world::a_fifth(), &world::environment());
    assert!(calm.contains("Nothing: no failure in 156 rounds"), "two days settle in");
}

/// A week in which everything that is free text is this text.
fn hostile(text: &str) -> Weekly {
    static CALM: LazyLock<History> =
        LazyLock::new(|| World::pair().live(0..16, &|moment| steady(5.0, moment)).history);
    let mut world = World { history: CALM.clone(), rounds_a_day: 6 };
    world.round((15, 9), (RoundStatus::Skipped, Some(text)), &|moment| steady(5.0, moment));
    world.history.epochs[0].protocol = Some(text.to_owned());
    world.history.events.push(Event {
        target: None,
        kind: text.to_owned(),
        detail: serde_json::json!({ "before": text, "after": { "vers": text } }),
        at_us: (world::MONDAY + 15) * world::DAY_US,
    });
    world.after_days(16)
}

/// The names of all elements, in order: what no text may change.
fn skeleton(page: &str) -> Vec<String> {
    elements(page).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn what_looks_like_markup_is_text() {
    let calm = skeleton(&html(&hostile("calm"), &Environment::default()));
    for text in [
        "<script>alert(1)</script>",
        "</title></style><img src=x onerror=y>",
        "\"><b x=\"",
        "&lt;",
        "]]>",
        "<!--",
    ] {
        assert_eq!(skeleton(&html(&hostile(text), &Environment::default())), calm, "{text}");
    }
}

/// Somebody else's file in which every name is this text.
fn foreign(text: &str) -> Exchange {
    let mut other = exchange(&world::a_fifth(), &Environment::default());
    other.environment.system = Some(text.to_owned());
    for target in &mut other.targets {
        target.protocol = target.protocol.as_ref().map(|protocol| format!("{protocol} {text}"));
    }
    for claim in other.pairs.iter_mut().flat_map(|pair| pair.headline.iter_mut().chain(&mut pair.tasks)) {
        claim.activity = text.to_owned();
    }
    other
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_text_changes_what_a_page_is_made_of(text in "[ -~äß\u{202e}\u{0}]{0,30}") {
        let weekly = hostile(&text);
        elements(&html(&weekly, &Environment::default()));
        let own = world::a_fifth();
        let page = |text: &str| html_beside(&own, &Environment::default(), &[foreign(text)]);
        prop_assert_eq!(skeleton(&page(&text)), skeleton(&page("calm")));
    }
}
