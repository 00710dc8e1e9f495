//! Recognizes a database that another computer has written: a copied file, a cloned disk, a restored home folder. Two computers with
//! one machine id would use the same sandbox on each target, in the same second, and spoil each other's test data.

use longhaul_measure::platform::wall_clock;
use longhaul_model::Event;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Fault;
use crate::events;

/// Kind of the event that another computer uses the database from then on.
const EVENT_KIND: &str = "other-computer";

/// Query for the seed of the last round of this computer.
pub(crate) const LAST_SEED_QUERY: &str = "SELECT seed FROM round WHERE number >
        coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'rounds_elsewhere'), 0)
    ORDER BY number DESC LIMIT 1";

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
    let machine = match &known {
        Some(tag) if !tag.is_of(host) => {
            // It follows from the ids, so that a computer that returns finds its sandboxes again.
            let machine = digest("machine", &tag.salt, host);
            start_over(&transaction, &machine)?;
            Some(machine)
        }
        _ => None,
    };
    let salt = known.map_or_else(|| random_salt(&transaction), |tag| Ok(tag.salt))?;
    let HostTag { salt, digest } = HostTag::new(salt, host);
    let store = "INSERT OR REPLACE INTO meta (key, value) VALUES ('host', ?1)";
    transaction.execute(store, [format!("{salt}-{digest}")])?;
    transaction.commit()?;
    Ok(machine)
}

/// Returns whether another computer than `host` used the database last. False if one of them is unknown.
pub(crate) fn is_of_another(cx: &Connection, host: Option<&str>) -> Result<bool, Fault> {
    Ok(read_tag(cx)?.zip(host).is_some_and(|(tag, host)| !tag.is_of(host)))
}

/// Replaces the machine id, ends the epoch of each target, and stores an event. The rounds so far are those of another computer, so
/// that their seed is not used any more.
fn start_over(transaction: &Transaction<'_>, machine: &str) -> Result<(), Fault> {
    let now = wall_clock();
    transaction.execute("UPDATE meta SET value = ?1 WHERE key = 'machine_id'", [machine])?;
    let mark_rounds = "INSERT OR REPLACE INTO meta (key, value)
        SELECT 'rounds_elsewhere', CAST(coalesce(max(number), 0) AS TEXT) FROM round";
    transaction.execute(mark_rounds, [])?;
    let end_epochs = "INSERT INTO epoch (target, opened_us, path, protocol, negotiated)
        SELECT target, ?1, path, protocol, negotiated FROM epoch
        WHERE number IN (SELECT max(number) FROM epoch GROUP BY target) ORDER BY number";
    transaction.execute(end_epochs, [now.as_us()])?;
    let event = Event { target: None, kind: EVENT_KIND.to_owned(), detail: Value::Null, at_us: now };
    events::insert_event(transaction, &event).map(drop)
}

fn read_tag(cx: &Connection) -> Result<Option<HostTag>, Fault> {
    let query = "SELECT value FROM meta WHERE key = 'host'";
    let stored: Option<String> = cx.query_row(query, [], |row| row.get(0)).optional()?;
    Ok(stored.as_deref().and_then(HostTag::parse))
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
