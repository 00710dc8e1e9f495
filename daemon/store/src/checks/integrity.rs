//! Stores what was verified and what did not match, and reads both.

use longhaul_model::{
    CacheState, DataAge, Event, Mismatch, MismatchReread, Run, StoredMismatch, Target, Timestamp,
    VerifiedTotal,
};
use rusqlite::{Connection, Row, named_params};
use serde_json::json;

use crate::error::{Fault, Result};
use crate::insert::InsertedRun;
use crate::reader::Reader;
use crate::rows::{TableRow, query_all};
use crate::wire::{EnumName, parse_enum_name};
use crate::writer::Writer;
use crate::{events, insert};
use longhaul_model::stored::StoredRun;

impl Writer {
    /// Stores a run with its phases and the mismatches that it found in one transaction, and returns it with its number.
    ///
    /// The stored path and role of the target are updated. A new epoch starts if the path, protocol or
    /// negotiated options differ from the target's latest epoch; values that the run does not know do not count
    /// as different. A mismatch with the same place and content as one that is stored for the run's protocol is counted there. A
    /// new mismatch is also an event, and so is one that is found in a new epoch.
    ///
    /// # Errors
    ///
    /// As [`Writer::begin_round`]; [`crate::Error::NoSuchRound`] if the round of the run does not exist,
    /// [`crate::Error::Unstorable`] if the run contains NaN or infinity or is not a run on `target`.
    pub fn add_run(&self, target: &Target, run: &Run, found: &[Mismatch]) -> Result<StoredRun> {
        let (target, run, found) = (target.clone(), run.clone(), found.to_vec());
        self.run_on_thread(move |store| {
            let inserted = store.in_transaction("store a run", |cx| {
                let inserted = insert::insert_run(cx, &target, &run)?;
                let found = found.iter().map(|mismatch| add_mismatch(cx, &run, &inserted, mismatch));
                found.collect::<Result<(), Fault>>()?;
                Ok(inserted)
            })?;
            Ok(StoredRun { number: inserted.number, trace_id: inserted.trace_id, epoch: inserted.epoch, run })
        })
    }
}

/// Stores a mismatch, or counts it if it is stored for the protocol of the run already. Stores an event for the first find in an
/// epoch: the target's newest epoch decides about a recommendation.
fn add_mismatch(
    cx: &Connection,
    run: &Run,
    inserted: &InsertedRun,
    mismatch: &Mismatch,
) -> Result<(), Fault> {
    let known = known_mismatch(cx, inserted.number, mismatch)?;
    match &known {
        Some(known) => count_again(cx, known.number, inserted.epoch, mismatch)?,
        None => insert_mismatch(cx, inserted.number, mismatch)?,
    }
    if known.is_some_and(|known| known.epoch == inserted.epoch) {
        return Ok(());
    }
    let event = Event {
        target: Some(run.target.clone()),
        kind: Mismatch::EVENT.to_owned(),
        detail: json!({
            "run": inserted.number, "file": mismatch.file, "offset": mismatch.offset, "length": mismatch.length,
            "pattern": mismatch.pattern, "reread": mismatch.reread, "elsewhere": mismatch.elsewhere,
            "protocol": run.protocol.as_ref().map(ToString::to_string),
        }),
        at_us: mismatch.found_us,
    };
    events::insert_event(cx, &event).map(drop)
}

/// A mismatch that is stored already.
struct KnownMismatch {
    number: i64,
    /// Epoch in which it was found last.
    epoch: i64,
}

/// Returns the stored mismatch with the same place and content, on the target and over the protocol of a run.
fn known_mismatch(cx: &Connection, run: i64, mismatch: &Mismatch) -> Result<Option<KnownMismatch>, Fault> {
    let query = "SELECT mismatch.number, mismatch.epoch FROM run JOIN mismatch ON mismatch.target = run.target
            AND coalesce(mismatch.protocol, '') = coalesce(run.protocol, '')
        WHERE run.number = :run AND mismatch.file = :file AND mismatch.offset = :offset AND mismatch.length = :length
            AND mismatch.fingerprint = :fingerprint";
    let values = named_params! {
        ":run": run, ":file": mismatch.file, ":offset": mismatch.offset.cast_signed(),
        ":length": mismatch.length.cast_signed(), ":fingerprint": mismatch.fingerprint.cast_signed(),
    };
    let known =
        query_all(cx, query, values, |row| Ok(KnownMismatch { number: row.get(0)?, epoch: row.get(1)? }));
    Ok(known?.pop())
}

/// Counts a mismatch that is stored already and was found again in an epoch.
fn count_again(cx: &Connection, number: i64, epoch: i64, mismatch: &Mismatch) -> Result<(), Fault> {
    let update =
        "UPDATE mismatch SET times_found = times_found + 1, last_found_us = max(last_found_us, :found_us),
            epoch = :epoch, elsewhere = coalesce(:elsewhere, elsewhere)
        WHERE number = :number";
    cx.prepare_cached(update)?.execute(named_params! {
        ":found_us": mismatch.found_us.as_us(), ":epoch": epoch, ":elsewhere": elsewhere(mismatch),
        ":number": number,
    })?;
    Ok(())
}

const INSERT_MISMATCH: &str = "INSERT INTO mismatch (target, protocol, run, epoch, file, offset, length, pattern, found_us,
        last_found_us, times_found, written_us, last_good_us, phase, cache, reread, elsewhere, fingerprint, expected, found)
    SELECT target, protocol, number, epoch, :file, :offset, :length, :pattern, :found_us, :found_us, 1, :written_us,
        :last_good_us, :phase, :cache, :reread, :elsewhere, :fingerprint, :expected, :found
    FROM run WHERE number = :run";

fn insert_mismatch(cx: &Connection, run: i64, mismatch: &Mismatch) -> Result<(), Fault> {
    cx.prepare_cached(INSERT_MISMATCH)?.execute(named_params! {
        ":run": run, ":file": mismatch.file, ":offset": mismatch.offset.cast_signed(),
        ":length": mismatch.length.cast_signed(), ":pattern": EnumName(Some(&mismatch.pattern)),
        ":found_us": mismatch.found_us.as_us(), ":written_us": mismatch.written_us.map(Timestamp::as_us),
        ":last_good_us": mismatch.last_good_us.map(Timestamp::as_us), ":phase": mismatch.phase,
        ":cache": mismatch.cache.map(|cache| cache.name()), ":reread": mismatch.reread.name(), ":elsewhere": elsewhere(mismatch),
        ":fingerprint": mismatch.fingerprint.cast_signed(), ":expected": mismatch.expected, ":found": mismatch.found,
    })?;
    Ok(())
}

/// Returns the column of the other readings: JSON; `None`: there were none.
fn elsewhere(mismatch: &Mismatch) -> Option<String> {
    let elsewhere = &mismatch.elsewhere;
    (!elsewhere.is_empty()).then(|| json!(elsewhere).to_string())
}

impl Reader {
    /// Returns the sums of the verified data by target, protocol and age, in the order of targets and ages.
    pub fn verified_totals(&self) -> Result<Vec<VerifiedTotal>> {
        let query = "SELECT target.name AS target, verified_total.protocol, age, bytes, files, wire_bytes, first_us, last_us
            FROM verified_total JOIN target ON target.number = verified_total.target";
        self.in_snapshot("read the verified data", |cx| {
            let mut totals = query_all(cx, query, [], verified_total)?;
            let key = |total: &VerifiedTotal| total.protocol.as_ref().map(ToString::to_string);
            totals.sort_by(|a, b| (&a.target, key(a), a.age).cmp(&(&b.target, key(b), b.age)));
            Ok(totals)
        })
    }

    /// Returns the mismatches that were found at `since` or later, oldest first; one that was found over several protocols, once for
    /// each. `None`: all of them.
    pub fn mismatches(&self, since: Option<Timestamp>) -> Result<Vec<StoredMismatch>> {
        let query = "SELECT mismatch.*, target.name AS target_name FROM mismatch
            JOIN target ON target.number = mismatch.target
            WHERE mismatch.last_found_us >= ?1 ORDER BY mismatch.number";
        let since = since.unwrap_or(Timestamp::MIN).as_us();
        self.in_snapshot("read the mismatches", |cx| query_all(cx, query, [since], stored_mismatch))
    }
}

fn verified_total(row: &Row<'_>) -> Result<VerifiedTotal, Fault> {
    let row = TableRow::new(row, "verified_total", 0);
    Ok(VerifiedTotal {
        target: row.parsed("target", |name| name.parse().ok())?,
        protocol: row.optional_json("protocol")?,
        age: row.parsed("age", DataAge::from_name)?,
        bytes: row.unsigned("bytes")?,
        files: row.unsigned("files")?,
        wire_bytes: row.unsigned("wire_bytes")?,
        first: row.time("first_us")?,
        last: row.time("last_us")?,
    })
}

fn stored_mismatch(row: &Row<'_>) -> Result<StoredMismatch, Fault> {
    let row = TableRow::numbered(row, "mismatch")?;
    let protocol: Option<longhaul_model::Protocol> = row.optional_json("protocol")?;
    Ok(StoredMismatch {
        number: row.number,
        target: row.parsed("target_name", |name| name.parse().ok())?,
        protocol: protocol.map(|protocol| protocol.to_string()),
        run: row.get("run")?,
        file: row.get("file")?,
        offset: row.unsigned("offset")?,
        length: row.unsigned("length")?,
        pattern: row.parsed("pattern", parse_enum_name)?,
        found_us: row.time("found_us")?,
        last_found_us: row.time("last_found_us")?,
        times_found: row.unsigned("times_found")?,
        written_us: row.optional_time("written_us")?,
        last_good_us: row.optional_time("last_good_us")?,
        phase: row.get("phase")?,
        cache: row.optional_parsed("cache", CacheState::from_name)?,
        reread: row.parsed("reread", MismatchReread::from_name)?,
        elsewhere: row.optional_json("elsewhere")?.unwrap_or_default(),
    })
}
