//! Tests the screen of merged results.

use longhaul_commons::{
    Agreement, GroupKind, MachineRatio, Merged, MergedGroup, MergedPair, MergedResult, NasFamily, NasVendor,
    ProtocolLabel, RefusedFile,
};
use longhaul_model::Scale;
use longhaul_view::document_page;
use longhaul_view::render::{markdown, terminal};
use longhaul_view::screens::commons::{contradictions, merged};

fn result(key: &str, machines: usize) -> MergedResult {
    MergedResult {
        key: key.to_owned(),
        machines,
        ratio: 1.08,
        low: Some(1.03),
        high: Some(1.13),
        between: 0.06,
        agreement: Agreement { agree: machines - 3, of: machines },
        ln_e_all_in: 31.0,
        ln_e_machines: 4.2,
        is_shown: true,
    }
}

fn results() -> Merged {
    let nas = NasFamily { vendor: NasVendor::Synology, bays: Some(4) };
    let family = MergedResult { ln_e_machines: 0.4, is_shown: false, ..result("overall", 8) };
    let each = (0..3).map(|index| MachineRatio {
        machine: format!("0a1b2c3{index}"),
        ratio: 1.02 + 0.05 * f64::from(index),
        low: Some(0.98),
        high: Some(1.2),
        days: 40,
    });
    Merged {
        schema: 1,
        machines: 22,
        pairs: vec![MergedPair {
            a: ProtocolLabel::Nfs4,
            b: ProtocolLabel::Smb3,
            scale: Scale::Standard,
            machines: 22,
            groups: vec![
                MergedGroup { kind: GroupKind::All, result: result("overall", 21) },
                MergedGroup { kind: GroupKind::Nas { nas }, result: family },
            ],
            metrics: vec![result("photo-batch/photos-cold", 21)],
            each: each.collect(),
        }],
        refused: vec![RefusedFile { file: "<b>x.json".to_owned(), reason: "its end is missing".to_owned() }],
    }
}

#[test]
fn merged_results_are_written_out() {
    insta::assert_snapshot!(terminal::render(&merged(&results())));
}

#[test]
fn undecided_and_empty_results_claim_nothing() {
    let mut undecided = results();
    undecided.pairs[0].groups[0].result.is_shown = false;
    assert!(markdown::render(&merged(&undecided)).contains("too few were measured, or they differ too much"));
    undecided.pairs[0].groups[0].result.ln_e_all_in = 1.0;
    assert!(markdown::render(&merged(&undecided)).contains("No difference is shown yet"));
    undecided.pairs[0].groups.clear();
    assert!(markdown::render(&merged(&undecided)).contains("none has at least 5 valid days"));
    let empty = Merged { schema: 1, machines: 0, pairs: vec![], refused: vec![] };
    assert!(markdown::render(&merged(&empty)).contains("No file compares two protocols"));
}

#[test]
fn file_that_would_be_refused_is_announced() {
    let text = terminal::render(&contradictions(&["traffic: too little".to_owned()]));
    assert!(text.contains("would refuse this file") && text.contains("traffic: too little"), "{text}");
    assert_eq!(terminal::render(&contradictions(&[])), "");
}

#[test]
fn page_escapes_names_of_files_and_draws_each_machine() {
    let page = document_page("Results", &merged(&results()));
    assert!(!page.contains("<b>x.json") && page.contains("&lt;b&gt;x.json"));
    assert!(page.contains("machine 0a1b2c30") && !page.contains("<script"));
}
