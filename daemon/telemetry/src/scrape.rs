//! What Prometheus reads: totals since the day on which this process was first asked, kept up to date as it asks.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use longhaul_store::{Reader, Signal};

use crate::item::Item;
use crate::metrics::Temporality;
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
    /// The last round and the last five minutes that are in them.
    last: [(Signal, i64); 2],
    /// The begin of the day that they begin with.
    from_us: Option<i64>,
}

impl Scrape {
    /// Of this database.
    pub fn of(database: PathBuf) -> Self {
        let last = [(Signal::Metrics, 0), (Signal::Samples, 0)];
        let kept = Kept { totals: Totals::over(Period::All), last, from_us: None };
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
        kept.catch_up(&reader, from_us)?;
        Ok(openmetrics::text(&kept.totals, now))
    }
}

impl Kept {
    /// Adds what is new since the last time.
    fn catch_up(&mut self, reader: &Reader, from_us: i64) -> longhaul_store::Result<()> {
        for (signal, last) in &mut self.last {
            for number in reader.items_between(*signal, from_us, i64::MAX)? {
                let is_new = number > *last;
                let item = is_new.then(|| Item::read(reader, *signal, number)).transpose()?.flatten();
                if let Some(item) = item {
                    item.points(Temporality::Cumulative, &mut self.totals);
                    *last = number;
                }
            }
        }
        Ok(())
    }
}
