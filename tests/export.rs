//! What is exported is what was measured, in every format, and any tool reads it.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use longhaul_export::{Imported, read_history};
use longhaul_measure::stats::quantile;
use longhaul_measure::summary::{History, public};
use longhaul_store::Reader;
use serde_json::Value;
use support::{Place, assert_all_ok, machine};

const FORMATS: [&str; 3] = ["csv", "json", "parquet"];
const QUANTILES: [f64; 5] = [0.05, 0.5, 0.95, 0.99, 1.0];

/// A place with two rounds of two tasks on two targets.
fn measured() -> Place {
    let place = Place::with_tiny_trees();
    let (a, b) = (place.folder("a"), place.folder("b"));
    let call = place.run(&["folder-index", "photo-batch"], &[("a", &a), ("b", &b)]);
    assert_all_ok(&call.word("--rounds").word("2").expect(0).runs());
    place
}

/// Exports to a file and gives its path and the number of rows that was said.
fn export(place: &Place, what: &str, format: &str) -> (PathBuf, usize) {
    let path = place.path(&format!("{what}.{format}"));
    let call = place.longhaul(&format!("export {what} --format {format} --output")).word(&path);
    let said = call.expect(0);
    (path, said.err.split(' ').next().unwrap().parse().unwrap())
}

fn history(place: &Place) -> History {
    public(Reader::open(&place.database()).unwrap().history().unwrap())
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_archive_gives_back_what_the_database_holds_in_every_format() {
    let place = measured();
    let stored = history(&place);
    assert_eq!((stored.runs.len(), stored.rounds.len()), (8, 2));
    for format in FORMATS {
        let (path, rows) = export(&place, "runs", format);
        let imported = read_history(&path).unwrap();
        assert_eq!(imported.left_out, []);
        let mut history = imported.history;
        // The zone is the machine's, not the database's.
        history.premises.zone = None;
        assert_eq!(history, stored, "{format}");
        assert_eq!(rows, 1 + 2 + 2 + 2 + stored.events.len() + 8, "{format}");
    }
    let to_output = place.longhaul("export runs --format csv").expect(0);
    assert_eq!(to_output.out, fs::read_to_string(place.path("runs.csv")).unwrap());
}

#[test]
fn every_operation_is_exported_with_a_histogram_from_which_its_quantiles_follow() {
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

/// The p95 of a row, found again in its buckets.
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
fn a_window_holds_rounds_as_a_whole_and_the_journal_of_its_time() {
    let place = measured();
    let second = jiff::Timestamp::from_microsecond(history(&place).rounds[1].started_us).unwrap();
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
fn what_cannot_be_exported_says_what_to_do() {
    let place = Place::with_tiny_trees();
    place.longhaul("export runs --format csv").expect(5).complains_of(&["longhaul try"]);
    let a = place.folder("a");
    place.run(&["folder-index"], &[("a", &a)]).expect(0);
    place.longhaul("export runs --format parquet").expect(2).complains_of(&["--output FILE"]);
    place
        .longhaul("export runs --format csv --from yesterday")
        .expect(2)
        .complains_of(&["yesterday", "2026-11-09"]);
    let empty = "export runs --format csv --from 2026-01-02 --to 2026-01-02";
    place.longhaul(empty).expect(2).complains_of(&["nothing lies between"]);
    let over = place.longhaul("export runs --format csv --output").word(place.database());
    over.expect(2).complains_of(&["is a database", "--output FILE"]);
    let nowhere = place.longhaul("export runs --format csv --output").word(place.path("not/there.csv"));
    nowhere.expect(1).complains_of(&["there.csv"]);
    let full = place.longhaul("export runs --format csv --output /dev/full").expect(1);
    full.complains_of(&["/dev/full", "incomplete"]);
}

/// Counts and quantiles of `seconds` by target and task, as DuckDB finds them in a file.
const QUESTION: &str = r#"
import duckdb, json, sys
rows = duckdb.sql(f"""
    SELECT target, workload, count(*), quantile_disc(seconds, {sys.argv[2]})
    FROM {sys.argv[1]} WHERE record = 'run' AND outcome = 'ok' GROUP BY ALL
""").fetchall()
print(json.dumps({f"{row[0]} {row[1]}": [row[2], *row[3]] for row in rows}))
"#;

#[test]
fn duckdb_finds_the_same_counts_and_quantiles() {
    let python = match duckdb() {
        Ok(python) => python,
        Err(why) => return machine::skip("duckdb_finds_the_same_counts_and_quantiles", &why),
    };
    let place = Place::new();
    fs::create_dir_all(place.data()).unwrap();
    place.longhaul("bench year --weeks 2 --database").word(place.database()).expect(0);
    let expected = quantiles(&history(&place));
    assert_eq!(expected.len(), 16);
    for (format, reader) in [("csv", "read_csv"), ("json", "read_json"), ("parquet", "read_parquet")] {
        let (path, _) = export(&place, "runs", format);
        let table = format!("{reader}('{}')", path.display());
        let asked =
            Command::new(&python).args(["-c", QUESTION, &table, &format!("{QUANTILES:?}")]).output().unwrap();
        assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        let found: BTreeMap<String, Vec<f64>> = serde_json::from_slice(&asked.stdout).unwrap();
        assert_eq!(found, expected, "{format}");
        assert_eq!(shuffled(&python, (&place, &table, format)), read_history(&path).unwrap(), "{format}");
    }
}

/// Writes a table again in another order, with whatever DuckDB does by default.
const SHUFFLE: &str = r#"
import duckdb, sys
duckdb.sql(f"COPY (SELECT * FROM {sys.argv[1]} ORDER BY random()) TO '{sys.argv[2]}' (FORMAT {sys.argv[3]})")
"#;

/// What is read from a file that DuckDB wrote.
fn shuffled(python: &Path, file: (&Place, &str, &str)) -> Imported {
    let (place, table, format) = file;
    let path = place.path("shuffled");
    succeeds(Command::new(python).args(["-c", SHUFFLE, table]).arg(&path).arg(format)).unwrap();
    read_history(&path).unwrap()
}

/// The same from the history itself.
fn quantiles(history: &History) -> BTreeMap<String, Vec<f64>> {
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in history.runs.iter().filter(|run| run.outcome.name() == "ok") {
        let workload = longhaul_measure::workloads::WORKLOADS[run.workload].name();
        let key = format!("{} {workload}", history.targets[run.target].name);
        seconds.entry(key).or_default().push(run.seconds);
    }
    let answer = |seconds: Vec<f64>| {
        let quantiles = QUANTILES.iter().map(|q| quantile(&seconds, *q).unwrap());
        std::iter::once(seconds.len() as f64).chain(quantiles).collect()
    };
    seconds.into_iter().map(|(key, seconds)| (key, answer(seconds))).collect()
}

/// A Python with DuckDB: the one that `LONGHAUL_PYTHON` names, or one that is made beside the tests and kept.
fn duckdb() -> Result<PathBuf, String> {
    const DUCKDB: &str = "duckdb==2.0.0";
    let has_duckdb = |python: &Path| succeeds(Command::new(python).args(["-c", "import duckdb"])).is_ok();
    if let Some(python) = std::env::var_os("LONGHAUL_PYTHON") {
        let python = PathBuf::from(python);
        return if has_duckdb(&python) {
            Ok(python)
        } else {
            Err("LONGHAUL_PYTHON has no duckdb".to_owned())
        };
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("duckdb");
    let python = folder.join("bin/python");
    if !has_duckdb(&python) {
        succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let install =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", DUCKDB];
        succeeds(Command::new(&python).args(install))?;
    }
    Ok(python)
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let said = || String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program} failed: {}", said())) }
}
