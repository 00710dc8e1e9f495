//! Causes of stalls and slow calls, in a sentence each, and what to try.

use std::time::Duration;

use longhaul_analysis::stalls::{NamedStall, StallCause, StallEvidence};

use crate::document::Document;
use crate::text::Text;
use crate::units;

/// Text about one cause.
struct Words {
    /// Cause in a few words, for a column.
    name: &'static str,
    /// Continuation of a sentence about slow calls.
    meaning: &'static str,
    /// First thing to try.
    advice: &'static str,
    /// Section of docs/stalls.md.
    section: &'static str,
}

/// Returns the causes of slow calls; nothing if there are none.
pub fn causes(named: &[NamedStall]) -> Document {
    let mut document = Document::new();
    if named.is_empty() {
        return document;
    }
    document.subheading("Causes of slow calls").list(named.iter().map(sentence));
    document
}

/// Returns the causes of slow calls, or that there are none.
pub fn only(named: &[NamedStall]) -> Document {
    let mut document = causes(named);
    if named.is_empty() {
        document.paragraph("No slow calls with a known cause.");
    }
    document
}

/// Returns a cause in a few words.
pub fn cause_words(cause: StallCause) -> &'static str {
    words(cause).name
}

fn sentence(named: &NamedStall) -> Text {
    let words = words(named.cause);
    let text = Text::new().target(&named.target).plain(": ").strong(words.name).plain(format!(
        ". {}{} Try: {} More: ",
        evidence(named.cause, &named.evidence),
        words.meaning,
        words.advice
    ));
    text.code(format!("docs/stalls.md#{}", words.section)).plain(".")
}

/// Returns the counts that speak for a cause.
fn evidence(cause: StallCause, evidence: &StallEvidence) -> String {
    let StallEvidence { matching, examined, .. } = evidence;
    let typical = units::seconds(evidence.typical_seconds);
    match cause {
        StallCause::PeriodicPulses | StallCause::Commit => format!(
            "{matching} of {examined} pauses come every {} s and last about {typical} (coherence {:.2}).",
            significant(evidence.period_seconds),
            evidence.coherence.unwrap_or_default()
        ),
        StallCause::RetransmissionTimeout => {
            let counted = evidence
                .retransmits
                .map_or(String::new(), |count| format!("; {count} retransmits were counted"));
            format!("{matching} of {examined} waits of similar length last about {typical}{counted}.")
        }
        StallCause::DelayedAck => {
            format!("{matching} of {examined} waits of similar length last about {typical}.")
        }
        StallCause::DiskSpinUp => format!(
            "{matching} of {examined} stalls began with the first operation after {} or more without any, and took about {typical}.",
            units::duration(idle(evidence))
        ),
        StallCause::OnTheHour => format!("{matching} of {examined} slow times began at a full hour."),
        StallCause::Reconnect | StallCause::Wake | StallCause::LinkChange => {
            format!("Seen in {matching} of {examined} stalls; the longest took {typical}.")
        }
    }
}

fn significant(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!("{seconds:.2}"))
}

/// Returns the idle time in whole minutes, as seconds.
fn idle(evidence: &StallEvidence) -> f64 {
    let seconds = Duration::from_secs_f64(evidence.idle_seconds.unwrap_or_default());
    (seconds.as_secs() / 60 * 60) as f64
}

fn words(cause: StallCause) -> Words {
    match cause {
        StallCause::PeriodicPulses => Words {
            name: "pauses at a fixed interval",
            meaning: " Wi-Fi makes such pauses when it also serves AirDrop or looks for other networks.",
            advice: "a cable, or on a Mac AirDrop and AirPlay off for an hour.",
            section: "pauses-at-a-fixed-interval",
        },
        StallCause::RetransmissionTimeout => Words {
            name: "lost packets",
            meaning: " TCP waits 200 ms before it retransmits a lost packet.",
            advice: "another cable or port, then the Wi-Fi signal.",
            section: "lost-packets",
        },
        StallCause::DelayedAck => Words {
            name: "delayed acknowledgements",
            meaning: " TCP holds an acknowledgement back for 40 ms if there is nothing to send with it.",
            advice: "TCP_NODELAY in the settings of the server.",
            section: "delayed-acknowledgements",
        },
        StallCause::Commit => Words {
            name: "the NAS flushes buffered writes",
            meaning: " File systems commit their journal or transaction at this interval.",
            advice: "writing less at once, or an SSD for the journal or log.",
            section: "commits",
        },
        StallCause::DiskSpinUp => Words {
            name: "disk spins up",
            meaning: " The disks of the NAS had stopped, or the NAS slept.",
            advice: "a longer time before disks stop, in the power settings of the NAS.",
            section: "disk-spins-up",
        },
        StallCause::OnTheHour => Words {
            name: "scheduled task",
            meaning: " Backups, scrubs and indexing begin at full hours.",
            advice: "the list of scheduled tasks of the NAS and of this machine.",
            section: "scheduled-tasks",
        },
        StallCause::Reconnect => Words {
            name: "connection lost",
            meaning: " The connection to the server was re-established at that time.",
            advice: "the server's log for that time, then the cable.",
            section: "connection-lost",
        },
        StallCause::Wake => Words {
            name: "this machine woke up",
            meaning: " This machine had just woken up.",
            advice: "nothing, if it is short: connections are re-established after sleep.",
            section: "this-machine-woke-up",
        },
        StallCause::LinkChange => Words {
            name: "network link changed",
            meaning: " This machine changed to another network link at that time.",
            advice: "one link only, for example Wi-Fi off while a cable is plugged in.",
            section: "network-link-changed",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    fn named(cause: StallCause, evidence: StallEvidence) -> NamedStall {
        NamedStall { target: "smb".parse().unwrap(), cause, evidence, first_us: None, last_us: None }
    }

    #[test]
    fn each_cause_has_a_section_in_the_docs() {
        let page = include_str!("../../../../../docs/stalls.md");
        let sections: Vec<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .map(|heading| heading.to_lowercase().replace(' ', "-"))
            .collect();
        for cause in StallCause::ALL {
            assert!(sections.iter().any(|section| section == words(*cause).section), "{cause:?}");
            assert!(page.contains(&format!("\n`{}`.", cause.name())), "{cause:?} is not described");
        }
    }

    #[test]
    fn a_cause_is_a_sentence_with_its_counts() {
        let evidence = StallEvidence {
            matching: 41,
            examined: 45,
            typical_seconds: 0.085,
            period_seconds: Some(1.5),
            coherence: Some(0.931),
            ..StallEvidence::default()
        };
        let text = sentence(&named(StallCause::PeriodicPulses, evidence)).content();
        assert_eq!(
            text,
            "smb: pauses at a fixed interval. 41 of 45 pauses come every 1.50 s and last about 85.0 ms (coherence \
             0.93). Wi-Fi makes such pauses when it also serves AirDrop or looks for other networks. Try: a cable, \
             or on a Mac AirDrop and AirPlay off for an hour. More: docs/stalls.md#pauses-at-a-fixed-interval."
        );
    }

    #[test]
    fn every_cause_is_shown_once() {
        let all: Vec<NamedStall> =
            StallCause::ALL.iter().map(|cause| named(*cause, StallEvidence::default())).collect();
        let page = render::markdown::render(&causes(&all));
        for cause in StallCause::ALL {
            assert_eq!(page.matches(words(*cause).section).count(), 1, "{page}");
        }
        assert_eq!(render::markdown::render(&causes(&[])), "");
    }
}
