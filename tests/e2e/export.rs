//! Tests that every export format contains what was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, assert_all_ok};
use longhaul_analysis::summary::anonymize;
use longhaul_demo::synthetic_history;
use longhaul_export::{ImportedArchive, read_history};
use longhaul_model::{History, quantile};
use longhaul_store::Reader;
use serde_json::Value;

const FORMATS: [&str; 3] = ["csv", "json", "parquet"];
const QUANTILES: [f64; 5] = [0.05, 0.5, 0.95, 0.99, 1.0];

/// Creates a test environment with two rounds of two workloads on two targets.
fn measured() -> Place {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let call = place.run(&["folder-index", "photo-batch"], &[("a", &a), ("b", &b)]);
    assert_all_ok(&call.arg("--rounds").arg("2").expect(0).runs());
    place
}

/// Exports to a file. Returns its path and the number of rows that the command printed.
fn export(place: &Place, what: &str, format: &str) -> (PathBuf, usize) {
    let path = place.path(&format!("{what}.{format}"));
    let call = place.longhaul(&format!("export {what} --format {format} --output")).arg(&path);
    let output = call.expect(0);
    (path, output.err.split(' ').next().unwrap().parse().unwrap())
}

fn history(place: &Place) -> History {
    anonymize(Reader::open(&place.database()).unwrap().history().unwrap())
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn exported_archives_contain_the_whole_database() {
    let place = measured();
    let stored = history(&place);
    assert_eq!((stored.runs.len(), stored.rounds.len()), (8, 2));
    for format in FORMATS {
        let (path, rows) = export(&place, "runs", format);
        let imported = read_history(&path).unwrap();
        assert_eq!(imported.skipped, []);
        let mut history = imported.history;
        // The time zone and the scale come from the machine and the configuration, not from the database.
        (history.settings.zone, history.settings.scale) = (None, None);
        assert_eq!(history, stored, "{format}");
        assert_eq!(rows, 1 + 2 + 2 + 2 + stored.events.len() + 8, "{format}");
    }
    let to_output = place.longhaul("export runs --format csv").expect(0);
    assert_eq!(to_output.out, fs::read_to_string(place.path("runs.csv")).unwrap());
}

#[test]
fn exported_histograms_give_the_exported_quantiles() {
    let place = measured();
    let counts = FORMATS.map(|format| export(&place, "ops", format).1);
    let listed = place.stored_runs();
    let phases = listed.iter().flat_map(|run| run["phases"].as_array().unwrap());
    let shown: Vec<&Value> = phases.flat_map(|phase| phase["ops"].as_array().unwrap()).collect();
    assert_eq!(counts, [shown.len(); 3]);
    assert_eq!(fs::read_to_string(place.path("ops.csv")).unwrap().lines().count(), shown.len() + 1);
    for (row, shown) in json_lines(&place.path("ops.json")).iter().zip(shown) {
        assert_eq!((&row["operation"], &row["count"]), (&shown["op"], &shown["count"]));
        check_quantile(row);
    }
}

/// Checks that the p95 of a row lies in the bucket that its counts select.
fn check_quantile(row: &Value) {
    let list = |name: &str| row[name].as_array().unwrap().iter().map(|number| number.as_i64().unwrap());
    let count = row["count"].as_f64().unwrap();
    assert_eq!(list("bucket_count").sum::<i64>() as f64, count);
    let mut seen = 0;
    let rank = (0.95 * count).ceil() as i64;
    let bucket = list("bucket_index").zip(list("bucket_count")).find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    let gamma = (-row["histogram_scale"].as_f64().unwrap()).exp2().exp2();
    let upper_ns = 1e3 * gamma.powf(bucket.unwrap().0 as f64 + 1.0);
    let p95_ns = row["p95_ns"].as_f64().unwrap();
    assert!((upper_ns / gamma * 0.999..=upper_ns * 1.001).contains(&p95_ns), "{p95_ns} in {bucket:?}");
}

#[test]
fn time_range_exports_whole_rounds() {
    let place = measured();
    let second = jiff::Timestamp::from_microsecond(history(&place).rounds[1].started_us.as_us()).unwrap();
    let rows = |arguments: &str| place.longhaul(arguments).expect(0).lines();
    let runs = |rows: Vec<Value>| rows.iter().filter(|row| row["record"] == "run").count();
    assert_eq!(runs(rows(&format!("export runs --format json --from {second}"))), 4);
    assert_eq!(runs(rows(&format!("export runs --format json --to {second}"))), 4);
    assert_eq!(runs(rows("export runs --format json --from 2020-01-01 --to 2020-02-01")), 0);
    let all = rows("export ops --format json").len();
    let sides =
        ["--from", "--to"].map(|side| rows(&format!("export ops --format json {side} {second}")).len());
    assert_eq!(sides.iter().sum::<usize>(), all);
    assert_eq!(rows("export events --format json").len(), history(&place).events.len());
}

#[test]
fn failed_exports_say_what_to_do() {
    let place = Place::with_tiny_trees();
    place.longhaul("export runs --format csv").expect(5).assert_stderr(&["longhaul try"]);
    let a = place.folder("a");
    place.run(&["folder-index"], &[("a", &a)]).expect(0);
    place.longhaul("export runs --format parquet").expect(2).assert_stderr(&["--output FILE"]);
    place
        .longhaul("export runs --format csv --from yesterday")
        .expect(2)
        .assert_stderr(&["yesterday", "2026-11-09"]);
    let empty = "export runs --format csv --from 2026-01-02 --to 2026-01-02";
    place.longhaul(empty).expect(2).assert_stderr(&["is empty"]);
    let over = place.longhaul("export runs --format csv --output").arg(place.database());
    over.expect(2).assert_stderr(&["is a database", "--output FILE"]);
    let nowhere = place.longhaul("export runs --format csv --output").arg(place.path("not/there.csv"));
    nowhere.expect(1).assert_stderr(&["there.csv"]);
    let full = place.longhaul("export runs --format csv --output /dev/full").expect(1);
    full.assert_stderr(&["/dev/full", "incomplete"]);
}

/// Python program: prints count and quantiles of `seconds` by target and workload, computed by DuckDB from a file.
const QUANTILES_PROGRAM: &str = r#"
import duckdb, json, sys
rows = duckdb.sql(f"""
    SELECT target, workload, count(*), quantile_disc(seconds, {sys.argv[2]})
    FROM {sys.argv[1]} WHERE record = 'run' AND outcome = 'ok' GROUP BY ALL
""").fetchall()
print(json.dumps({f"{row[0]} {row[1]}": [row[2], *row[3]] for row in rows}))
"#;

#[test]
#[ignore = "needs DuckDB: set LONGHAUL_PYTHON to a Python that has it; run by name with --ignored"]
fn duckdb_finds_the_same_counts_and_quantiles() {
    let python = std::env::var_os("LONGHAUL_PYTHON").expect("LONGHAUL_PYTHON is set");
    let python = PathBuf::from(python);
    let place = Place::new();
    fs::create_dir_all(place.data()).unwrap();
    synthetic_history::fill_database(&place.database(), synthetic_history::BEGIN, 14).unwrap();
    let expected = quantiles(&history(&place));
    assert_eq!(expected.len(), 16);
    for (format, reader) in [("csv", "read_csv"), ("json", "read_json"), ("parquet", "read_parquet")] {
        let (path, _) = export(&place, "runs", format);
        let table = format!("{reader}('{}')", path.display());
        let answer = Command::new(&python)
            .args(["-c", QUANTILES_PROGRAM, &table, &format!("{QUANTILES:?}")])
            .output()
            .unwrap();
        assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
        let found: BTreeMap<String, Vec<f64>> = serde_json::from_slice(&answer.stdout).unwrap();
        assert_eq!(found, expected, "{format}");
        assert_eq!(shuffled(&python, (&place, &table, format)), read_history(&path).unwrap(), "{format}");
    }
}

/// Python program: rewrites a table in random order with DuckDB's default options.
const SHUFFLE_PROGRAM: &str = r#"
import duckdb, sys
duckdb.sql(f"COPY (SELECT * FROM {sys.argv[1]} ORDER BY random()) TO '{sys.argv[2]}' (FORMAT {sys.argv[3]})")
"#;

/// Rewrites an export with DuckDB and returns what longhaul reads from it.
fn shuffled(python: &Path, file: (&Place, &str, &str)) -> ImportedArchive {
    let (place, table, format) = file;
    let path = place.path("shuffled");
    let status = Command::new(python).args(["-c", SHUFFLE_PROGRAM, table]).arg(&path).arg(format).status();
    assert!(status.unwrap().success(), "DuckDB rewrites {table}");
    read_history(&path).unwrap()
}

/// Computes the expected counts and quantiles from the history.
fn quantiles(history: &History) -> BTreeMap<String, Vec<f64>> {
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in history.runs.iter().filter(|run| run.outcome.name() == "ok") {
        let workload = longhaul_model::TASKS[run.workload].name();
        let key = format!("{} {workload}", history.targets[run.target].name);
        seconds.entry(key).or_default().push(run.seconds);
    }
    let answer = |seconds: Vec<f64>| {
        let quantiles = QUANTILES.iter().map(|q| quantile(&seconds, *q).unwrap());
        std::iter::once(seconds.len() as f64).chain(quantiles).collect()
    };
    seconds.into_iter().map(|(key, seconds)| (key, answer(seconds))).collect()
}
