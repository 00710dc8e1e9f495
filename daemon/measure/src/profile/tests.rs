//! What is taken, and what is refused with what words.

use proptest::prelude::*;

use super::*;
use crate::workloads::Workload;
use crate::workloads::classic::classics;

const LEAST: &str = "summary = \"reads\"\n[files.a]\ncount = 4\nsize = \"4 KiB\"\n[[phase]]\nname = \"read\"\n\
    [[phase.work]]\nfiles = \"a\"\nsteps = [{ do = \"read\", block = 4096 }]\n";

fn refused(text: &str) -> String {
    Profile::parse(text).unwrap_err().to_string()
}

#[test]
fn the_least_profile_reads_each_file_once() {
    let cost = Profile::parse(LEAST).unwrap().cost();
    assert_eq!((cost.prepared, cost.read, cost.written, cost.calls), (16_384, 16_384, 0, 4));
}

#[test]
fn what_is_wrong_is_said_with_its_line_or_its_place() {
    assert!(refused("summary = 3").starts_with("line 1: "));
    assert!(refused(&LEAST.replace("count = 4", "count = 0")).contains("[files.a]: `count`"));
    assert!(refused(&LEAST.replace("count", "cuont")).contains("line 3: unknown field `cuont`"));
    assert!(
        refused(&LEAST.replace("files = \"a\"", "files = \"b\""))
            .contains("phase `read`: there is no [files.b]")
    );
    assert!(refused(&LEAST.replace("4 KiB", "4 apples")).contains("size"));
    assert!(refused(&LEAST.replace("block = 4096", "block = 0")).contains("`block`"));
    assert!(
        refused(&LEAST.replace("files = \"a\"", "files = \"a\"\nthreads = 5"))
            .contains("some would have none")
    );
    assert!(
        refused(&LEAST.replace("do = \"read\"", "at = \"random\", do = \"write\"").replace("4096", "1000"))
            .contains("512")
    );
    let print = "[[figure]]\nname = \"x\"\nunit = \"MB/s\"\nphase = \"read\"\nof = \"";
    assert!(refused(&format!("{LEAST}{print}read.p95\"")).contains("cannot be printed in MB/s"));
    assert!(refused(&format!("{LEAST}{print}reed\"")).contains("is not known"));
}

#[test]
fn bytes_are_read_as_people_write_them() {
    for (text, bytes) in [("16 KiB", 16_384), ("4GB", 4_000_000_000), ("7 B", 7)] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)));
    }
    for bad in ["", "16", "KiB", "-1 KiB", "1.5 GB", "1 TB", "99999999999 GB"] {
        assert!(bad.parse::<Bytes>().is_err(), "{bad}");
    }
}

#[test]
fn slices_of_a_heavy_profile_add_up_to_it() {
    for classic in classics().iter().filter(|classic| classic.profile.slices > 1) {
        let (whole, slices) = (&classic.profile, classic.profile.slices as f64);
        let (all, one) = (whole.cost(), classic.in_rounds(Scale::Standard).cost());
        for (all, one) in [(all.written, one.written), (all.read, one.read), (all.space, one.space)] {
            let (sum, all) = (one as f64 * slices, all as f64);
            assert!((sum - all).abs() <= 0.02 * all, "{}: {sum} of {all}", classic.name());
        }
        assert!(one.written + one.prepared < 6_000_000_000, "{} is still heavy", classic.name());
        assert_eq!(classic.in_rounds(Scale::Quick), whole.at(Scale::Quick), "a quick run is small as it is");
    }
    let heavy =
        classics().iter().filter(|classic| classic.in_rounds(Scale::Standard).cost().written > 10 << 30);
    assert_eq!(heavy.map(Workload::name).collect::<Vec<_>>(), Vec::<&str>::new(), "these have no slices");
}

#[test]
fn a_set_with_fewer_files_than_slices_keeps_their_number() {
    let text = LEAST.replace("[files.a]", "slices = 8\n[files.a]");
    let slice = Profile::parse(&text).unwrap().slice();
    assert_eq!((slice.files["a"].count, slice.files["a"].size.of(1, 0), slice.slices), (4, 512, 1));
    assert!(refused(&text.replace("= 8", "= 0")).contains("`slices`"));
}

#[test]
fn a_quick_profile_is_smaller_and_never_empty() {
    let text = LEAST.replace("[files.a]", "[quick]\ncount = 1000\nsize = 64\n[files.a]");
    let quick = Profile::parse(&text).unwrap().at(Scale::Quick);
    assert_eq!((quick.files["a"].count, quick.files["a"].size.of(1, 0)), (1, 64));
}

#[test]
fn a_set_that_is_only_overwritten_is_kept_and_one_that_grows_is_not() {
    let changes = |step: &str| Profile::parse(&LEAST.replace("do = \"read\"", step)).unwrap().changes("a");
    assert!(!changes("do = \"write\"") && !changes("do = \"stat\""));
    assert!(changes("do = \"append\"") && changes("do = \"delete\""));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in "[a-z\\[\\]=.\"\n0-9# {},-]{0,200}") {
        let _ = Profile::parse(&text);
    }

    #[test]
    fn any_numbers_are_costed_or_refused_without_panic(
        (count, size, block) in (any::<i64>(), any::<i64>(), any::<i64>()),
        (threads, times, folders) in (any::<i32>(), any::<i64>(), any::<i32>()),
    ) {
        let text = LEAST
            .replace("count = 4", &format!("count = {count}\nfolders = {folders}"))
            .replace("\"4 KiB\"", &size.to_string())
            .replace("files = \"a\"", &format!("files = \"a\"\nthreads = {threads}\ntimes = {times}"))
            .replace("block = 4096", &format!("block = {block}"));
        if let Ok(profile) = Profile::parse(&text) {
            let _ = (profile.cost(), profile.at(Scale::Quick).cost());
        }
    }
}

/// A client that keeps what is written hands it over when the file is synced or closed: a rate without that is memory's.
#[test]
fn what_a_classic_writes_is_handed_over_within_its_rates() {
    for (classic, phase) in
        classics().iter().flat_map(|classic| classic.profile.phases.iter().map(move |phase| (classic, phase)))
    {
        for work in &phase.work {
            let does = |actions: &[Action]| {
                work.steps.iter().chain(&work.after).any(|step| actions.contains(&step.action))
            };
            let hands_over = does(&[Action::Sync, Action::Close]);
            assert!(
                !does(&[Action::Write, Action::Append]) || hands_over,
                "{}: {}",
                classic.name(),
                phase.name
            );
        }
    }
}

#[test]
fn every_profile_that_comes_along_is_well_formed_and_travels_as_json() {
    for classic in classics() {
        let text = serde_json::to_string(&classic.profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), classic.profile);
        assert!(!classic.profile.figures.is_empty());
        let small = classic.profile.at(Scale::Quick).cost();
        assert!(small.space < 260_000_000 && small.seconds < 30.0, "{:?}", small);
    }
}
