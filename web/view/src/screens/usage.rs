//! Usage: the usage profile with its sources, and the requests from which it is counted.

use longhaul_analysis::usage::{
    CountedUsage, LineSource, MAX_WEEKS, MIN_DAYS, NotCounted, TargetUsage, UsageLine, UsageProfile,
};
use longhaul_model::{RequestKind, TargetName};

use super::{NO_VALUE, bytes, or_no_value};
use crate::document::Document;
use crate::table::Table;
use crate::units;

/// Returns the usage profile, and the usage that was counted. `uncounted` are the targets on which nothing was counted.
pub fn usage(counted: &CountedUsage, profile: &UsageProfile, uncounted: &[&TargetName]) -> Document {
    let mut document = Document::titled("Your usage");
    document.paragraph(covered(counted));
    document.section("profile", "Usage profile").table(profile_table(profile));
    document.list(reasons(profile, counted));
    document.paragraph(
        "To correct a line: `longhaul usage set folder-openings=200`. `longhaul usage reset` removes all corrections.",
    );
    if !counted.targets.is_empty() {
        document.section("counted", "Counted").table(requests_table(counted)).table(traffic_table(counted));
        document.note(
            "Requests to the server by all programs except longhaul. What a program reads from this computer's cache is \
             not among them. Lookups of longhaul's probe count as attributes and, over SMB, opens. Excluded: the time while \
             longhaul was measuring; the profile is scaled up to make up for it.",
        );
    }
    if !uncounted.is_empty() {
        let names: Vec<&str> = uncounted.iter().map(|name| name.as_str()).collect();
        document.note(format!(
            "Nothing was counted on {}: not mounted while the service ran, or of a kind whose requests the system does not \
             count. Linux counts those of NFS and SMB.",
            names.join(", ")
        ));
    }
    document
}

fn covered(counted: &CountedUsage) -> String {
    let (days, covered) = (counted.days, counted.covered_days);
    if days == 0 {
        return "Nothing is counted yet: the background service counts while it runs (`longhaul status` shows whether it does)."
            .to_owned();
    }
    let wait = match MIN_DAYS.saturating_sub(covered) {
        0 => String::new(),
        missing => format!(" The profile needs {MIN_DAYS} counted days: {missing} more."),
    };
    format!("Counted on {covered} of {days} days; at most the last {MAX_WEEKS} weeks are used.{wait}")
}

fn profile_table(profile: &UsageProfile) -> Table {
    let mut table = Table::new("Usage profile")
        .words(["activity"])
        .figures(["times a week", "counted"])
        .words(["source"]);
    for line in &profile.lines {
        let source = match line.source {
            LineSource::Configuration => "configuration",
            LineSource::Counted => "counted",
            LineSource::OrdinaryWeek => "an ordinary week",
            LineSource::None => "not in the configuration",
        };
        // A line that the configuration leaves out is not known to be zero; it only counts for nothing.
        let known = Some(line.per_week).filter(|_| line.source != LineSource::None);
        table.row([line.key, &or_no_value(known.map(times)), &or_no_value(line.counted.map(times)), source]);
    }
    table
}

/// Returns a number of times with two significant digits below 100.
fn times(times: f64) -> String {
    match times {
        0.0 => "0".to_owned(),
        ..1.0 => units::decimal(times, 2),
        ..10.0 => units::decimal(times, 1).trim_end_matches(".0").to_owned(),
        _ => units::whole(times.round() as u64),
    }
}

/// Returns how each line is counted, or why it is not; lines with the same reason are named together.
fn reasons(profile: &UsageProfile, counted: &CountedUsage) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<&str>)> = vec![];
    for line in &profile.lines {
        let reason = reason(line, counted);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, keys)) => keys.push(line.key),
            None => reasons.push((reason, vec![line.key])),
        }
    }
    reasons.into_iter().map(|(reason, keys)| format!("{}: {reason}", keys.join(", "))).collect()
}

/// Returns how a line is counted, or why it is not.
fn reason(line: &UsageLine, counted: &CountedUsage) -> String {
    let Some(not_counted) = line.not_counted else { return how_counted(line.key).to_owned() };
    match not_counted {
        NotCounted::NoCounter if counted.targets.is_empty() => "not counted yet.".to_owned(),
        NotCounted::NoCounter => {
            "cannot be counted here, only bytes are; on Linux, requests by kind are counted for NFS and SMB."
                .to_owned()
        }
        NotCounted::OpensNotCounted => {
            "cannot be counted, because NFS 3 has no request that opens a file.".to_owned()
        }
        NotCounted::NoTaskYet => {
            "not counted yet, because no round has shown how many requests one takes.".to_owned()
        }
        NotCounted::TooFewDays => format!(
            "counted on {} of the {MIN_DAYS} days that are needed, so that each weekday is among them.",
            counted.covered_days
        ),
        NotCounted::Unused => "none was counted.".to_owned(),
        NotCounted::NotInCounters => {
            "cannot be counted, because requests do not show which program made them.".to_owned()
        }
    }
}

fn how_counted(key: &str) -> &'static str {
    match key {
        "folder-openings" => {
            "requests for names, divided by those of one opening of longhaul's folder of 1,000 files. Programs that \
             search or index folders count, too."
        }
        _ => {
            "files that were opened and read, divided by those of one session (all photos of longhaul's batch, and 20 \
             more). Files of other kinds count, too."
        }
    }
}

fn requests_table(counted: &CountedUsage) -> Table {
    let kinds = RequestKind::ALL.map(RequestKind::name);
    let mut table =
        Table::new("Requests by kind").words(["target", "source"]).figures(kinds).figures(["files read"]);
    for target in counted.targets.iter().filter(|target| !target.requests.is_empty()) {
        let count = |count: Option<u64>| or_no_value(count.map(units::whole));
        let requests = RequestKind::ALL.map(|kind| count(target.request(kind)));
        let names = [target.target.to_string(), target.source.name().into_owned()];
        table.row(names.into_iter().chain(requests).chain([count(target.files_read)]));
    }
    table
}

fn traffic_table(counted: &CountedUsage) -> Table {
    let mut table = Table::new("Counted time and bytes").words(["target"]).figures([
        "counted",
        "left out",
        "received",
        "sent",
        "requests per opening",
    ]);
    for target in &counted.targets {
        let TargetUsage { counted_hours, left_out_hours, read_bytes, written_bytes, .. } = target;
        let hours = |hours: &f64| units::duration(hours * 3600.0);
        let per_opening = target.requests_per_opening.map(|requests| units::decimal(requests, 0));
        table.row([
            target.target.to_string(),
            hours(counted_hours),
            hours(left_out_hours),
            bytes(*read_bytes),
            bytes(*written_bytes),
            per_opening.unwrap_or_else(|| NO_VALUE.to_owned()),
        ]);
    }
    table
}
