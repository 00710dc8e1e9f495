//! Integrity: what was read back and compared with what was written, and what differed.

use jiff::tz::TimeZone;
use longhaul_analysis::checks::IntegrityLine;
use longhaul_model::{
    DamagePattern, DataAge, MismatchReread, OtherReread, StoredMismatch, Timestamp, VerifiedData,
};
use serde::Deserialize;
use serde_json::Value;

use crate::document::{Document, Fact};
use crate::screens::{NO_VALUE, or_no_value};
use crate::table::Table;
use crate::text::{Text, Tone};
use crate::units::count;
use crate::{time, units};

/// Seconds of a day.
const DAY_SECONDS: f64 = 86_400.0;

/// Returns what was verified on each target, and all wrong ranges.
pub fn integrity(lines: &[IntegrityLine], zone: &TimeZone) -> Document {
    let mut document = Document::titled("Data integrity");
    if lines.is_empty() {
        document.paragraph(
            Text::from("Nothing is counted yet: longhaul compares what it reads in each round with what it wrote. To read \
                the test data back now: ")
            .code("longhaul integrity --check")
            .plain("."),
        );
        return document;
    }
    document.list(lines.iter().map(sentence)).table(verified(lines)).table(ages(lines));
    let since = lines.iter().filter_map(|line| line.first_us).min();
    document.note(note(since, zone));
    let wrong: Vec<&StoredMismatch> = lines.iter().flat_map(|line| &line.wrong_ranges).collect();
    if !wrong.is_empty() {
        document.section("wrong-ranges", "Wrong ranges");
        wrong.iter().for_each(|mismatch| {
            document.subheading(place(mismatch)).facts(facts(mismatch, zone));
        });
    }
    document
}

/// Returns what one check read back from all targets, in one sentence; `None` if it read nothing.
pub fn read_back_now(verified: &[VerifiedData], mismatches: usize) -> Option<String> {
    let total = |count: fn(&VerifiedData) -> u64| verified.iter().map(count).sum::<u64>();
    let (files, bytes) = (total(|part| part.files), total(|part| part.bytes));
    let wrong = if mismatches == 0 { "0 wrong".to_owned() } else { count(mismatches, "wrong range") };
    (bytes > 0 || mismatches > 0).then(|| {
        format!("{}, {} read back just now, {wrong}.", count(files, "file"), units::bytes(bytes as f64))
    })
}

/// Returns the result of a target in one sentence.
fn sentence(line: &IntegrityLine) -> Text {
    let verified = units::bytes(line.bytes_verified as f64);
    let tone = if line.mismatches == 0 { Tone::Good } else { Tone::Bad };
    let wrong =
        if line.mismatches == 0 { "0 wrong".to_owned() } else { count(line.mismatches, "wrong range") };
    let name = Text::new().target(&line.target);
    let name =
        name.plain(line.protocol.as_ref().map_or_else(String::new, |protocol| format!(" ({protocol})")));
    let text = name.plain(format!(": {verified} read back{}, ", period(line))).toned(wrong, tone);
    match line.excluded_rate_bytes {
        Some(bytes) => {
            let bytes = units::bytes(bytes);
            text.plain(format!("; with 95 % confidence there is less than 1 wrong range in {bytes}."))
        }
        None => text
            .plain("; none of it is known to have come from the server, so the NAS itself was not tested."),
    }
}

/// Returns the time over which the data was read, for example ` over 9 weeks`; nothing for less than a day.
fn period(line: &IntegrityLine) -> String {
    let seconds = line.first_us.zip(line.last_us).map_or(0.0, |(first, last)| last.seconds_since(first));
    match (seconds / DAY_SECONDS).floor() as usize {
        0 => String::new(),
        days @ 1..28 => format!(" over {}", count(days, "day")),
        days => format!(" over {}", count(days / 7, "week")),
    }
}

fn verified(lines: &[IntegrityLine]) -> Table {
    let mut table = Table::new("Verified data").words(["target", "protocol"]);
    table = table.figures(["read back", "over the wire", "whole files", "wrong ranges", "less than 1 in"]);
    for line in lines {
        table.row([
            line.target.to_string(),
            or_no_value(line.protocol.clone()),
            units::bytes(line.bytes_verified as f64),
            units::bytes(line.bytes_over_the_wire as f64),
            line.files_verified.to_string(),
            line.mismatches.to_string(),
            or_no_value(line.excluded_rate_bytes.map(units::bytes)),
        ]);
    }
    table
}

fn ages(lines: &[IntegrityLine]) -> Table {
    let mut table = Table::new("Verified data by its age").words(["target", "protocol"]);
    table = table.figures(["under a day", "1 to 6 days", "7 to 29 days", "30 days or more", "age not known"]);
    for line in lines {
        let bytes = |age: DataAge| line.by_age.iter().find(|part| part.age == age).map(|part| part.bytes);
        let ages = DataAge::ALL.map(|age| or_no_value(bytes(age).map(|bytes| units::bytes(bytes as f64))));
        table.row([line.target.to_string(), or_no_value(line.protocol.clone())].into_iter().chain(ages));
    }
    table
}

fn note(since: Option<Timestamp>, zone: &TimeZone) -> String {
    let since =
        since.map_or_else(String::new, |since| format!(" Counted since {}.", time::timestamp(since, zone)));
    format!(
        "Read back: bytes that longhaul compared with what it wrote. Over the wire: those known to have come from the server \
         and not from this computer's cache; only they say something about the NAS.{since}"
    )
}

fn place(mismatch: &StoredMismatch) -> String {
    format!("{}: {}", mismatch.target, mismatch.file)
}

/// Returns the details of an event about a wrong range, as far as they are known: its place, its pattern, and other readings.
pub fn mismatch_details(detail: &Value) -> String {
    let number = |key: &str| detail[key].as_u64();
    let again = |result: MismatchReread| format!("read again: {}", reread(result));
    let parts = [
        detail["file"].as_str().map(str::to_owned),
        number("offset").zip(number("length")).map(|(offset, length)| range(offset, length)),
        DamagePattern::deserialize(&detail["pattern"]).ok().as_ref().map(pattern),
        MismatchReread::deserialize(&detail["reread"]).ok().map(again),
    ];
    let others = Vec::<OtherReread>::deserialize(&detail["elsewhere"]).unwrap_or_default();
    let others = others.iter().map(elsewhere);
    let others = others.map(|fact| format!("{}: {}", fact.name, fact.value.content()));
    parts.into_iter().flatten().chain(others).collect::<Vec<_>>().join("; ")
}

fn range(offset: u64, length: u64) -> String {
    format!("{} from offset {offset}", count(length, "byte"))
}

fn facts(mismatch: &StoredMismatch, zone: &TimeZone) -> Vec<Fact> {
    let time_of = |at: Option<Timestamp>| or_no_value(at.map(|at| time::timestamp(at, zone)));
    let mut facts = vec![
        Fact::new("range", range(mismatch.offset, mismatch.length)),
        Fact::new("pattern", pattern(&mismatch.pattern)),
        Fact::new("read again", reread(mismatch.reread)),
    ];
    facts.extend(mismatch.elsewhere.iter().map(elsewhere));
    facts.extend([
        Fact::new(
            "first found",
            format!("{} in run {}{}", time_of(Some(mismatch.found_us)), mismatch.run, phase(mismatch)),
        ),
        Fact::new("written", time_of(mismatch.written_us)),
        Fact::new("last found correct", time_of(mismatch.last_good_us)),
        Fact::new("protocol", or_no_value(mismatch.protocol.clone())),
    ]);
    if mismatch.times_found > 1 {
        let again =
            format!("in {} runs, last {}", mismatch.times_found, time_of(Some(mismatch.last_found_us)));
        facts.push(Fact::new("found", again));
    }
    facts
}

/// Returns what another share read in the same place, and what that says about where the damage is.
fn elsewhere(other: &OtherReread) -> Fact {
    let over = other.protocol.as_ref().map_or_else(String::new, |protocol| format!(" ({protocol})"));
    let meaning = match other.result {
        MismatchReread::Correct => "correct, so the NAS has the right bytes",
        MismatchReread::SameDamage => "the same wrong bytes, so they are on the NAS",
        other => reread(other),
    };
    Fact::new(format!("read again through {}{over}", other.target), meaning)
}

fn phase(mismatch: &StoredMismatch) -> String {
    let cache = mismatch.cache.filter(|cache| *cache != longhaul_model::CacheState::None);
    match (&mismatch.phase, cache) {
        (Some(phase), Some(cache)) => format!(", phase {phase} ({})", cache.name()),
        (Some(phase), None) => format!(", phase {phase}"),
        (None, _) => String::new(),
    }
}

fn pattern(pattern: &DamagePattern) -> String {
    match pattern {
        DamagePattern::Zeros => "zeros".to_owned(),
        DamagePattern::Shifted { bytes } => {
            format!("bytes of the same file that belong {} bytes {}", bytes.abs(), direction(*bytes))
        }
        DamagePattern::OldVersion => "an earlier version of the file".to_owned(),
        DamagePattern::OtherFile { name } => format!("content of another file: {name}"),
        DamagePattern::BitFlips { bits: 1 } => "1 flipped bit".to_owned(),
        DamagePattern::BitFlips { bits } => format!("{bits} flipped bits"),
        DamagePattern::Truncated => "the file ends too early".to_owned(),
        DamagePattern::TooLong => "bytes after the end of the file".to_owned(),
        DamagePattern::Missing => "the file is missing".to_owned(),
        DamagePattern::Unknown => "no known pattern".to_owned(),
    }
}

fn direction(bytes: i64) -> &'static str {
    if bytes < 0 { "earlier" } else { "later" }
}

fn reread(reread: MismatchReread) -> &'static str {
    match reread {
        MismatchReread::SameDamage => "the same wrong bytes",
        MismatchReread::Correct => "correct",
        MismatchReread::OtherDamage => "other wrong bytes",
        MismatchReread::Failed => NO_VALUE,
    }
}
