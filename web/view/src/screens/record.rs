//! Recordings: the list of them, and everything that is kept in one.

use longhaul_recording::{Account, FileKind, Overview, Source, TimesOverview, TreeOverview};

use super::{NO_VALUE, or_no_value, words};
use crate::document::{Document, Fact};
use crate::table::Table;
use crate::units;

/// A stored recording, for the list.
#[derive(Debug, Clone)]
pub struct ListedRecording {
    /// Name of the recording.
    pub name: String,
    /// True if rounds replay it.
    pub is_replayed: bool,
    /// Size of the file in bytes; `None` if it is not known.
    pub bytes: Option<u64>,
    /// Everything that is kept in it, or the reason why it cannot be read.
    pub overview: Result<Overview, String>,
}

/// Returns the list of recordings.
pub fn list(recordings: &[ListedRecording]) -> Document {
    let mut document = Document::titled("Recordings");
    if recordings.is_empty() {
        document.paragraph("No recordings yet. To record a program: `longhaul record -- PROGRAM ARGUMENTS`. To replay an example: `longhaul record use \
             example:git`.");
        return document;
    }
    let mut table = Table::new("Recordings")
        .words(["name", "source", "recorded on"])
        .figures(["operations", "took", "size"])
        .words(["replayed"]);
    for one in recordings {
        table.row(row(one));
    }
    document.table(table);
    let damaged = recordings.iter().filter_map(|one| Some((&one.name, one.overview.as_ref().err()?)));
    document.list(damaged.map(|(name, error)| format!("{name}: {error}")));
    if !recordings.iter().any(|one| one.is_replayed) {
        document.note("Rounds replay none of them. To choose one: `longhaul record use NAME`, or an example such as `longhaul record use example:git`.");
    }
    document
}

fn row(one: &ListedRecording) -> [String; 7] {
    let overview = one.overview.as_ref().ok();
    let of = |text: fn(&Overview) -> String| overview.map_or_else(|| NO_VALUE.to_owned(), text);
    [
        one.name.clone(),
        of(|overview| source(overview.source).to_owned()),
        of(recorded_on),
        of(|overview| units::whole(overview.account.used)),
        of(|overview| units::seconds_or_none(overview.times.as_ref().map(|times| times.total_seconds))),
        or_no_value(one.bytes.map(|bytes| units::bytes(bytes as f64))),
        if one.is_replayed { "in each round".to_owned() } else { "no".to_owned() },
    ]
}

/// Returns everything that is kept in a recording.
pub fn show(name: &str, overview: &Overview) -> Document {
    let mut document = Document::titled(format!("Recording {name}"));
    document.paragraph(account(&overview.account));
    document.facts(facts(overview));
    document.section("folder", "Folder before the first operation");
    document.facts(tree_facts(&overview.tree)).table(kinds(&overview.tree));
    document.section("operations", "Operations").table(operations(overview));
    if let Some(times) = &overview.times {
        document.section("times", "Times on the mount where it was recorded").table(operation_times(times));
        document.list(overhead(overview.source));
    }
    document.note(
        "For the replay, the file also has the order of the operations, which of them belong to one file, folder and thread, and the exact \
         place and length of each read and write: `longhaul record show NAME --all` prints every one. Names and contents were never stored: \
         names were replaced by numbers derived with a key that was then discarded. To remove the recording: `longhaul record delete \
         NAME`.",
    );
    document
}

/// Returns what a user needs to know after recording.
pub fn recorded(name: &str, overview: &Overview) -> Document {
    let mut document = Document::new();
    let took = overview.times.as_ref().map_or(String::new(), |times| {
        format!(
            " in {}, of which {} waiting for the share",
            units::seconds(times.total_seconds),
            units::seconds(times.waiting_seconds)
        )
    });
    document.paragraph(format!("Recorded as {name}: {}{took}.", counted(overview.account.used, "operation")));
    document.paragraph(account(&overview.account));
    document.list(overhead(overview.source));
    document.list([
        format!("To see what is kept: `longhaul record show {name}`"),
        format!("To replay it in each round: `longhaul record use {name}`"),
    ]);
    document
}

/// Returns in one sentence what was used of a trace, and what was not.
pub fn account(account: &Account) -> String {
    let understood =
        account.understood().map_or("no operation in the folder was found".to_owned(), |share| {
            // Rounded down, so that 100 % means all of them.
            format!("{} % of operations understood", units::decimal((share * 1000.0).floor() / 10.0, 1))
        });
    let unknown = account
        .unknown_calls
        .iter()
        .map(|call| format!("{} of unknown kind `{}`", units::whole(call.count), call.name));
    let known = [
        (account.unknown_handles, "on files whose opening or path the trace does not show"),
        (account.over_limit, "over the limit of a recording"),
        (account.time_went_back, "out of order in time"),
        (account.added_openings, "openings added, because files were open before"),
        (account.outside, "outside of the folder, left out"),
    ];
    let known = known.into_iter().filter(|(number, _)| *number > 0);
    let damaged = Some(account.damaged).filter(|lines| *lines > 0);
    let damaged = damaged.map(|lines| format!("{} not understood", counted(lines, "line")));
    let known = known.map(|(number, what)| format!("{} {what}", units::whole(number)));
    let parts = unknown.chain(damaged).chain(known);
    let parts: Vec<String> = [understood].into_iter().chain(parts).collect();
    format!("{}.", words::capitalized(&parts.join("; ")))
}

fn facts(overview: &Overview) -> Vec<Fact> {
    let times = overview.times.as_ref();
    vec![
        Fact::new("recorded with", source(overview.source)),
        Fact::new("recorded on", recorded_on(overview)),
        Fact::new("took", units::seconds_or_none(times.map(|times| times.total_seconds))),
        Fact::new("time waiting", units::seconds_or_none(times.map(|times| times.waiting_seconds))),
        Fact::new("threads", units::whole(overview.threads.into())),
        Fact::new("paths relative to an open folder", from_open_folders(overview)),
        Fact::new("pauses", pauses(overview)),
    ]
}

fn from_open_folders(overview: &Overview) -> String {
    overview.from_open_folders.map_or("none, or the trace does not say".to_owned(), |operations| {
        format!("in {}", counted(operations, "operation"))
    })
}

fn pauses(overview: &Overview) -> String {
    let all = units::seconds(overview.pause_seconds);
    match overview.long_pauses {
        0 => format!("{all} in total"),
        long => {
            format!("{all} in total; {} of over 2 s are shortened to 2 s in a replay", units::whole(long))
        }
    }
}

fn tree_facts(tree: &TreeOverview) -> Vec<Fact> {
    vec![
        Fact::new(
            "files",
            format!("{}, about {}", units::whole(tree.files), units::bytes(tree.bytes as f64)),
        ),
        Fact::new("folders", units::whole(tree.folders)),
        Fact::new("symbolic links", units::whole(tree.links)),
        Fact::new("names that did not exist", units::whole(tree.absent)),
        Fact::new("depth", counted(tree.depth.into(), "level")),
        Fact::new("largest folder", counted(tree.largest_folder, "name")),
    ]
}

fn kinds(tree: &TreeOverview) -> Table {
    let mut table = Table::new("Names by kind").words(["kind of file, by its extension"]).figures(["names"]);
    for (kind, names) in &tree.kinds {
        table.row([kind_words(*kind).to_owned(), units::whole(*names)]);
    }
    table
}

fn operations(overview: &Overview) -> Table {
    let mut table = Table::new("Operations").words(["operation"]).figures(["count", "failed", "bytes"]);
    for one in &overview.operations {
        let bytes = Some(one.bytes).filter(|bytes| *bytes > 0).map(|bytes| units::bytes(bytes as f64));
        table.row([
            one.kind.to_owned(),
            units::whole(one.count),
            units::whole(one.failed),
            or_no_value(bytes),
        ]);
    }
    table
}

fn operation_times(times: &TimesOverview) -> Table {
    let mut table = Table::new("Recorded times").words(["operation"]).figures(["count", "median", "p95"]);
    for one in &times.by_operation {
        let name = one.operation.name().to_owned();
        table.row([
            name,
            units::whole(one.count),
            units::seconds_or_none(one.p50_seconds),
            units::seconds_or_none(one.p95_seconds),
        ]);
    }
    table
}

/// Returns how much the recorder made the program slower; `docs/recordings.md` has the measurements.
fn overhead(source: Source) -> Option<&'static str> {
    match source {
        Source::Strace => Some(
            "strace made the program slower: by 5 to 22 % where it mostly waits for the share, up to three times where it makes many short calls. \
             The minimum cost of strace for each call is subtracted from the recorded times; the rest is still included.",
        ),
        Source::PassThrough => Some(
            "The second mount made programs slower: each call took 0.02 to 0.15 ms more, and a path that is looked up is one more request to \
             the share.",
        ),
        _ => None,
    }
}

fn recorded_on(overview: &Overview) -> String {
    overview.recorded_on.as_ref().map_or("not known".to_owned(), ToString::to_string)
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Strace => "strace",
        Source::PassThrough => "a second mount",
        Source::FsUsage => "fs_usage",
        Source::Eslogger => "eslogger",
        Source::SambaAudit => "log of Samba (full_audit)",
        Source::Synology => "transfer log of Synology",
        Source::Qnap => "connection log of QNAP",
    }
}

const fn kind_words(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Other => "other, or none",
        FileKind::Image => "image",
        FileKind::Video => "video",
        FileKind::Audio => "audio",
        FileKind::Document => "document",
        FileKind::Source => "source code",
        FileKind::Archive => "archive or disk image",
        FileKind::Database => "database",
        FileKind::Temporary => "temporary",
    }
}

/// Returns a number with the thing that it counts: `1 line`, `2 lines`.
fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", units::whole(number))
}
