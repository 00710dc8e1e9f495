//! One's own figures and those of others, side by side. Hosts differ, so nothing is ever pooled over them.

use longhaul_measure::model::Scale;
use longhaul_measure::summary::Weekly;
use maud::{Markup, html};

use super::{Claim, Exchange, ExchangedPair, exchange};
use crate::charts::{Forest, ForestGroup, ForestRow, Look, ratio_text};
use crate::markdown::{escape, table};
use crate::page::parts::{figure, table_of};
use crate::{Environment, charts, words};

/// What stands above whatever is shown of several hosts.
const WARNING: &str = "Hosts differ: another machine, network, server and disk, and maybe another size of the test data. Each line is a \
     result of one host by itself; nothing is pooled, and a difference between two hosts is no difference between protocols.";

/// One protocol against another, on every host that has both.
struct Meeting {
    /// The families of both, left and right.
    sides: (String, String),
    lines: Vec<Line>,
}

/// One task on one host.
struct Line {
    /// The task.
    task: String,
    /// Whose it is: 0 for one's own.
    host: usize,
    /// The protocols as negotiated there.
    protocols: String,
    /// Time on the left divided by time on the right.
    claim: Claim,
}

/// A pair of a host with its protocols.
#[derive(Clone, Copy)]
struct Placed<'e> {
    pair: &'e ExchangedPair,
    protocols: (&'e str, &'e str),
}

/// As Markdown; empty without others.
pub fn markdown(own: &Weekly, others: &[Exchange]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let hosts: String = host_lines(own, others).map(|line| format!("- {}\n", escape(&line))).collect();
    let mut out = format!("{}\n\n{hosts}", escape(WARNING));
    let meetings = meetings(own, others);
    for meeting in &meetings {
        let rows: Vec<Vec<String>> =
            meeting.lines.iter().map(|line| line.cells().map(|cell| escape(&cell)).into()).collect();
        out += &format!("\n**{}**\n\n{}", escape(&meeting.title()), table(&HEAD, 3, &rows));
    }
    if meetings.is_empty() {
        out += &format!("\n{NO_MEETING}\n");
    }
    out
}

/// As a part of a page; empty without others.
pub fn html(own: &Weekly, others: &[Exchange]) -> Markup {
    let meetings = meetings(own, others);
    let forests: Vec<Forest> =
        meetings.iter().enumerate().map(|(place, meeting)| meeting.forest(place, own)).collect();
    let scale = Forest::shared_scale(&forests);
    html! {
        @if !others.is_empty() {
            p class="warning" { (WARNING) }
            ul { @for line in host_lines(own, others) { li { (line) } } }
            @if meetings.is_empty() { p { (NO_MEETING) } }
            @for (meeting, forest) in meetings.iter().zip(&forests) {
                h3 { (meeting.title()) }
                (figure(&forest.draw(scale), &[]))
                (table_of(&meeting.title(), &meeting.table()))
            }
        }
    }
}

const NO_MEETING: &str = "No two protocols are compared on more than one host.";
const HEAD: [&str; 7] = ["task", "host", "protocols there", "ratio", "days", "rounds", "verdict there"];

/// The hosts, each with what is known of it.
fn host_lines<'e>(own: &'e Weekly, others: &'e [Exchange]) -> impl Iterator<Item = String> + 'e {
    let scale = |scale: Option<Scale>| scale.map_or("no run", Scale::name);
    let here = format!("{}: week {}, {} scale", host(0), own.week, scale(own.scale));
    let there = others.iter().enumerate().map(move |(place, other)| {
        format!(
            "{}: week {}, {} scale; {}",
            host(place + 1),
            other.week,
            scale(other.scale),
            other.environment.anonymised().in_one_line()
        )
    });
    std::iter::once(here).chain(there)
}

fn host(place: usize) -> String {
    match place {
        0 => "here".to_owned(),
        1 => "there".to_owned(),
        more => format!("there ({more})"),
    }
}

/// Every pair of one's own with those of others that compare the same two protocols.
fn meetings(own: &Weekly, others: &[Exchange]) -> Vec<Meeting> {
    let own = exchange(own, &Environment::default());
    own.pairs.iter().filter_map(|pair| meeting(&own, pair, others)).collect()
}

fn meeting(own: &Exchange, pair: &ExchangedPair, others: &[Exchange]) -> Option<Meeting> {
    let placed = placed(own, pair)?;
    let theirs: Vec<(usize, Placed<'_>, bool)> = others
        .iter()
        .enumerate()
        .flat_map(|(place, other)| other.pairs.iter().map(move |pair| (place + 1, other, pair)))
        .filter_map(|(place, other, pair)| {
            let other = self::placed(other, pair)?;
            Some((place, other, is_turned(placed.protocols, other.protocols)?))
        })
        .collect();
    let mut lines = vec![];
    for claim in claims(pair) {
        let same = theirs.iter().flat_map(|(place, other, turned)| {
            let found =
                claims(other.pair).filter(|theirs| theirs.key == claim.key && theirs.cache == claim.cache);
            found.map(move |found| line(*place, *other, if *turned { turn(found) } else { found.clone() }))
        });
        let same: Vec<Line> = same.collect();
        if !same.is_empty() {
            lines.push(line(0, placed, claim.clone()));
            lines.extend(same);
        }
    }
    let sides = (family(placed.protocols.1).to_owned(), family(placed.protocols.0).to_owned());
    (!lines.is_empty()).then_some(Meeting { sides, lines })
}

fn placed<'e>(exchange: &'e Exchange, pair: &'e ExchangedPair) -> Option<Placed<'e>> {
    let protocol = |name: &str| {
        exchange
            .targets
            .iter()
            .find(|target| target.name == name)
            .and_then(|target| target.protocol.as_deref())
    };
    Some(Placed { pair, protocols: (protocol(&pair.a)?, protocol(&pair.b)?) })
}

fn claims(pair: &ExchangedPair) -> impl Iterator<Item = &Claim> {
    pair.headline.iter().chain(&pair.tasks)
}

/// `SMB` of `SMB 3.1.1`.
fn family(protocol: &str) -> &str {
    protocol.split_whitespace().next().unwrap_or(protocol)
}

/// Whether the others' pair stands the other way round; `None` if it compares something else.
fn is_turned(own: (&str, &str), other: (&str, &str)) -> Option<bool> {
    if own == other {
        return Some(false);
    }
    let (own, other) = ((family(own.0), family(own.1)), (family(other.0), family(other.1)));
    match (own.0 == own.1, own == other, (own.1, own.0) == other) {
        // Two ways of one protocol: which of theirs would be which of ours?
        (true, _, _) => None,
        (false, true, _) => Some(false),
        (false, false, true) => Some(true),
        (false, false, false) => None,
    }
}

fn turn(claim: &Claim) -> Claim {
    Claim { ratio: claim.ratio.map(longhaul_measure::summary::Estimate::inverse), ..claim.clone() }
}

fn line(place: usize, of: Placed<'_>, claim: Claim) -> Line {
    Line {
        task: words::labelled(&claim.activity, claim.cache),
        host: place,
        protocols: format!("{} and {}", of.protocols.0, of.protocols.1),
        claim,
    }
}

impl Meeting {
    fn title(&self) -> String {
        format!("{} in times of {}", self.sides.0, self.sides.1)
    }

    fn forest(&self, place: usize, own: &Weekly) -> Forest {
        let row = |line: &Line| ForestRow {
            label: format!("{} · {}", line.task, host(line.host)),
            ratio: line.claim.ratio,
            said: words::state(line.claim.verdict).to_owned(),
            look: if line.host == 0 { Look::NEUTRAL } else { Look::of_share(line.host) },
            fill: words::fill(line.claim.verdict),
        };
        Forest {
            id: format!("beside-{place}"),
            title: format!("{}, host by host", self.title()),
            groups: vec![ForestGroup {
                left: self.sides.0.clone(),
                right: self.sides.1.clone(),
                rows: self.lines.iter().map(row).collect(),
            }],
            threshold: own.premises.threshold,
        }
    }

    fn table(&self) -> charts::Table {
        let mut table = charts::Table::new(HEAD);
        table.rows = self.lines.iter().map(|line| line.cells().into()).collect();
        table
    }
}

impl Line {
    fn cells(&self) -> [String; 7] {
        let ratio = self.claim.ratio;
        [
            self.task.clone(),
            host(self.host),
            self.protocols.clone(),
            ratio.map_or("anything fits".to_owned(), ratio_text),
            ratio.map_or("–".to_owned(), |ratio| ratio.days.to_string()),
            self.claim.rounds.to_string(),
            words::state(self.claim.verdict).to_owned(),
        ]
    }
}
