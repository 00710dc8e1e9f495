//! What Prometheus reads: totals since the day on which this process was first asked, kept up to date as it asks.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use longhaul_store::Reader;

use crate::metrics::{self, Temporality};
use crate::now::Now;
use crate::openmetrics;
use crate::values::{Period, Totals};

/// A UTC day, in microseconds.
const DAY_US: i64 = 86_400_000_000;

/// The totals, and how far they have come. Nothing is read before somebody asks.
pub struct Scrape {
    database: PathBuf,
    kept: Mutex<Kept>,
}

struct Kept {
    totals: Totals,
    /// The last round that is in them.
    last: i64,
    /// The begin of the day that they begin with.
    from_us: Option<i64>,
}

impl Scrape {
    /// Of this database.
    pub fn of(database: PathBuf) -> Self {
        let kept = Kept { totals: Totals::over(Period::All), last: 0, from_us: None };
        Self { database, kept: Mutex::new(kept) }
    }

    /// The text as of now.
    ///
    /// # Errors
    ///
    /// Those of reading the database.
    pub fn text(&self, now: &Now) -> longhaul_store::Result<String> {
        let reader = Reader::open(&self.database)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let from_us = *kept.from_us.get_or_insert(now.at_us.div_euclid(DAY_US) * DAY_US);
        for number in reader.made_between(from_us, i64::MAX)? {
            let is_new = number > kept.last;
            if let Some(round) = is_new.then(|| reader.finished_round(number)).transpose()?.flatten() {
                metrics::points(&round, Temporality::Cumulative, &mut kept.totals);
                kept.last = number;
            }
        }
        Ok(openmetrics::text(&kept.totals, now))
    }
}
