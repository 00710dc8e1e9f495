//! The totals behind the Prometheus endpoint `/metrics`. They start with the UTC day of the first scrape and
//! are updated at every scrape.

use std::path::PathBuf;

use longhaul_model::time::DAY;
use longhaul_store::{Reader, Signal};
use parking_lot::Mutex;

use crate::check_results::CheckResults;
use crate::current_state::CurrentState;
use crate::item::Item;
use crate::metrics::Temporality;
use crate::openmetrics;
use crate::totals::{Period, Totals};
use longhaul_model::Timestamp;

/// Totals that are updated at every scrape. Nothing is read from the database before the first scrape.
pub struct ScrapeTotals {
    database: PathBuf,
    state: Mutex<ScrapeState>,
}

struct ScrapeState {
    totals: Totals,
    /// The last round and the last five-minute step that the totals contain.
    last_items: [(Signal, i64); 2],
    /// Start of the first UTC day in the totals. `None`: no scrape yet.
    from: Option<Timestamp>,
}

impl ScrapeTotals {
    /// Creates empty totals for the database at this path.
    pub fn new(database: PathBuf) -> Self {
        let last = [(Signal::Metrics, 0), (Signal::Samples, 0)];
        let state = ScrapeState { totals: Totals::new(Period::All), last_items: last, from: None };
        Self { database, state: Mutex::new(state) }
    }

    /// Updates the totals and returns them with the current state as OpenMetrics text.
    pub fn text(&self, now: &CurrentState) -> longhaul_store::Result<String> {
        let reader = Reader::open(&self.database)?;
        let mut state = self.state.lock();
        let from = *state.from.get_or_insert(now.at.floor(DAY));
        state.add_new_items(&reader, from)?;
        let checks = CheckResults::read(&reader, now.at)?;
        Ok(openmetrics::text(&state.totals, &CurrentState { checks, ..now.clone() }))
    }
}

impl ScrapeState {
    /// Adds the rounds and samples that are new since the last scrape.
    fn add_new_items(&mut self, reader: &Reader, from: Timestamp) -> longhaul_store::Result<()> {
        for (signal, last) in &mut self.last_items {
            for number in reader.items_between(*signal, from, Timestamp::MAX)? {
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
