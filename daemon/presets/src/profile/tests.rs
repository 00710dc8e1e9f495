//! Tests of the parsing, checking and scaling of profiles, and of the error messages for invalid profiles.

use proptest::prelude::*;

use super::*;
use crate::preset::presets;
use longhaul_measure::workloads::Workload;
use longhaul_model::Scale;

const MINIMAL: &str = "summary = \"reads\"\n[files.a]\ncount = 4\nsize = \"4 KiB\"\n[[phase]]\nname = \"read\"\n\
    [[phase.work]]\nfiles = \"a\"\nsteps = [{ do = \"read\", block = 4096 }]\n";

fn parse_error(text: &str) -> String {
    Profile::parse(text).unwrap_err().to_string()
}

#[test]
fn minimal_profile_reads_each_file_once() {
    let cost = Profile::parse(MINIMAL).unwrap().cost();
    assert_eq!((cost.setup_bytes, cost.bytes_read, cost.bytes_written, cost.calls), (16_384, 16_384, 0, 4));
}

#[test]
fn errors_name_the_line_or_the_section() {
    assert!(parse_error("summary = 3").starts_with("line 1: "));
    assert!(parse_error(&MINIMAL.replace("count = 4", "count = 0")).contains("[files.a]: `count`"));
    assert!(parse_error(&MINIMAL.replace("count", "cuont")).contains("line 3: unknown key `cuont`"));
    assert!(
        parse_error(&MINIMAL.replace("files = \"a\"", "files = \"b\""))
            .contains("phase `read`: there is no [files.b]")
    );
    assert!(parse_error(&MINIMAL.replace("4 KiB", "4 apples")).contains("size"));
    assert!(parse_error(&MINIMAL.replace("block = 4096", "block = 0")).contains("`block`"));
    assert!(
        parse_error(&MINIMAL.replace("files = \"a\"", "files = \"a\"\nthreads = 5"))
            .contains("some threads would have none")
    );
    assert!(
        parse_error(
            &MINIMAL.replace("do = \"read\"", "at = \"random\", do = \"write\"").replace("4096", "1000")
        )
        .contains("512")
    );
    let print = "[[figure]]\nname = \"x\"\nunit = \"MB/s\"\nphase = \"read\"\nsource = \"";
    assert!(parse_error(&format!("{MINIMAL}{print}read.p95\"")).contains("cannot be printed in MB/s"));
    assert!(parse_error(&format!("{MINIMAL}{print}reed\"")).contains("is not a known figure"));
}

/// A sector that was written in part would be called damaged by the next read.
#[test]
fn blocks_that_end_within_a_sector_are_not_written() {
    let parse = |steps: &str| {
        Profile::parse(&MINIMAL.replace("{ do = \"read\", block = 4096 }", steps)).map_err(|e| e.to_string())
    };
    for steps in [
        r#"{ do = "write", block = "1 MB" }"#,
        r#"{ do = "write", block = "10 KB", pick = "same" }"#,
        r#"{ do = "read", block = 1000 }, { do = "write", block = 512 }"#,
        r#"{ do = "evict", block = 1000 }, { do = "write", block = 512, at = "same" }"#,
    ] {
        let error = parse(steps).unwrap_err();
        assert!(error.contains("phase `read`") && error.contains("multiple of 512"), "{steps}: {error}");
    }
    for steps in [
        r#"{ do = "write", block = "1 MiB" }"#,
        r#"{ do = "write", block = "10 KB", amount = "file" }"#,
        r#"{ do = "append", block = 1000 }"#,
        r#"{ do = "read", block = 1000 }"#,
    ] {
        assert!(parse(steps).is_ok(), "{steps}");
    }
}

#[test]
fn steps_before_and_after_the_repetitions_count_in_the_cost() {
    let around = "threads = 2\nseconds = 1.0\nbefore = [{ do = \"read\", pick = \"all\", amount = \"file\" }]\n\
        after = [{ do = \"append\", block = 512 }]\nsteps =";
    let cost = Profile::parse(&MINIMAL.replace("steps =", around)).unwrap().cost();
    assert_eq!((cost.calls, cost.bytes_read, cost.bytes_written), (4 + 2, 4 * 4096, 2 * 512));
    assert_eq!(cost.space_bytes, 4 * 4096 + 2 * 512);
}

#[test]
fn cost_of_the_largest_files_beside_a_program_does_not_overflow() {
    let largest = MINIMAL.replace("count = 4", "count = 10000000").replace("4 KiB", "16384 GiB");
    let program = "[[phase]]\nname = \"blogs\"\nprogram = \"blogbench\"\nseconds = 10.0\n";
    assert_eq!(Profile::parse(&format!("{largest}{program}")).unwrap().cost().space_bytes, u64::MAX);
}

#[test]
fn sizes_are_parsed_with_their_unit() {
    for (text, bytes) in [("16 KiB", 16_384), ("4GB", 4_000_000_000), ("7 B", 7)] {
        assert_eq!(text.parse(), Ok(ByteSize(bytes)));
    }
    for bad in ["", "16", "KiB", "-1 KiB", "1.5 GB", "1 TB", "99999999999 GB"] {
        assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
    }
}

#[test]
fn slices_add_up_to_the_whole_profile() {
    for preset in presets().iter().filter(|preset| preset.profile.slices > 1) {
        let (whole, slices) = (&preset.profile, preset.profile.slices as f64);
        let (all, one) = (whole.cost(), preset.round_profile(Scale::Standard).cost());
        for (all, one) in [
            (all.bytes_written, one.bytes_written),
            (all.bytes_read, one.bytes_read),
            (all.space_bytes, one.space_bytes),
        ] {
            let (sum, all) = (one as f64 * slices, all as f64);
            assert!((sum - all).abs() <= 0.02 * all, "{}: {sum} of {all}", preset.name());
        }
        assert!(one.bytes_written + one.setup_bytes < 6_000_000_000, "{} is still heavy", preset.name());
        assert_eq!(
            preset.round_profile(Scale::Quick),
            whole.scaled_to(Scale::Quick),
            "a quick run is not divided into slices"
        );
    }
    let heavy = presets()
        .iter()
        .filter(|preset| preset.round_profile(Scale::Standard).cost().bytes_written > 10 << 30);
    assert_eq!(
        heavy.map(Workload::name).collect::<Vec<_>>(),
        Vec::<&str>::new(),
        "these write more than 10 GiB a round"
    );
}

#[test]
fn a_small_set_keeps_its_file_count_in_a_slice() {
    let text = MINIMAL.replace("[files.a]", "slices = 8\n[files.a]");
    let slice = Profile::parse(&text).unwrap().one_slice();
    assert_eq!((slice.files["a"].count, slice.files["a"].size.file_bytes(1, 0), slice.slices), (4, 512, 1));
    assert!(parse_error(&text.replace("= 8", "= 0")).contains("`slices`"));
}

#[test]
fn a_quick_profile_is_smaller_and_never_empty() {
    let text = MINIMAL.replace("[files.a]", "[quick]\ncount = 1000\nsize = 64\n[files.a]");
    let quick = Profile::parse(&text).unwrap().scaled_to(Scale::Quick);
    assert_eq!((quick.files["a"].count, quick.files["a"].size.file_bytes(1, 0)), (1, 64));
}

#[test]
fn only_sets_that_grow_or_shrink_are_recreated() {
    let changes =
        |step: &str| Profile::parse(&MINIMAL.replace("do = \"read\"", step)).unwrap().changes_files("a");
    assert!(!changes("do = \"write\"") && !changes("do = \"stat\""));
    assert!(changes("do = \"append\"") && changes("do = \"delete\""));
}

proptest! {
    #[test]
    fn parsing_any_text_never_panics(text in "[a-z\\[\\]=.\"\n0-9# {},-]{0,200}") {
        let _ = Profile::parse(&text);
    }

    #[test]
    fn the_cost_of_any_numbers_never_panics(
        (count, size, block) in (any::<i64>(), any::<i64>(), any::<i64>()),
        (threads, times, folders) in (any::<i32>(), any::<i64>(), any::<i32>()),
    ) {
        let text = MINIMAL
            .replace("count = 4", &format!("count = {count}\nfolders = {folders}"))
            .replace("\"4 KiB\"", &size.to_string())
            .replace("files = \"a\"", &format!("files = \"a\"\nthreads = {threads}\ntimes = {times}"))
            .replace("block = 4096", &format!("block = {block}"));
        if let Ok(profile) = Profile::parse(&text) {
            let _ = (profile.cost(), profile.scaled_to(Scale::Quick).cost());
        }
    }
}

/// Checks that rates include a sync or close. Without one, written data may still be in the client's memory.
#[test]
fn presets_sync_or_close_what_they_write() {
    for (preset, phase) in
        presets().iter().flat_map(|preset| preset.profile.phases.iter().map(move |phase| (preset, phase)))
    {
        for work in &phase.work {
            let does = |actions: &[Action]| {
                work.steps.iter().chain(&work.after).any(|step| actions.contains(&step.action))
            };
            let flushes = does(&[Action::Sync, Action::Close]);
            assert!(!does(&[Action::Write, Action::Append]) || flushes, "{}: {}", preset.name(), phase.name);
        }
    }
}

#[test]
fn bundled_profiles_are_valid_and_survive_json() {
    for preset in presets() {
        let text = serde_json::to_string(&preset.profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), preset.profile);
        assert!(!preset.profile.figures.is_empty());
        let small = preset.profile.scaled_to(Scale::Quick).cost();
        assert!(small.space_bytes < 260_000_000 && small.seconds < 30.0, "{:?}", small);
    }
}
