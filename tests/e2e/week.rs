//! Tests of the weekly report over weeks of stored runs.

use crate::support::Place;
use crate::support::template::Template;
use crate::support::weeks::{RunTimes, Weeks, around};
use longhaul_model::Outcome;

/// Four weeks in which tasks on SMB take a fifth less time.
static FASTER_SMB: Template =
    Template::new(|database| Weeks::of_two_shares(database).add_days(0..28, &faster_smb));

fn faster_smb(target: usize, day: i64, turn: i64) -> Result<f64, Outcome> {
    around(if target == 0 { 8.0 } else { 10.0 }, target, day, turn)
}

fn weeks_with_faster_smb() -> Place {
    let place = Place::new();
    FASTER_SMB.copy_to(&place.database());
    place
}

fn four_weeks(run_times: RunTimes<'_>) -> Place {
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).add_days(0..28, run_times);
    place
}

#[test]
fn the_answer_comes_first_and_fits_25_lines() {
    let output = weeks_with_faster_smb().longhaul("report 2026-W43").expect(0).out;
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "Week 2026-W43, 2026-10-19 to 2026-10-25");
    assert!(
        lines[2].starts_with("Use smb: it saves about 5.5 minutes of waiting a week compared with nfs ("),
        "{output}"
    );
    assert!(lines[4].starts_with("smb is clearly faster than nfs for all tasks together: "), "{output}");
    assert!(lines.len() <= 25 && lines.iter().all(|line| line.chars().count() <= 120), "{output}");
}

#[test]
fn the_verbose_report_has_every_section() {
    let output = weeks_with_faster_smb().longhaul("report 2026-W43 --verbose").expect(0).out;
    let order = [
        "smb is clearly faster than nfs for all tasks",
        "Based on ",
        "opening a large folder",
        "hang time",
        "Excluded from the verdicts",
    ];
    let places: Vec<usize> =
        order.iter().map(|text| output.find(text).unwrap_or_else(|| panic!("{text}: {output}"))).collect();
    assert!(places.is_sorted(), "{output}");
}

#[test]
fn week_before_the_first_run_is_reported_as_empty() {
    let place = weeks_with_faster_smb();
    let output = place.longhaul("report 2026-W01").expect(5).out;
    assert!(
        output.contains("Nothing had been measured by 2026-01-04. The first week with rounds is"),
        "{output}"
    );
    assert!(place.longhaul("report 2026-46").expect(2).err.contains("2026-W46"));
    assert!(Place::new().longhaul("report").expect(5).err.contains("longhaul"));
}

#[test]
fn week_as_json_matches_the_text_and_is_repeatable() {
    let place = weeks_with_faster_smb();
    let json = || place.longhaul("report 2026-W43 --json").expect(0).out;
    let week: serde_json::Value = serde_json::from_str(&json()).unwrap();
    let headline = &week["pairs"][0]["headline"];
    assert_eq!(headline["verdict"], "clearly-faster");
    assert_eq!((&headline["a"], &headline["b"]), (&"smb".into(), &"nfs".into()));
    let ratio = &headline["ratio"];
    assert!(ratio["low"].as_f64() < ratio["value"].as_f64() && ratio["days"].as_u64() > Some(13), "{ratio}");
    assert!(
        place
            .longhaul("report 2026-W43 --verbose")
            .expect(0)
            .out
            .contains(headline["text"].as_str().unwrap())
    );
    assert_eq!(json(), json());
}

#[test]
fn every_export_format_gives_an_identical_week() {
    let place = weeks_with_faster_smb();
    let week = |from: &str| place.longhaul(&format!("report 2026-W43 --json {from}")).expect(0).out;
    let own = week("");
    for format in ["csv", "json", "parquet"] {
        let file = place.path(&format!("export.{format}"));
        place.longhaul(&format!("export runs --format {format} --output {}", file.display())).expect(0);
        assert_eq!(week(&format!("--from-export {}", file.display())), own, "{format}");
    }
    let text = place.longhaul("report 2026-W43").expect(0).out;
    let file = place.path("export.csv");
    assert_eq!(
        place.longhaul(&format!("report 2026-W43 --from-export {}", file.display())).expect(0).out,
        text
    );
}

#[test]
fn report_refuses_other_files_and_lists_excluded_rows() {
    let place = weeks_with_faster_smb();
    let file = place.path("export.json");
    place.longhaul(&format!("export runs --format json --output {}", file.display())).expect(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let call = || place.longhaul(&format!("report 2026-W43 --from-export {}", file.display()));
    std::fs::write(&file, text.replacen("\"seconds\":8", "\"seconds\":-8", 3)).unwrap();
    assert!(call().expect(0).err.contains("left out of"), "{}", call().expect(0));
    std::fs::write(&file, "diary").unwrap();
    assert!(call().expect(1).err.contains("export.json"));
    std::fs::write(&file, "").unwrap();
    call().expect(1);
}

#[test]
fn exit_code_says_if_everything_is_decided() {
    weeks_with_faster_smb().longhaul("report --exit-code").expect(0);
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).add_days(0..6, &faster_smb);
    assert!(place.longhaul("report").expect(0).out.contains("Not decided yet: judging by "));
    place.longhaul("report --exit-code").expect(5);
    place.longhaul("report --exit-code --format png --output").arg(place.path("card.png")).expect(5);
}

#[test]
fn pair_is_compared_before_after_and_since_a_day() {
    let run_times = |target: usize, day: i64, turn: i64| match (target, day) {
        (1, 18..) => around(5.0, target, day, turn),
        _ => around(10.0, target, day, turn),
    };
    let place = Place::new();
    Weeks::of_two_shares(&place.database()).add_days(0..36, &run_times);
    let output =
        place.longhaul("report --pair nfs,smb --at 2026-10-15 --workload incremental-backup").expect(0).out;
    assert!(output.contains("Before and after 2026-10-15") && output.contains("changed"), "{output}");
    assert!(
        output.contains("1.00 → 0.5") || output.contains("0.99 → 0.5") || output.contains("1.01 → 0.5"),
        "{output}"
    );
    let since = place.longhaul("report --pair smb,nfs --since 2026-10-16").expect(0).out;
    assert!(
        since.contains("chosen before looking at the data")
            && since.contains("nfs is clearly faster than smb"),
        "{since}"
    );
    let wrong = place.longhaul("report --pair smb,afp").expect(2).err;
    assert!(wrong.contains("`afp` is not a share with runs") && wrong.contains("smb, nfs"), "{wrong}");
    let wrong = place.longhaul("report --pair smb,nfs --at mtu").expect(2).err;
    assert!(wrong.contains("none so far"), "{wrong}");
}

#[test]
fn share_that_hangs_is_reported_as_failing_more_often() {
    let run_times = |target: usize, day: i64, turn: i64| match (target, day % 2, turn) {
        (0, 0, 2) => Err(Outcome::Hung),
        _ => around(5.0, target, day, turn),
    };
    let output = four_weeks(&run_times).longhaul("report 2026-W43").expect(0).out;
    assert!(output.contains("smb fails more often than nfs: "), "{output}");
}

#[test]
fn usage_profile_is_converted_to_minutes_a_week() {
    let place =
        four_weeks(&|target, day, turn| around(if target == 0 { 60.0 } else { 120.0 }, target, day, turn));
    assert!(!place.longhaul("report 2026-W43 --verbose").expect(0).out.contains("For your usage profile"));
    place.configure("[usage-profile]\nbackups = 7\n");
    let output = place.longhaul("report 2026-W43 --verbose").expect(0).out;
    // Scan, copy and delete each take a minute longer on nfs: 3 minutes, 7 times a week.
    assert!(
        output.contains("For your usage profile, nfs costs 21")
            && output.contains(" minutes a week more than smb ("),
        "{output}"
    );
}
