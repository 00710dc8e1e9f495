//! The contract with other programs: a recorded database, and all JSON and exports made from it, byte for byte.
//!
//! `fixtures/recorded.sql.gz` is the database with [`world::RECORDED`] as statements, written on 25 November 2026 after
//! the first schema step and never edited: it also shows that later versions read older databases. After a new schema
//! step, record another file next to it with `gzip -9n`, from the one that the failed test names.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use longhaul_service::daemon_address::DaemonAddress;
use longhaul_store::Store;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::schema::printer::print_schema;
use rusqlite::Connection;

use super::home::{Home, Snapshots};
use super::service::Service;
use super::{lines, page, world};

const RECORDED: &[u8] = include_bytes!("../fixtures/recorded.sql.gz");

/// Commands that print JSON or export: name of the snapshot, then the command line.
const COMMANDS: &str = "
report         report 2021-W12 --json
pair           report --pair smb,nfs --at os-update --json
anonymous      report 2021-W12 --json --anonymous
summary        runs --summary --json
runs           runs --last 4 --json
run            runs 1 --json
run-hung       runs 64 --json
run-error      runs 172 --json
latency        latency --since 9000d --json
series         latency --since 9000d --by 12h --json
stalls         stalls --since 9000d --json
events         events --since 9000d --json
archive-json   export runs --format json --from 2021-03-22
archive-csv    export runs --format csv --from 2021-03-22
ops-json       export ops --format json --from 2021-03-28
ops-csv        export ops --format csv --from 2021-03-28
events-json    export events --format json
events-csv     export events --format csv
";

/// Commands that need the service.
const SERVICE: &str = "
status  status --json
doctor  doctor --json
";

/// Addresses of the interface for programs: name of the snapshot, then the path.
const API: &str = "
api-status   /api/v1/status
api-live     /api/v1/live
api-week     /api/v1/week?week=2021-W12
api-runs     /api/v1/runs?last=4
api-run      /api/v1/runs/1
api-latency  /api/v1/latency?days=9000
api-series   /api/v1/latency/series?days=3&until=1616976000000000
api-stalls   /api/v1/stalls?days=9000
api-events   /api/v1/events?days=9000
api-freshness  /api/v1/freshness
api-integrity  /api/v1/integrity
api-fidelity   /api/v1/fidelity
";

/// Creates a home with the recorded database, brought up to date as the service does it at its start.
fn recorded_home() -> Home {
    let home = Home::new();
    home.configure(world::CONFIG);
    home.write("home/data/longhaul/longhaul.sqlite", "");
    let mut statements = String::new();
    GzDecoder::new(RECORDED).read_to_string(&mut statements).unwrap();
    Connection::open(home.database()).unwrap().execute_batch(&statements).unwrap();
    drop(Store::open(&home.database(), &[]).unwrap());
    home
}

/// Returns the statements that make a database again: schema, then rows in the order of their columns.
fn dump(database: &Path) -> String {
    let cx = Connection::open(database).unwrap();
    let texts = |query: &str| -> Vec<String> {
        let mut query = cx.prepare(query).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut dump = "BEGIN;\n".to_owned();
    for name in ["application_id", "user_version"] {
        let value: i64 = cx.pragma_query_value(None, name, |row| row.get(0)).unwrap();
        writeln!(dump, "PRAGMA {name} = {value};").unwrap();
    }
    for sql in texts(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    ) {
        writeln!(dump, "{sql};").unwrap();
    }
    for table in texts(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
    ) {
        let columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let values =
            columns.iter().map(|name| format!("quote({name})")).collect::<Vec<_>>().join(" || ',' || ");
        for row in texts(&format!("SELECT {values} FROM {table} ORDER BY {}", columns.join(", "))) {
            writeln!(dump, "INSERT INTO {table} VALUES ({row});").unwrap();
        }
    }
    dump + "COMMIT;\n"
}

#[test]
fn database_content_equals_the_recorded_one() {
    let (recorded, home) = (recorded_home(), Home::of(world::RECORDED));
    let fix_time_and_ids = "UPDATE meta SET value = '1614556800000000' WHERE key = 'created_us';
        UPDATE run SET trace_id = printf('%032x', number);";
    Connection::open(home.database()).unwrap().execute_batch(fix_time_and_ids).unwrap();
    for database in [recorded.database(), home.database()] {
        // It is of this computer; a recording that has it would count as one of another computer elsewhere.
        Connection::open(database).unwrap().execute("DELETE FROM meta WHERE key = 'host'", []).unwrap();
    }
    let (then, today) = (dump(&recorded.database()), dump(&home.database()));
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorded.sql");
    std::fs::write(&written, &today).unwrap();
    let difference = then.lines().zip(today.lines()).find(|(then, today)| then != today);
    assert_eq!(difference, None, "recorded and now; all of it is in {}", written.display());
    assert_eq!(then.lines().count(), today.lines().count(), "all of it is in {}", written.display());
}

#[test]
fn json_and_exports_of_the_recorded_database_match() {
    let (home, mut snapshots) = (recorded_home(), Snapshots::new("contract"));
    // Applies the later schema steps, as the service does when it starts.
    drop(Store::open(&home.database(), &[]).unwrap());
    let mut check_command =
        |(name, line)| snapshots.check(name, &without_current_times(&home.longhaul(line).text()));
    lines(COMMANDS).for_each(&mut check_command);
    let _service = Service::start(&home.database());
    lines(SERVICE).for_each(&mut check_command);
    for name in ["runs", "ops", "events"] {
        let screen = home.longhaul(&format!("export {name} --format parquet --output ~/{name}.parquet"));
        let form = parquet_form(&home.path(&format!("{name}.parquet")));
        snapshots.check(&format!("{name}-parquet"), &format!("{}{form}", screen.text()));
    }
    let port = DaemonAddress::read(&home.database()).unwrap().port;
    for (name, path) in lines(API) {
        let answer = without_current_times(&home.normalize(&page(port, path)));
        snapshots.check(name, &format!("GET {path}\n{answer}"));
    }
    snapshots.finish();
}

/// Replaces whole numbers that are microseconds since 1970 outside the recorded month.
fn without_current_times(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_ascii_digit() && c != '.');
    let changed = |word: &str| {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let is_time = digits.len() == 16 && !digits.contains('.') && !digits.starts_with("161");
        if is_time { word.replace(digits, "[TIME]") } else { word.to_owned() }
    };
    words.map(changed).collect()
}

/// Returns the schema and the number of rows of a Parquet file.
fn parquet_form(path: &Path) -> String {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let mut schema = vec![];
    print_schema(&mut schema, metadata.schema());
    format!("{}rows: {}\n", String::from_utf8(schema).unwrap(), metadata.num_rows())
}
