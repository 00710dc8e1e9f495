//! Fidelity: which properties of files each target keeps, and what it means where it does not.

use longhaul_model::{Finding, KeepResult, Property, ReadBack, TargetFidelity};

use super::consequences::consequence;
use super::property_words::property_words;
use crate::document::Document;
use crate::screens::NO_VALUE;
use crate::table::Table;
use crate::text::{Text, Tone};
use crate::time::timestamp;
use jiff::tz::TimeZone;

/// Mark of a result that may come from this machine's memory.
const CLIENT_MARK: &str = "*";

/// Returns the matrix of all properties and targets, with what the results mean.
pub fn fidelity(checks: &[TargetFidelity], zone: &TimeZone) -> Document {
    let mut document = Document::titled("What the targets keep");
    if checks.is_empty() {
        document.paragraph(
            Text::from("Nothing was checked yet. ")
                .plain("The service checks each target after its first full round. Without the service: ")
                .code("longhaul fidelity")
                .plain("."),
        );
        return document;
    }
    document.list(checks.iter().map(|check| summary(check, zone)));
    document.section("matrix", "Properties").table(matrix(checks));
    document.note(format!(
        "kept: read back as written. changed: read back in another form. refused: an error, so that programs notice. \
         lost: accepted and then not there, so that programs do not notice. {CLIENT_MARK} may come from this machine's \
         memory and not from the server."
    ));
    let details = details(checks);
    if !details.is_empty() {
        document.section("details", "Details").list(details);
    }
    let meanings = meanings(checks);
    if !meanings.is_empty() {
        document.section("meaning", "What it means").list(meanings);
    }
    document
}

/// Returns a result in a word or two.
pub fn result_word(result: KeepResult) -> &'static str {
    match result {
        KeepResult::Kept => "kept",
        KeepResult::Changed => "changed",
        KeepResult::Refused => "refused",
        KeepResult::Lost => "lost",
        KeepResult::Hung => "hung",
        KeepResult::NotTested => "not tested",
    }
}

fn summary(check: &TargetFidelity, zone: &TimeZone) -> Text {
    let count = |result| check.findings.iter().filter(|finding| finding.result == result).count();
    let counts = KeepResult::ALL.map(|result| (result_word(result), count(result)));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(word, count)| format!("{count} {word}")).collect();
    let protocol = check.protocol.as_ref().map_or(String::new(), |protocol| format!(" ({protocol})"));
    let at = timestamp(check.at, zone);
    Text::new().target(&check.target).plain(format!("{protocol}, {at}: {}", counts.join(", ")))
}

fn matrix(checks: &[TargetFidelity]) -> Table {
    let names = checks.iter().map(|check| check.target.as_str());
    let mut table = Table::new("Properties of files by target").words(["property"]).words(names);
    for property in Property::ALL {
        let cells = checks.iter().map(|check| cell(finding(check, property)));
        table.row(std::iter::once(Text::from(property_words(property))).chain(cells));
    }
    table
}

fn finding(check: &TargetFidelity, property: Property) -> Option<&Finding> {
    check.findings.iter().find(|finding| finding.property == property)
}

fn cell(finding: Option<&Finding>) -> Text {
    let Some(finding) = finding else { return NO_VALUE.into() };
    let is_marked = finding.result.is_tested()
        && finding.result != KeepResult::Refused
        && finding.read_back == ReadBack::Client;
    let mark = if is_marked { CLIENT_MARK } else { "" };
    let tone = match finding.result {
        KeepResult::Kept => Tone::Good,
        KeepResult::Changed | KeepResult::Refused => Tone::Warning,
        KeepResult::Lost | KeepResult::Hung => Tone::Bad,
        KeepResult::NotTested => Tone::Neutral,
    };
    Text::new().toned(format!("{}{mark}", result_word(finding.result)), tone)
}

/// Returns the details of all findings, those with the same text together.
fn details(checks: &[TargetFidelity]) -> Vec<String> {
    let (untested, tested): (Vec<TargetFidelity>, _) = checks.iter().cloned().partition(is_untested);
    let mut lines: Vec<String> = untested.iter().filter_map(untested_line).collect();
    lines.extend(finding_details(&tested));
    lines
}

/// Returns whether nothing could be tested on a target.
fn is_untested(check: &TargetFidelity) -> bool {
    check.findings.iter().all(|finding| finding.result == KeepResult::NotTested)
}

/// Returns one line for a target on which nothing could be tested, with the first reason.
fn untested_line(check: &TargetFidelity) -> Option<String> {
    let reason = check.findings.first()?.detail.replace('`', "");
    Some(format!("{}: nothing could be tested: {reason}", check.target))
}

fn finding_details(checks: &[TargetFidelity]) -> Vec<String> {
    let detail = |finding: &Finding| {
        let has_detail = !finding.detail.is_empty();
        has_detail.then(|| {
            let (property, word) = (property_words(finding.property), result_word(finding.result));
            format!("{property}, {word}: {}", finding.detail)
        })
    };
    by_text(checks, detail)
}

/// Returns what the results mean, each sentence once with its targets.
fn meanings(checks: &[TargetFidelity]) -> Vec<String> {
    by_text(checks, |finding| {
        let sentence = consequence(finding.property, finding.result)?;
        let (property, word) = (property_words(finding.property), result_word(finding.result));
        Some(format!("{property} {word}: {sentence}"))
    })
}

/// Returns a line for each text, in the order of the properties, after the targets that it is about.
fn by_text(checks: &[TargetFidelity], text: impl Fn(&Finding) -> Option<String>) -> Vec<String> {
    let mut lines: Vec<(String, Vec<&str>)> = vec![];
    for property in Property::ALL {
        for check in checks {
            let Some(text) = finding(check, property).and_then(&text) else { continue };
            match lines.iter_mut().find(|(known, _)| *known == text) {
                Some((_, targets)) => targets.push(check.target.as_str()),
                None => lines.push((text, vec![check.target.as_str()])),
            }
        }
    }
    // Backticks mark names, and a document would show them as they are.
    let line =
        |(text, targets): (String, Vec<&str>)| format!("{}: {}", targets.join(", "), text.replace('`', ""));
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::markdown;
    use longhaul_model::Timestamp;

    fn check(target: &str, findings: Vec<Finding>) -> TargetFidelity {
        let protocol = Some("SMB 3.1.1".to_owned());
        let at = Timestamp::from_us(1_764_061_200_000_000);
        TargetFidelity { target: target.parse().unwrap(), protocol, at, findings }
    }

    fn finding(property: Property, result: KeepResult, detail: &str) -> Finding {
        Finding { property, result, detail: detail.to_owned(), read_back: ReadBack::Client }
    }

    #[test]
    fn targets_with_one_result_share_a_line() {
        let lost = || vec![finding(Property::Permissions, KeepResult::Lost, "640 was accepted, 755 stays")];
        let text = markdown::render(&fidelity(&[check("one", lost()), check("two", lost())], &TimeZone::UTC));
        assert!(text.contains("one, two: permission bits, lost: 640 was accepted, 755 stays"), "{text}");
        assert!(text.contains("one, two: permission bits lost: A backup restores scripts"), "{text}");
        assert!(text.contains("1 lost") && text.contains("lost\\*"), "{text}");
    }

    #[test]
    fn every_result_that_is_not_kept_has_a_consequence() {
        for property in Property::ALL {
            for result in [KeepResult::Changed, KeepResult::Refused, KeepResult::Lost] {
                let sentence = consequence(property, result).unwrap();
                assert!(sentence.ends_with('.') && sentence.len() < 120, "{property:?}: {sentence}");
            }
            assert_eq!(consequence(property, KeepResult::Kept), None);
        }
    }

    #[test]
    fn failed_check_has_one_line() {
        let refused = |property| Finding::not_tested(property, "`open` failed: EACCES");
        let failed = check("nas", Property::ALL.map(refused).into());
        let text = markdown::render(&fidelity(&[failed], &TimeZone::UTC));
        assert!(text.contains("38 not tested"), "{text}");
        assert_eq!(text.matches("nas: nothing could be tested: open failed: EACCES").count(), 1, "{text}");
        assert_eq!(text.matches("EACCES").count(), 1, "{text}");
    }

    #[test]
    fn nothing_checked_says_what_to_do() {
        let text = markdown::render(&fidelity(&[], &TimeZone::UTC));
        assert!(text.contains("Without the service: longhaul fidelity"), "{text}");
    }
}
