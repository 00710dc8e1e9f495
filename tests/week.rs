//! The weekly summary as a person sees it, over weeks of stored runs.

mod support;

use longhaul_measure::model::Outcome;
use support::Place;
use support::weeks::{Weeks, around};

fn faster_smb(target: usize, day: i64, turn: i64) -> Result<f64, Outcome> {
    around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn)
}

fn four_weeks(story: support::weeks::Story<'_>) -> Place {
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).live(0..28, story);
    place
}

#[test]
fn the_answer_comes_first_with_interval_rounds_and_failures() {
    let said = four_weeks(&faster_smb).longhaul("week 2026-W43").expect(0).out;
    let answer = said
        .find("smb is clearly faster than nfs for all tasks together: ")
        .unwrap_or_else(|| panic!("{said}"));
    let order = [
        "Failures of one alone",
        "Rests on ",
        "faster than nfs for opening a large folder (cold)",
        "failures since settled",
        "this week",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|text| said[answer..].find(text).unwrap_or_else(|| panic!("{text}: {said}")))
        .collect();
    assert!(places.is_sorted(), "{said}");
    assert!(said.starts_with("week 2026-W43, 2026-10-19 to 2026-10-25 ("), "{said}");
    assert!(!said.contains("p-value") && said.contains("left out of the verdicts: "), "{said}");
}

#[test]
fn a_week_before_the_first_run_says_that_there_is_nothing() {
    let place = four_weeks(&faster_smb);
    let said = place.longhaul("week 2026-W01").expect(5).out;
    assert!(said.contains("No run up to the end of this week"), "{said}");
    assert!(place.longhaul("week 2026-46").expect(2).err.contains("2026-W46"));
    assert!(Place::new().longhaul("week").expect(5).err.contains("longhaul"));
}

#[test]
fn a_week_of_json_holds_what_the_text_shows_and_is_the_same_twice() {
    let place = four_weeks(&faster_smb);
    let json = || place.longhaul("week 2026-W43 --json").expect(0).out;
    let week: serde_json::Value = serde_json::from_str(&json()).unwrap();
    let headline = &week["pairs"][0]["headline"];
    assert_eq!(headline["verdict"], "clearly-faster");
    assert_eq!((&headline["a"], &headline["b"]), (&"smb".into(), &"nfs".into()));
    let ratio = &headline["ratio"];
    assert!(ratio["low"].as_f64() < ratio["value"].as_f64() && ratio["days"].as_u64() > Some(13), "{ratio}");
    assert!(place.longhaul("week 2026-W43").expect(0).out.contains(headline["text"].as_str().unwrap()));
    assert_eq!(json(), json());
}

#[test]
fn every_format_of_an_export_gives_the_same_week_byte_for_byte() {
    let place = four_weeks(&faster_smb);
    let week = |from: &str| place.longhaul(&format!("week 2026-W43 --json {from}")).expect(0).out;
    let own = week("");
    for format in ["csv", "json", "parquet"] {
        let file = place.path(&format!("export.{format}"));
        place.longhaul(&format!("export runs --format {format} --output {}", file.display())).expect(0);
        assert_eq!(week(&format!("--from-export {}", file.display())), own, "{format}");
    }
    let text = place.longhaul("week 2026-W43").expect(0).out;
    let file = place.path("export.csv");
    assert_eq!(
        place.longhaul(&format!("week 2026-W43 --from-export {}", file.display())).expect(0).out,
        text
    );
}

#[test]
fn a_file_that_is_no_export_is_refused_and_what_is_left_out_is_said() {
    let place = four_weeks(&faster_smb);
    let file = place.path("export.json");
    place.longhaul(&format!("export runs --format json --output {}", file.display())).expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let call = || place.longhaul(&format!("week 2026-W43 --from-export {}", file.display()));
    std::fs::write(&file, text.replacen("\"seconds\":8", "\"seconds\":-8", 3)).unwrap();
    assert!(call().expect(0).err.contains("left out of"), "{}", call().expect(0));
    std::fs::write(&file, "diary").unwrap();
    assert!(call().expect(1).err.contains("export.json"));
    std::fs::write(&file, "").unwrap();
    call().expect(1);
}

#[test]
fn a_script_learns_whether_everything_is_decided() {
    four_weeks(&faster_smb).longhaul("verdict --exit-code").expect(0);
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).live(0..6, &faster_smb);
    assert!(place.longhaul("verdict").expect(0).out.contains("Not enough data yet"));
    place.longhaul("verdict --exit-code").expect(5);
}

#[test]
fn a_pair_is_compared_in_depth_around_a_day_and_since_a_day() {
    let story = |target: usize, day: i64, turn: i64| match (target, day) {
        (1, 18..) => around(5.0, target, day, turn),
        _ => around(10.0, target, day, turn),
    };
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).live(0..36, &story);
    let said = place.longhaul("compare nfs smb --at 2026-10-15 --workload incremental-backup").expect(0).out;
    assert!(said.contains("before and after 2026-10-15") && said.contains("changed"), "{said}");
    assert!(
        said.contains("1.00 → 0.5") || said.contains("0.99 → 0.5") || said.contains("1.01 → 0.5"),
        "{said}"
    );
    let since = place.longhaul("compare smb nfs --since 2026-10-16").expect(0).out;
    assert!(
        since.contains("chosen before looking") && since.contains("nfs is clearly faster than smb"),
        "{since}"
    );
    let wrong = place.longhaul("compare smb afp").expect(2).err;
    assert!(wrong.contains("smb, nfs"), "{wrong}");
    let wrong = place.longhaul("compare smb nfs --at mtu").expect(2).err;
    assert!(wrong.contains("none so far"), "{wrong}");
}

#[test]
fn a_share_that_hangs_is_told_by_its_episodes_and_the_time_it_cost() {
    let story = |target: usize, day: i64, turn: i64| match (target, day % 2, turn) {
        (0, 0, 2) => Err(Outcome::Hung),
        _ => around(5.0, target, day, turn),
    };
    let said = four_weeks(&story).longhaul("week 2026-W43").expect(0).out;
    assert!(said.contains("smb fails more often"), "{said}");
    assert!(said.contains("(proven to differ)"), "{said}");
}

#[test]
fn the_mix_of_the_configuration_becomes_minutes_a_week() {
    let place =
        four_weeks(&|target, day, turn| around(if target == 0 { 60.0 } else { 120.0 }, target, day, turn));
    assert!(!place.longhaul("week 2026-W43").expect(0).out.contains("For the mix"));
    place.configure("[mix]\nbackups = 7\n");
    let said = place.longhaul("week 2026-W43").expect(0).out;
    // Scan, copy and delete take a minute longer each.
    assert!(
        said.contains("For the mix that was set, nfs costs 21")
            && said.contains(" minutes a week more than smb ("),
        "{said}"
    );
}
