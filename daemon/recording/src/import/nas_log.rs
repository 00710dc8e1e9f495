//! Logs of transfers that Synology and QNAP devices keep: lines of syslog, and tables as CSV.
//!
//! Samples: Synology as in `WinFileService Event: read, Path: /.DS_Store, File/Folder: File, Size: 6.00 KB, User: ..., IP: ...`
//! (logstash-plugins/logstash-patterns-core, its tests of SYSLOGLINE); QNAP as in `conn log: Users: ..., Source IP: ...,
//! Computer name: ---, Connection type: SAMBA, Accessed resources: ..., Action: ...` and the codes of actions of its CSV (QTS
//! user manual, "Syslog Client Management"). Such a log has files, not calls: no offsets, no durations, no listings, no
//! names that were looked for. CSV is read by the names of its columns.

use std::collections::HashMap;
use std::time::Duration;

use csv_core::{ReadRecordResult, Reader};

use super::Importer;
use super::numbers::{date, syslog_date};
use super::paths::absolute;
use super::whole_files::{WholeFile, open_mode};
use crate::trace::Direction;
use crate::{Access, CallTime, CreateMode, FoundFile, Note, OpenMode, TraceAction, TraceSink};

/// Size that a file is taken to have where the log has none (QNAP), in bytes.
const ASSUMED_SIZE: u64 = 1 << 20;

/// Names of the columns and keys of each value, in lower case.
const KEYS: [(Field, &[&str]); 7] = [
    (Field::Event, &["event", "action"]),
    (Field::Path, &["path", "accessed resources", "file name", "filename", "file/folder name"]),
    (Field::Sort, &["file/folder", "type of file"]),
    (Field::Size, &["size", "file size"]),
    (Field::User, &["user", "users"]),
    (Field::Date, &["date", "date & time", "date/time", "time stamp"]),
    (Field::Time, &["time"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Field {
    Event,
    Path,
    Sort,
    Size,
    User,
    Date,
    Time,
}

fn field_of(key: &str) -> Option<Field> {
    let key = key.trim().trim_start_matches('\u{feff}').to_lowercase();
    KEYS.iter().find(|(_, names)| names.contains(&key.as_str())).map(|(field, _)| *field)
}

/// Reads the transfer logs of Synology and the connection logs of QNAP.
pub struct NasLogImporter {
    /// Path that stands before the paths of the log.
    root: Vec<u8>,
    /// Columns of a table, once its head was read.
    columns: Option<Vec<Option<Field>>>,
    table_reader: Box<Reader>,
    users: HashMap<String, u64>,
    next_handle: u64,
    now: Duration,
}

/// The values of a line.
type Values = HashMap<Field, String>;

impl NasLogImporter {
    /// Creates an importer. Paths of such a log begin with the name of a share; `root` is put before them.
    pub fn new(root: &[u8]) -> Self {
        let (columns, users, table_reader) = (None, HashMap::new(), Box::new(Reader::new()));
        Self { root: root.to_vec(), columns, table_reader, users, next_handle: 0, now: Duration::ZERO }
    }

    /// Returns the values of a line: of `Key: value, Key: value`, or of a row below the head of a table.
    fn values(&mut self, text: &str) -> Option<Values> {
        if let Some(values) = syslog_values(text) {
            self.now = syslog_date(text).unwrap_or(self.now);
            return Some(values);
        }
        let row = csv_row(&mut self.table_reader, text)?;
        let Some(columns) = &self.columns else {
            let columns: Vec<Option<Field>> = row.iter().map(|name| field_of(name)).collect();
            let is_head = columns.contains(&Some(Field::Event)) && columns.contains(&Some(Field::Path));
            self.columns = is_head.then_some(columns);
            return if is_head { Some(Values::new()) } else { None };
        };
        let cells = columns.iter().zip(row);
        let values: Values = cells.filter_map(|(field, cell)| Some(((*field)?, cell))).collect();
        let of = |field| values.get(&field).map_or("", String::as_str);
        self.now = date(&format!("{} {}", of(Field::Date), of(Field::Time))).unwrap_or(self.now);
        Some(values)
    }

    fn emit(&mut self, values: &Values, sink: &mut dyn TraceSink) {
        let of = |field| values.get(&field).map_or("", String::as_str);
        let call_time = CallTime::beginning(self.user(of(Field::User)), self.now);
        let event = of(Field::Event).trim().to_lowercase();
        let is_folder = of(Field::Sort).eq_ignore_ascii_case("folder");
        let Some(path) = self.path(of(Field::Path)) else { return sink.note(Note::Damaged) };
        let path = path.as_slice();
        let size = size(of(Field::Size));
        match event.as_str() {
            "read" | "download" | "2" if !is_folder => {
                self.whole(sink, File { call_time, path, size, direction: Direction::Read });
            }
            "write" | "upload" | "create" | "add" | "3" | "15" if !is_folder => {
                self.whole(sink, File { call_time, path, size, direction: Direction::Write });
            }
            // What the log shows as opened, without a read or write of its own, is looked at.
            "open" | "4" => {
                let found = size.map(FoundFile::File);
                call_time.emit(sink, TraceAction::Attributes { path, found });
            }
            "read" | "2" => call_time.emit(sink, TraceAction::Attributes { path, found: None }),
            "delete" | "del" | "1" if is_folder => call_time.emit(sink, TraceAction::RemoveFolder { path }),
            "delete" | "del" | "1" => call_time.emit(sink, TraceAction::Remove { path }),
            "mkdir" | "create folder" | "make directory" | "create" | "write" | "5" => {
                call_time.emit(sink, TraceAction::CreateFolder { path });
            }
            "rename" | "move" | "8" | "14" => self.rename(sink, values, call_time),
            "copy" | "13" => sink.note(Note::UnknownCall { name: "copy", path: Some(path) }),
            // Logins, logouts, mounts.
            _ => {}
        }
    }

    fn user(&mut self, name: &str) -> u64 {
        let number = self.users.len() as u64;
        *self.users.entry(name.to_owned()).or_insert(number)
    }

    fn path(&self, text: &str) -> Option<Vec<u8>> {
        let text = text.trim().replace('\\', "/");
        let path = absolute(Some(b"/"), text.as_bytes()).filter(|path| path != b"/")?;
        Some([self.root.as_slice(), &path].concat())
    }

    fn rename(&mut self, sink: &mut dyn TraceSink, values: &Values, call_time: CallTime) {
        let text = values.get(&Field::Path).map_or("", String::as_str);
        let both = ["->", "=>"].iter().find_map(|arrow| text.split_once(arrow));
        let both = both.and_then(|(from, to)| Some(self.path(from)?).zip(self.path(to)));
        match both {
            Some((from, to)) => call_time.emit(sink, TraceAction::Rename { from: &from, to: &to }),
            None => {
                sink.note(Note::UnknownCall { name: "rename", path: self.path(text).as_deref() });
            }
        }
    }

    fn whole(&mut self, sink: &mut dyn TraceSink, file: File<'_>) {
        self.next_handle += 1;
        let handle = self.next_handle;
        let File { call_time, path, direction, .. } = file;
        let size = file.size.unwrap_or(ASSUMED_SIZE);
        let mode = match direction {
            Direction::Read => open_mode(Access::Read),
            Direction::Write => {
                OpenMode { create: CreateMode::IfAbsent, truncate: true, ..open_mode(Access::Write) }
            }
        };
        call_time.emit(sink, TraceAction::Open { path, mode, handle: Some(handle) });
        call_time.transfer(sink, WholeFile { handle, direction, size });
        call_time.emit(sink, TraceAction::Close { handle });
    }
}

/// A file that a line of the log names.
#[derive(Clone, Copy)]
struct File<'line> {
    call_time: CallTime,
    path: &'line [u8],
    size: Option<u64>,
    direction: Direction,
}

/// Returns the values of `Key: value, Key: value`. A value ends at the next known key, because names may hold commas.
fn syslog_values(text: &str) -> Option<Values> {
    let start =
        text.find("Event: ").or_else(|| text.find("conn log: ").map(|start| start + "conn log: ".len()))?;
    let mut values = Values::new();
    let mut last = None;
    for part in text[start..].split(", ") {
        let key_and_value = part.split_once(": ").map(|(key, value)| (key, field_of(key), value));
        match key_and_value {
            Some((_, Some(field), value)) => {
                values.insert(field, value.to_owned());
                last = Some(field);
            }
            Some((key, None, _)) if is_other_key(key) => last = None,
            _ => {
                if let Some(value) = last.and_then(|field| values.get_mut(&field)) {
                    value.push_str(", ");
                    value.push_str(part);
                }
            }
        }
    }
    let is_complete = values.contains_key(&Field::Event) && values.contains_key(&Field::Path);
    is_complete.then_some(values)
}

/// Tells whether a key belongs to the log although its value is not needed.
fn is_other_key(key: &str) -> bool {
    matches!(
        key.trim(),
        "IP" | "Source IP" | "Computer name" | "Connection type" | "Application" | "Category" | "Content"
    )
}

/// Splits a row of a table into its cells. The reader is used again because making one takes longer than a row.
fn csv_row(reader: &mut Reader, text: &str) -> Option<Vec<String>> {
    let mut bytes = vec![0; text.len()];
    let mut ends = vec![0; text.matches(',').count() + 1];
    reader.reset();
    let (state, _, _, mut cells) = reader.read_record(text.as_bytes(), &mut bytes, &mut ends);
    if state == ReadRecordResult::InputEmpty {
        // Ends the row at the end of the line.
        cells += reader.read_record(&[], &mut [], &mut ends[cells..]).3;
    }
    let starts = std::iter::once(&0).chain(&ends);
    let cell = |(start, end): (&usize, &usize)| String::from_utf8_lossy(&bytes[*start..*end]).into_owned();
    (cells > 1).then(|| starts.zip(&ends[..cells]).map(cell).collect())
}

/// Parses `6.00 KB` and `165 Bytes`; units are powers of 1,024.
fn size(text: &str) -> Option<u64> {
    let (figure, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "bytes"));
    let figure: f64 = figure.replace(',', "").parse().ok()?;
    let unit = match unit.trim().to_lowercase().as_str() {
        "bytes" | "byte" | "b" => 1u64,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        "tb" => 1 << 40,
        _ => return None,
    };
    Some((figure * unit as f64) as u64)
}

impl Importer for NasLogImporter {
    fn line(&mut self, line: &[u8], sink: &mut dyn TraceSink) {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            return;
        }
        match self.values(&text) {
            Some(values) if values.is_empty() => {}
            Some(values) => self.emit(&values, sink),
            None => sink.note(Note::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;
    use crate::import::testing::Written;

    fn run(log: &str) -> Written {
        let mut written = Written::default();
        import(&mut NasLogImporter::new(b"/mnt"), &mut log.as_bytes(), &mut written).unwrap();
        written
    }

    fn openings(written: &Written) -> Vec<&str> {
        let names = written.events.iter().filter(|event| event.starts_with('/'));
        names.map(|event| event.split(" {").next().unwrap_or_default()).collect()
    }

    #[test]
    fn synology_lines_become_whole_files() {
        let written = run(include_str!("../../tests/fixtures/synology.log"));
        assert_eq!(
            openings(&written),
            [
                "/mnt/photos/a, b.jpg Open",
                "/mnt/photos/new.mov Open",
                "/mnt/photos/old.tmp Remove",
                "/mnt/photos/2026 CreateFolder",
                "/mnt/photos/x.txt -> /mnt/photos/y.txt Rename",
            ]
        );
        assert!(written.events[1].contains("length: 24821, read: 24821"), "{:?}", written.events);
        assert_eq!(written.notes, ["unknown rename /mnt/photos/z.txt", "Damaged"]);
    }

    #[test]
    fn qnap_lines_and_table_give_the_same_operations() {
        let lines = run(include_str!("../../tests/fixtures/qnap.log"));
        let table = run(include_str!("../../tests/fixtures/qnap.csv"));
        assert_eq!(lines.events, table.events);
        assert_eq!(openings(&lines), ["/mnt/docs/Contract.pdf Open", "/mnt/docs/old Remove"]);
        assert!(lines.notes.is_empty() && table.notes.is_empty(), "{:?} {:?}", lines.notes, table.notes);
    }

    #[test]
    fn rows_are_split_at_commas_outside_of_quotes() {
        let mut reader = Reader::new();
        let mut row = |text| csv_row(&mut reader, text);
        let cells = |cells: &[&str]| Some(cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
        assert_eq!(row("a,\"b, \"\"c\"\"\",,ä"), cells(&["a", "b, \"c\"", "", "ä"]));
        assert_eq!(row("a,\"open"), cells(&["a", "open"]), "as at the end of a cut file");
        assert_eq!(row(","), cells(&["", ""]));
        assert_eq!((row("one cell"), row("")), (None, None));
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("6.00 KB", Some(6144)), ("165 Bytes", Some(165)), ("2.5 MB", Some(2_621_440)), ("-", None)]
        {
            assert_eq!(size(text), bytes, "{text}");
        }
    }
}
