//! The journal: events and epochs on one line of time, and what the ratio was before and after.

use axum::extract::{Query, State};
use axum::response::Response;
use jiff::civil::Date;
use longhaul_measure::model::{Event, TargetName};
use longhaul_measure::summary::{
    BeforeAfter, DAYS_AROUND, History, JournalEntry, PairSummary, Question, Weekly, before_after, calendar,
    local_day, one_line,
};
use longhaul_report::charts::days::day_of;
use longhaul_report::charts::{Days, Looks, Table};
use longhaul_report::page::{
    pairs,
    parts::{figure, section, table_of},
};
use longhaul_report::words::change_cells;
use longhaul_service::words;
use longhaul_store::StoredEpoch;
use maud::{Markup, html};

use serde::Deserialize;

use super::{Place, Trouble, framed};
use crate::face::Face;
use crate::shelf::{offset_at, zone};

/// So many are shown, the newest first.
const SHOWN: usize = 300;

/// Around which day; an empty text is none.
#[derive(Debug, Default, Deserialize)]
pub struct Around {
    #[serde(default)]
    at: String,
}

/// The page.
pub async fn journal(State(face): State<Face>, Query(wanted): Query<Around>) -> Response {
    framed(face, Place::Journal, move |book| {
        let at = match wanted.at.as_str() {
            "" => None,
            text => Some(text.parse::<Date>().map_err(|_| Trouble::Question(format!("`{text}` is no day: write it as 2026-11-12.")))?),
        };
        let newest = book.newest()?;
        let (history, weekly) = (book.history()?, book.weekly(newest)?);
        let (events, epochs) = (book.reader.events(None)?, book.reader.epochs()?);
        let mut entries: Vec<Entry> = events.into_iter().map(|stored| Entry::Event(stored.event)).collect();
        entries.extend(epochs.into_iter().map(Entry::Epoch));
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.at_us()));
        let looks = Looks::of(&weekly.targets);
        Ok(html! {
            h1 { "Journal" }
            p { "What may have changed numbers: of the machine, of the network, of a target. An epoch is a target's life under one \
                 protocol, set of options and path; epochs are never pooled." }
            (section("line", "On one line of time", &lines(&weekly, &history)))
            @if let Some(date) = at { (section("around", &format!("Before and after {date}"), &around(&history, &weekly, date))) }
            (section("events", "All of it", &list(&entries, &looks)))
        })
    })
    .await
}

/// Something that happened.
enum Entry {
    Event(Event),
    Epoch(StoredEpoch),
}

impl Entry {
    fn at_us(&self) -> i64 {
        match self {
            Self::Event(event) => event.at_us,
            Self::Epoch(epoch) => epoch.opened_us,
        }
    }

    fn kind(&self) -> &str {
        match self {
            Self::Event(event) => &event.kind,
            Self::Epoch(_) => "epoch",
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Event(event) => one_line(&event.detail),
            Self::Epoch(epoch) => format!(
                "number {}, {}",
                epoch.number,
                epoch.protocol.as_ref().map_or("protocol not known".to_owned(), ToString::to_string)
            ),
        }
    }

    fn target(&self) -> Option<&TargetName> {
        match self {
            Self::Event(event) => event.target.as_ref(),
            Self::Epoch(epoch) => Some(&epoch.target),
        }
    }
}

/// The ratio of each pair day by day, with what happened as ticks.
fn lines(weekly: &Weekly, history: &History) -> Markup {
    let ticks: Vec<JournalEntry> = history.events.iter().map(entry).collect();
    let days: Vec<Days> = weekly.pairs.iter().filter_map(|pair| pairs::days(pair, weekly, &ticks)).collect();
    let scale = Days::shared_scale(&days);
    html! {
        @if days.is_empty() { p { "No pair has a ratio yet." } }
        div class="many" { @for days in &days { (figure(&days.draw(scale), &days.notes())) } }
    }
}

/// An event at its local time.
fn entry(event: &Event) -> JournalEntry {
    JournalEntry {
        at: words::time(event.at_us),
        target: event.target.clone(),
        kind: event.kind.clone(),
        detail: one_line(&event.detail),
    }
}

/// Every task of every pair around a day, as `longhaul compare --at` has it.
fn around(history: &History, weekly: &Weekly, date: Date) -> Markup {
    let question = Question { week: weekly.week, scale: weekly.scale, zone: zone() };
    let day = day_of(&date.to_string()).unwrap_or_default();
    let judged = weekly.pairs.iter().filter_map(|pair| {
        let rows = before_after(history, &question, (&pair.a, &pair.b), day)?;
        Some((pair, table(pair, &rows)))
    });
    html! {
        p class="muted" { "At most " (DAYS_AROUND) " days on each side; the day itself belongs to neither. The ratio is tested at a chance of 1 % \
             of a false alarm. Levels are a description: they drift by themselves, and what changes both shares alike shows in \
             them only." }
        @for (pair, table) in judged {
            h3 { (pair.a) " and " (pair.b) }
            (table_of(&format!("{} and {} before and after {date}", pair.a, pair.b), &table))
        }
    }
}

fn table(pair: &PairSummary, rows: &[BeforeAfter]) -> Table {
    let ratio = format!("{} in times of {}", pair.b, pair.a);
    let levels = [&pair.a, &pair.b].map(|name| format!("{name}, before → after"));
    let mut table = Table::new(["task", &ratio, "", "days", &levels[0], &levels[1]]);
    table.rows.extend(rows.iter().map(|row| change_cells(row).into()));
    table
}

fn list(entries: &[Entry], looks: &Looks) -> Markup {
    html! {
        @if entries.is_empty() { p { "None was recorded." } }
        @else {
            p class="muted" { (entries.len().min(SHOWN)) " of " (entries.len()) ", the newest first." }
            div class="scroll" role="region" aria-label="Events and epochs" tabindex="0" {
                table {
                    thead { tr { @for head in ["when", "target", "what", "particulars", "the ratio"] { th scope="col" { (head) } } } }
                    tbody { @for entry in entries.iter().take(SHOWN) {
                        tr {
                            th scope="row" { (words::time(entry.at_us())) }
                            td { @match entry.target() { Some(target) => { (looks.key(target)) (target) } None => { "machine" } } }
                            td { (entry.kind()) }
                            td { (entry.detail()) }
                            td { a href={ "/journal?at=" (date_of(entry)) "#around" } { "before and after" } }
                        }
                    } }
                }
            }
        }
    }
}

/// The local day on which something happened.
fn date_of(entry: &Entry) -> Date {
    calendar(local_day(entry.at_us(), offset_at(entry.at_us())))
}
