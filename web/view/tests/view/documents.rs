//! Tests the page and the Markdown report: complete, self-contained, without private data, and no winner without its
//! interval.

use std::sync::LazyLock;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use longhaul_analysis::summary::{
    ALPHA, CAP_FACTOR, EARLY_VERDICT_DAYS, MIN_VERDICT_DAYS, Week, WeeklyQuery, WeeklySummary, summarize_week,
};
use longhaul_model::{ChangeKind, Event, FreshnessDay, History, Role, RoundStatus};
use longhaul_view::{Environment, html, markdown, redaction};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;

use crate::world::{self, World, steady};

/// An HTML element: name and attributes.
type Element = (String, Vec<(String, String)>);

/// Returns all elements of a page. Panics if the page is not valid HTML.
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

#[test]
fn page_loads_no_resources_and_runs_no_scripts() {
    for page in [page(), html(&world::twenty_percent_faster(), &world::environment())] {
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
fn page_ids_are_unique_and_links_resolve() {
    for page in [page(), html(&world::twenty_percent_faster(), &world::environment())] {
        let elements = elements(&page);
        let mut ids = attributes(&elements, "id");
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all, "every id must be unique");
        let named = attributes(&elements, "aria-labelledby");
        let named = named.iter().flat_map(|names| names.split(' '));
        let linked = attributes(&elements, "href");
        let linked = linked.iter().filter_map(|href| href.strip_prefix('#'));
        for id in named.chain(linked) {
            assert!(ids.iter().any(|known| known == id), "{id} must exist");
        }
    }
}

#[test]
fn every_chart_has_a_title_a_description_and_a_table() {
    let page = page();
    let elements = elements(&page);
    let count = |wanted: &str| elements.iter().filter(|(name, _)| name == wanted).count();
    let charts = page.matches("<svg class=\"chart\"").count();
    assert_eq!(charts, 1 + 3 + 3 + 5, "overview, tasks, days, workloads");
    assert_eq!((count("figure"), count("desc")), (charts, charts));
    assert_eq!(page.matches("<title id=").count(), charts);
    assert_eq!(page.matches("Description and data").count(), charts);
}

#[test]
fn no_output_contains_private_data() {
    let weekly = world::last_week();
    let environment = world::environment();
    let page = html(&weekly, &environment);
    for text in [&page, &markdown(&weekly)] {
        for secret in ["anna", "10.0.0.2", "/Volumes", "Volumes", "f00dfeed", "-build"] {
            assert!(!text.to_lowercase().contains(&secret.to_lowercase()), "{secret} in {text}");
        }
    }
    assert!(page.contains("Linux 6.1.0") && page.contains("signing"));
}

#[test]
fn target_named_like_a_host_is_renamed_to_its_protocol() {
    let mut world = World::pair();
    world.history.targets[0].name = "annas-nas.local".parse().unwrap();
    world.history.epochs[0].target = "annas-nas.local".parse().unwrap();
    let mut world = world.simulate(0..20, &|run| steady(5.0, run));
    world = world.event(19, Some("annas-nas.local"), "hang", serde_json::json!({}));
    world.history = redaction::with_neutral_names(world.history);
    let names: Vec<&str> = world.history.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["smb", "nfs"]);
    assert_eq!(world.history.settings.machine, None);
    let text = markdown(&world.after_days(20));
    assert!(!text.contains("annas") && text.contains("| smb | stopped responding |"), "{text}");
}

#[test]
fn renamed_targets_are_renamed_everywhere() {
    let targets = [("annas-nas", Role::Share, "SMB 3.1.1"), ("annas-nas2", Role::Share, "NFS 4.2")];
    let mut world = World::new(&targets);
    let reason = "free-space: `annas-nas` had 2.31 GB free; `annas-nas2` is this week's target";
    world.round((0, 0), (RoundStatus::Skipped, Some(reason)), &|run| steady(5.0, run));
    world.history.freshness.push(FreshnessDay {
        target: "annas-nas2".parse().unwrap(),
        epoch: 2,
        kind: ChangeKind::NewFile,
        day: world::MONDAY,
        changes: 3,
        not_seen: 0,
        slow: 0,
        limit: None,
    });
    let detail =
        |name: &str| serde_json::json!({ "elsewhere": [{ "target": name, "text": format!("`{name}`") }] });
    let world = world.event(0, Some("annas-nas2"), "mismatch", detail("annas-nas"));
    let world = world.event(0, Some("annas-old-nas"), "unmount", serde_json::json!({}));
    let history = redaction::with_neutral_names(world.history);
    assert!(!format!("{history:?}").contains("annas"), "{history:?}");
    let reason = "free-space: `smb` had 2.31 GB free; `nfs` is this week's target";
    assert_eq!(history.rounds[0].reason.as_deref(), Some(reason));
    assert_eq!(history.events[0].detail, detail("smb"));
    assert_eq!(history.freshness[0].target, history.targets[1].name);
}

#[test]
fn markdown_report_is_unchanged() {
    insta::assert_snapshot!(markdown(&world::twenty_percent_faster()));
}

#[test]
fn no_winner_is_named_without_its_interval() {
    let weekly = world::last_week();
    let text = markdown(&weekly);
    let claims: Vec<&str> = text.lines().filter(|line| line.contains("faster")).collect();
    assert!(claims.len() > 5);
    assert!(claims.iter().all(|line| line.contains('%') && line.contains(" to ")), "{claims:?}");
    assert!(!text.contains("p-value") && !text.contains("p ="));
}

#[test]
fn described_constants_match_the_code() {
    let (page, text) = (page(), markdown(&world::last_week()));
    let constants = [
        format!("with at least {MIN_VERDICT_DAYS} days (or at least {EARLY_VERDICT_DAYS} if"),
        format!("at most {} %", ALPHA * 100.0),
        format!("{CAP_FACTOR} times the usual time"),
    ];
    for words in constants {
        assert!(page.contains(&words) && text.contains(&words), "{words}");
    }
}

#[test]
fn week_without_data_is_reported_as_such() {
    let query = WeeklyQuery {
        week: Week::of_day(world::MONDAY),
        scale: None,
        since: None,
        zone: jiff::tz::TimeZone::UTC,
    };
    let empty: WeeklySummary = summarize_week(&History::default(), &query);
    let page = html(&empty, &Environment::default());
    elements(&page);
    assert!(
        page.contains("Nothing was measured up to the end of this week")
            && page.contains("No rounds in this week.")
    );
    let text = markdown(&empty);
    assert!(
        text.contains("Nothing was measured up to the end of this week")
            && text.contains("No rounds in this week."),
        "{text}"
    );
}

#[test]
fn single_share_has_a_valid_page() {
    let world = World::new(&[("smb", longhaul_model::Role::Share, "SMB 3.1.1")]);
    let weekly = world.simulate(0..20, &|run| steady(5.0, run)).after_days(20);
    let page = html(&weekly, &Environment::default());
    elements(&page);
    assert!(page.contains("There is only one share"));
}

#[test]
fn first_days_have_times_in_every_form() {
    let weekly = World::pair().simulate(0..1, &|run| steady(5.0, run)).after_days(1);
    assert!(weekly.table.is_empty(), "these days are warm-up");
    let text = markdown(&weekly);
    let times = text.split("## Times by task").nth(1).unwrap_or_default();
    assert!(times.contains("| task | smb | nfs | result |") && times.contains(" s |"), "{text}");
    let page = html(&weekly, &Environment::default());
    elements(&page);
    assert!(page.contains("Typical times and result of each task"));
}

#[test]
fn failures_are_shown_on_the_first_screen() {
    let page = page();
    let first = page.split("<nav").next().unwrap();
    assert!(first.contains("nfs failed in 8 of 300 rounds (8 episodes): 7 runs hung (1 h 45 min in total); 5 ended with an error."));
    assert!(first.contains("3 of the week's 45 rounds were not completed"));
    let without_failures = html(&world::twenty_percent_faster(), &world::environment());
    assert!(without_failures.contains("None: no failure in 156 rounds"), "two days are warm-up");
}

/// Returns a week in which every free text is `text`.
fn hostile(text: &str) -> WeeklySummary {
    static CACHED: LazyLock<History> =
        LazyLock::new(|| World::pair().simulate(0..16, &|run| steady(5.0, run)).history);
    let mut world = World { history: CACHED.clone(), rounds_a_day: 6 };
    world.round((15, 9), (RoundStatus::Skipped, Some(text)), &|run| steady(5.0, run));
    world.history.epochs[0].protocol = Some(text.to_owned());
    world.history.events.push(Event {
        target: None,
        kind: text.to_owned(),
        detail: serde_json::json!({ "before": text, "after": { "vers": text } }),
        at_us: world::midnight(15),
    });
    world.after_days(16)
}

/// Returns the names of all elements of a page in order. No text of the data may change them.
fn skeleton(page: &str) -> Vec<String> {
    elements(page).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn markup_in_data_is_escaped() {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_text_changes_the_elements_of_a_page(text in "[ -~äß\u{202e}\u{0}]{0,30}") {
        let weekly = hostile(&text);
        let page = html(&weekly, &Environment::default());
        prop_assert_eq!(skeleton(&page), skeleton(&html(&hostile("calm"), &Environment::default())));
    }
}
