//! Recognizes a database that another computer has written: a copied file, a cloned disk, a restored home folder. Two computers with
//! one machine id would use the same sandbox on each target, in the same second, and spoil each other's test data.

use longhaul_measure::platform::wall_clock;
use longhaul_model::Event;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Fault;
use crate::events;
use crate::rows::query_all;

/// Kind of the event that another computer uses the database from then on.
pub const OTHER_COMPUTER_EVENT: &str = "other-computer";

/// Digest of the id of the computer that uses a database, with the random salt of that database: it does not identify the computer.
struct HostTag {
    salt: String,
    digest: String,
}

impl HostTag {
    fn new(salt: String, host: &str) -> Self {
        Self { digest: digest("host", &salt, host), salt }
    }

    fn parse(text: &str) -> Option<Self> {
        let (salt, digest) = text.split_once('-')?;
        Some(Self { salt: salt.to_owned(), digest: digest.to_owned() })
    }

    fn is_of(&self, host: &str) -> bool {
        self.digest == digest("host", &self.salt, host)
    }

    /// Returns the key in the table `meta` under which the machine id of this computer stays known while another one uses the database.
    fn machine_id_key(&self) -> String {
        format!("machine_id:{}", self.digest)
    }
}

/// Stores which computer uses the database, by its id `host`; `None` if the id is unknown, which changes nothing. If another computer
/// used it before, this one gets a machine id of its own, which is returned, and the epochs end: the results of two computers are
/// not pooled.
pub(crate) fn claim(connection: &mut Connection, host: Option<&str>) -> Result<Option<String>, Fault> {
    let Some(host) = host else { return Ok(None) };
    if read_tag(connection)?.is_some_and(|tag| tag.is_of(host)) {
        return Ok(None);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // It is read again under the write lock, because another process may have stored it in the meantime.
    let known = read_tag(&transaction)?;
    let salt = known.as_ref().map_or_else(|| random_salt(&transaction), |tag| Ok(tag.salt.clone()))?;
    let own = HostTag::new(salt, host);
    let machine = match &known {
        Some(tag) if tag.digest != own.digest => {
            // A computer that returns finds its sandboxes again. The id of another one follows from its own, so that one that gets a
            // second copy of the same file finds those of the first copy.
            let new = || digest("machine", &own.salt, host);
            let machine = earlier_machine_id(&transaction, &own)?.unwrap_or_else(new);
            start_over(&transaction, tag, &machine)?;
            Some(machine)
        }
        _ => None,
    };
    let store = "INSERT OR REPLACE INTO meta (key, value) VALUES ('host', ?1)";
    transaction.execute(store, [format!("{}-{}", own.salt, own.digest)])?;
    transaction.commit()?;
    Ok(machine)
}

/// Returns the machine id of the computer `host`, also if another one used the database since. `None`: it has none yet.
pub(crate) fn own_machine_id(cx: &Connection, host: Option<&str>) -> Result<Option<String>, Fault> {
    match read_tag(cx)?.zip(host) {
        Some((tag, host)) if !tag.is_of(host) => earlier_machine_id(cx, &HostTag::new(tag.salt, host)),
        _ => meta(cx, "machine_id"),
    }
}

/// Returns the machine ids of the computers other than `host` that used the database.
pub(crate) fn machine_ids_elsewhere(cx: &Connection, host: Option<&str>) -> Result<Vec<String>, Fault> {
    let own = own_machine_id(cx, host)?;
    let query =
        "SELECT DISTINCT value FROM meta WHERE key GLOB 'machine_id*' AND value IS NOT ?1 ORDER BY value";
    query_all(cx, query, [own], |row| Ok(row.get(0)?))
}

/// Returns the number of the last round on another computer; 0 if all rounds are of this one.
pub(crate) fn rounds_elsewhere(cx: &Connection) -> Result<i64, Fault> {
    Ok(meta(cx, "rounds_elsewhere")?.and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Replaces the machine id, ends the epoch of each target, and stores an event. The rounds so far are those of another computer, so
/// that their seed is not used any more. Its id stays known under its tag `before`.
fn start_over(transaction: &Transaction<'_>, before: &HostTag, machine: &str) -> Result<(), Fault> {
    let now = wall_clock();
    let keep_id =
        "INSERT OR REPLACE INTO meta (key, value) SELECT ?1, value FROM meta WHERE key = 'machine_id'";
    transaction.execute(keep_id, [before.machine_id_key()])?;
    transaction.execute("UPDATE meta SET value = ?1 WHERE key = 'machine_id'", [machine])?;
    let mark_rounds = "INSERT OR REPLACE INTO meta (key, value)
        SELECT 'rounds_elsewhere', CAST(coalesce(max(number), 0) AS TEXT) FROM round";
    transaction.execute(mark_rounds, [])?;
    let end_epochs = "INSERT INTO epoch (target, opened_us, path, protocol, negotiated)
        SELECT target, ?1, path, protocol, negotiated FROM epoch
        WHERE number IN (SELECT max(number) FROM epoch GROUP BY target) ORDER BY number";
    transaction.execute(end_epochs, [now.as_us()])?;
    let kind = OTHER_COMPUTER_EVENT.to_owned();
    let event = Event { target: None, kind, detail: Value::Null, at_us: now };
    events::insert_event(transaction, &event).map(drop)
}

fn read_tag(cx: &Connection) -> Result<Option<HostTag>, Fault> {
    Ok(meta(cx, "host")?.as_deref().and_then(HostTag::parse))
}

/// Returns the machine id that a computer had before another one used the database.
fn earlier_machine_id(cx: &Connection, computer: &HostTag) -> Result<Option<String>, Fault> {
    meta(cx, &computer.machine_id_key())
}

/// Returns a value of the table `meta`; `None` if it is not stored.
fn meta(cx: &Connection, key: &str) -> Result<Option<String>, Fault> {
    Ok(cx.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()?)
}

fn random_salt(cx: &Connection) -> Result<String, Fault> {
    Ok(cx.query_row("SELECT lower(hex(randomblob(16)))", [], |row| row.get(0))?)
}

/// Returns 16 hexadecimal digits that follow from a salt and the id of a computer. The id cannot be computed from them.
fn digest(purpose: &str, salt: &str, host: &str) -> String {
    let digest = Sha256::digest(format!("longhaul {purpose}: {salt} {host}"));
    let start = digest.iter().take(8).fold(0_u64, |start, byte| start << 8 | u64::from(*byte));
    format!("{start:016x}")
}
