//! A NAS that does not answer delays no run for longer than a second, and its reason is stored.

use std::time::{Duration, Instant};

use longhaul_model::NasProblem;
use longhaul_store::Reader;

use crate::support::real_programs::free_port;
use crate::support::{Place, TINY_TREES};

fn exporter(port: u16) -> String {
    format!("[nas]\nkind = \"node-exporter\"\nurl = \"http://127.0.0.1:{port}/metrics\"\n")
}

#[test]
fn nas_that_does_not_answer_is_stored_as_the_reason() {
    let place = Place::new();
    // Takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("[targets.nas]\npath = \"{}\"\n", place.folder("nas").display());
    place.configure(&(exporter(silent.local_addr().unwrap().port()) + TINY_TREES + &target));
    let began = Instant::now();
    place.run(&["folder-index"], &[]).arg("--rounds").arg("5").expect(0);
    let stored = Reader::open(&place.database()).unwrap().nas_use(0..=i64::MAX).unwrap();
    let reasons: Vec<NasProblem> = stored.into_iter().map(|run| run.found.unwrap_err()).collect();
    assert_eq!(reasons, [NasProblem::Timeout; 5]);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn nas_check_says_what_is_wrong_and_what_to_do() {
    let place = Place::new();
    let output = place.longhaul("nas check").expect(2);
    assert!(output.err.contains("no NAS is configured"), "{output}");
    place.configure(&exporter(free_port()));
    let output = place.longhaul("nas check").expect(3);
    assert!(output.out.contains("connection refused: is a node_exporter running there?"), "{output}");
    let found = place.longhaul("nas check --json").expect(3).value();
    assert_eq!(
        (&found["kind"], &found["problem"]),
        (&"node-exporter".into(), &"unreachable".into()),
        "{found}"
    );
}

#[test]
fn config_names_a_secret_that_others_can_read() {
    let place = Place::new();
    std::fs::write(place.path("community"), "tops3cret").unwrap();
    let file = place.path("community");
    place.configure(&format!(
        "[nas]\nkind = \"snmp\"\nhost = \"127.0.0.1\"\ncommunity-file = \"{}\"\n",
        file.display()
    ));
    for command in ["config", "doctor"] {
        let output = place.longhaul(command).expect(3);
        assert!(output.out.contains("chmod 600") && !output.out.contains("tops3cret"), "{output}");
    }
}
