//! Shows the user's own results next to the results of other hosts. Hosts differ, so their data is never pooled.

use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::Scale;

use super::words;
use crate::Environment;
use crate::charts::{Forest, ForestGroup, ForestRow, SeriesStyle, ratio_text};
use crate::document::Document;
use crate::exchange::{Exchange, ExchangedComparison, ExchangedPair, exchange};
use crate::table::Table;

/// Warning above the results of several hosts.
const WARNING: &str = "Hosts differ in machine, network, server and disk, and perhaps in the size of the test data. Each line is the \
     result of one host alone; nothing is pooled. A difference between two hosts is not a difference between protocols.";

/// Comparison of two protocols, on every host that has both.
struct ProtocolComparison {
    /// Protocol families, left and right.
    sides: (String, String),
    rows: Vec<HostRow>,
}

/// Result of one task on one host.
struct HostRow {
    /// Task with its cache state.
    task: String,
    /// Number of the host: 0 for the user's own host.
    host_label: usize,
    /// Protocols of both targets, as negotiated on that host.
    protocols: String,
    /// Comparison with the ratio: time on the left divided by time on the right.
    claim: ExchangedComparison,
}

/// The protocols of two targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProtocolPair<'e> {
    a: &'e str,
    b: &'e str,
}

impl<'e> ProtocolPair<'e> {
    fn families(self) -> Self {
        Self { a: family(self.a), b: family(self.b) }
    }

    fn reversed(self) -> Self {
        Self { a: self.b, b: self.a }
    }
}

/// A pair of targets on one host, with their protocols.
#[derive(Clone, Copy)]
struct PairWithProtocols<'e> {
    pair: &'e ExchangedPair,
    protocols: ProtocolPair<'e>,
}

/// Returns the comparison of hosts.
pub fn hosts(own: &WeeklySummary, others: &[Exchange]) -> Document {
    let mut document = Document::new();
    document.warning(WARNING).list(host_lines(own, others));
    let comparisons = protocol_comparisons(own, others);
    if comparisons.is_empty() {
        document.paragraph(NOTHING_IN_COMMON);
    }
    let forests: Vec<Forest> =
        comparisons.iter().enumerate().map(|(place, comparison)| comparison.forest(place, own)).collect();
    let scale = Forest::shared_scale(&forests);
    for (comparison, forest) in comparisons.iter().zip(&forests) {
        document.subheading(comparison.title()).chart(forest.draw(scale)).table(comparison.table());
    }
    document
}

const NOTHING_IN_COMMON: &str = "No two protocols are compared on more than one host.";

/// Returns one line for each host: label, week, scale and environment.
fn host_lines<'e>(own: &'e WeeklySummary, others: &'e [Exchange]) -> impl Iterator<Item = String> + 'e {
    let scale = |scale: Option<Scale>| scale.map_or("no run", Scale::name);
    let here = format!("{}: week {}, {} scale", host_label(0), own.week, scale(own.scale));
    let there = others.iter().enumerate().map(move |(place, other)| {
        format!(
            "{}: week {}, {} scale; {}",
            host_label(place + 1),
            other.week,
            scale(other.scale),
            other.environment.anonymised().summary()
        )
    });
    std::iter::once(here).chain(there)
}

fn host_label(place: usize) -> String {
    match place {
        0 => "here".to_owned(),
        1 => "there".to_owned(),
        more => format!("there ({more})"),
    }
}

/// Returns the comparisons of each pair of the user's own host with the pairs of other hosts that compare the same two
/// protocols.
fn protocol_comparisons(own: &WeeklySummary, others: &[Exchange]) -> Vec<ProtocolComparison> {
    let own = exchange(own, &Environment::default());
    own.pairs.iter().filter_map(|pair| protocol_comparison(&own, pair, others)).collect()
}

fn protocol_comparison(
    own: &Exchange,
    pair: &ExchangedPair,
    others: &[Exchange],
) -> Option<ProtocolComparison> {
    let placed = with_protocols(own, pair)?;
    let theirs: Vec<(usize, PairWithProtocols<'_>, bool)> = others
        .iter()
        .enumerate()
        .flat_map(|(place, other)| other.pairs.iter().map(move |pair| (place + 1, other, pair)))
        .filter_map(|(place, other, pair)| {
            let other = self::with_protocols(other, pair)?;
            Some((place, other, is_swapped(placed.protocols, other.protocols)?))
        })
        .collect();
    let mut lines = vec![];
    for claim in claims(pair) {
        let same = theirs.iter().flat_map(|(place, other, is_swapped)| {
            let found =
                claims(other.pair).filter(|theirs| theirs.key == claim.key && theirs.cache == claim.cache);
            found.map(move |found| {
                host_row(*place, *other, if *is_swapped { swapped(found) } else { found.clone() })
            })
        });
        let same: Vec<HostRow> = same.collect();
        // A task that no other host has is omitted, because there is nothing to compare it with.
        if !same.is_empty() {
            lines.push(host_row(0, placed, claim.clone()));
            lines.extend(same);
        }
    }
    let sides = (family(placed.protocols.b).to_owned(), family(placed.protocols.a).to_owned());
    (!lines.is_empty()).then_some(ProtocolComparison { sides, rows: lines })
}

fn with_protocols<'e>(exchange: &'e Exchange, pair: &'e ExchangedPair) -> Option<PairWithProtocols<'e>> {
    let protocol = |name: &str| {
        exchange
            .targets
            .iter()
            .find(|target| target.name == name)
            .and_then(|target| target.protocol.as_deref())
    };
    Some(PairWithProtocols { pair, protocols: ProtocolPair { a: protocol(&pair.a)?, b: protocol(&pair.b)? } })
}

fn claims(pair: &ExchangedPair) -> impl Iterator<Item = &ExchangedComparison> {
    pair.headline.iter().chain(&pair.tasks)
}

/// Returns the protocol family, for example `SMB` for `SMB 3.1.1`.
fn family(protocol: &str) -> &str {
    protocol.split_whitespace().next().unwrap_or(protocol)
}

/// Returns true if the other host's pair has the two protocols in reverse order; `None` if it compares other protocols.
fn is_swapped(own: ProtocolPair<'_>, other: ProtocolPair<'_>) -> Option<bool> {
    if own == other {
        return Some(false);
    }
    let (own, other) = (own.families(), other.families());
    match (own.a == own.b, own == other, own.reversed() == other) {
        // Both targets use the same family, so the order of the other host's pair is ambiguous.
        (true, _, _) => None,
        (false, true, _) => Some(false),
        (false, false, true) => Some(true),
        (false, false, false) => None,
    }
}

fn swapped(claim: &ExchangedComparison) -> ExchangedComparison {
    ExchangedComparison {
        ratio: claim.ratio.map(longhaul_analysis::summary::Estimate::inverse),
        ..claim.clone()
    }
}

fn host_row(place: usize, of: PairWithProtocols<'_>, claim: ExchangedComparison) -> HostRow {
    HostRow {
        task: words::with_cache_state(&claim.activity, claim.cache),
        host_label: place,
        protocols: format!("{} and {}", of.protocols.a, of.protocols.b),
        claim,
    }
}

impl ProtocolComparison {
    fn title(&self) -> String {
        format!("{} in times of {}", self.sides.0, self.sides.1)
    }

    fn forest(&self, place: usize, own: &WeeklySummary) -> Forest {
        let row = |line: &HostRow| ForestRow {
            label: format!("{} · {}", line.task, host_label(line.host_label)),
            ratio: line.claim.ratio,
            verdict_text: words::verdict_label(line.claim.verdict).to_owned(),
            style: if line.host_label == 0 {
                SeriesStyle::NEUTRAL
            } else {
                SeriesStyle::for_share(line.host_label)
            },
            fill: words::fill(line.claim.verdict),
        };
        Forest {
            id: format!("hosts-{place}"),
            title: format!("{}, host by host", self.title()),
            groups: vec![ForestGroup {
                left: self.sides.0.clone(),
                right: self.sides.1.clone(),
                rows: self.rows.iter().map(row).collect(),
            }],
            threshold: own.settings.threshold,
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(self.title())
            .words(["task", "host", "protocols there"])
            .figures(["ratio", "days", "rounds"])
            .words(["verdict there"]);
        for line in &self.rows {
            table.row(line.cells());
        }
        table
    }
}

impl HostRow {
    fn cells(&self) -> [String; 7] {
        let ratio = self.claim.ratio;
        [
            self.task.clone(),
            host_label(self.host_label),
            self.protocols.clone(),
            ratio.map_or("no interval yet".to_owned(), ratio_text),
            ratio.map_or("–".to_owned(), |ratio| ratio.days.to_string()),
            self.claim.rounds.to_string(),
            words::verdict_label(self.claim.verdict).to_owned(),
        ]
    }
}
