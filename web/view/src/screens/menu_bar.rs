//! The menu for programs that show the output of a command in the menu bar: SwiftBar, xbar and Argos.
//!
//! The format is theirs: the first line is the title, the lines below `---` are the menu, and parameters follow a
//! `|` (README of SwiftBar, section "Plugin API").

use jiff::tz::TimeZone;
use longhaul_analysis::summary::WeeklySummary;
use longhaul_model::status::Status;

use super::{brief, recommendation, status};
use crate::text::wrapped;

/// Width of a line of the menu, in characters. A menu does not break lines by itself.
const WIDTH: usize = 64;
/// Line between two parts of the menu.
const SEPARATOR: &str = "---";

/// The content of the menu.
#[derive(Debug, Clone, Copy)]
pub struct Menu<'a> {
    /// The current week, or the reason why it cannot be read.
    pub weekly: Result<&'a WeeklySummary, &'a str>,
    /// State of the service; `None` if none runs.
    pub status: Option<&'a Status>,
    /// Address of the dashboard; `None` if no service runs.
    pub dashboard: Option<&'a str>,
    /// Sentences about shares with results that are not measured any more.
    pub former: &'a [String],
}

/// Returns the menu as text, with times of `zone`.
pub fn menu_bar(menu: &Menu<'_>, zone: &TimeZone) -> String {
    let mut lines = vec![title(menu, zone), SEPARATOR.to_owned()];
    lines.extend(answer(menu));
    lines.push(SEPARATOR.to_owned());
    lines.extend(service(menu.status, zone));
    lines.push(SEPARATOR.to_owned());
    lines.extend(menu.dashboard.map(|address| format!("Open the dashboard | href={address}")));
    lines.push("Refresh | refresh=true".to_owned());
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns the name of the target to use, with a warning sign if longhaul has a problem.
fn title(menu: &Menu<'_>, zone: &TimeZone) -> String {
    let target = menu.weekly.ok().and_then(|weekly| weekly.recommendation.target.as_ref());
    let name = target.map_or("longhaul", |target| target.as_str());
    let has_problem = menu.status.is_none_or(|known| !status::all_problems(known, zone).is_empty());
    if has_problem { format!("⚠ {name}") } else { name.to_owned() }
}

fn answer(menu: &Menu<'_>) -> Vec<String> {
    let weekly = match menu.weekly {
        Ok(weekly) => weekly,
        Err(reason) => return vec![item(reason)],
    };
    let mut sentences = vec![recommendation::heading(weekly)];
    if weekly.recommendation.target.is_none() {
        sentences.extend(brief::answers(weekly));
    }
    sentences.extend_from_slice(menu.former);
    sentences.iter().flat_map(|sentence| lines(sentence)).collect()
}

fn service(known: Option<&Status>, zone: &TimeZone) -> Vec<String> {
    let Some(known) = known else {
        // It also starts one that is installed and was stopped.
        return vec!["The service is not running: `longhaul service install`".to_owned()];
    };
    let problems = status::all_problems(known, zone);
    let mut shown: Vec<String> = problems.iter().flat_map(|text| lines(&text.content())).collect();
    shown.extend(
        status::in_short(known, zone)
            .iter()
            .map(|fact| item(&format!("{}: {}", fact.name, fact.value.content()))),
    );
    shown
}

/// Returns a sentence as lines of the menu.
fn lines(sentence: &str) -> Vec<String> {
    wrapped(&item(sentence), WIDTH)
}

/// Returns text without the characters that have a meaning in the format.
fn item(text: &str) -> String {
    text.replace('|', "¦").split_whitespace().collect::<Vec<_>>().join(" ").trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use longhaul_model::status::{DatabaseStatus, TargetState, TargetStatus};
    use longhaul_model::{Role, Timestamp};

    use super::*;

    /// Returns the title while a target is in a state.
    fn title_for(state: TargetState) -> String {
        let database = DatabaseStatus { path: "/d".into(), bytes: None };
        let target = TargetStatus {
            probe: Default::default(),
            name: "smb".parse().unwrap(),
            path: "/m".into(),
            role: Role::Share,
            protocol: None,
            state,
            last_runs: None,
            failed_tasks: vec![],
            bytes_last_24h: 0,
            bytes_limit: None,
        };
        let status = Status { targets: vec![target], ..Status::new(database, Timestamp::UNIX_EPOCH) };
        title(
            &Menu { weekly: Err("no data"), status: Some(&status), dashboard: None, former: &[] },
            &TimeZone::UTC,
        )
    }

    #[test]
    fn share_that_cannot_be_measured_is_a_warning() {
        let reason = "the share is not mounted".to_owned();
        assert_eq!(title_for(TargetState::Unavailable { reason, is_now: true }), "⚠ longhaul");
        let reason = "the next round".to_owned();
        assert_eq!(title_for(TargetState::Waiting { reason, until_us: None }), "longhaul");
    }

    #[test]
    fn text_cannot_add_parameters_or_lines() {
        assert_eq!(item("--a | href=http://evil\n---\nb"), "a ¦ href=http://evil --- b");
    }

    #[test]
    fn menu_without_data_and_service_says_what_to_do() {
        let menu = menu_bar(
            &Menu { weekly: Err("there is no database yet"), status: None, dashboard: None, former: &[] },
            &TimeZone::UTC,
        );
        let expected = "⚠ longhaul\n---\nthere is no database yet\n---\nThe service is not running: `longhaul service install`\n---\n\
                        Refresh | refresh=true\n";
        assert_eq!(menu, expected);
    }
}
