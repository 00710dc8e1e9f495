//! What is so just now: drawn once, for the page that is asked for and for those that are open.

use longhaul_report::units;
use longhaul_service::status::{Live, OperationNow, State, Status, Task};
use longhaul_service::words;
use maud::{Markup, html};

/// The service at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// What it says of itself; `None` while it starts.
    pub status: Option<Status>,
    /// The round in progress.
    pub live: Option<Live>,
}

impl Now {
    /// What it is doing, in a few words.
    pub fn state(&self) -> Markup {
        let Some(status) = &self.status else { return html! { "starting" } };
        let class = match status.state {
            State::Measuring => "busy",
            State::Waiting | State::Idle => "calm",
            State::Paused { .. } | State::SafeMode | State::Stopping => "held",
        };
        let next = status.next_us.filter(|_| matches!(status.state, State::Waiting));
        html! {
            span class={ "dot " (class) } aria-hidden="true" {}
            (words::state(status))
            @if let Some(next_us) = next { ": " (words::time(next_us)) }
        }
    }

    /// Who is kept waiting, and everything else that the service knows to be wrong.
    pub fn troubles(&self) -> Markup {
        let Some(status) = &self.status else { return Markup::default() };
        let ill = status.targets.iter().filter(|target| {
            use longhaul_service::status::TargetState::{Blocked, Hung, Measuring, Unavailable, Waiting};
            match target.state {
                Measuring { .. } | Waiting { .. } => false,
                Hung { .. } | Unavailable { .. } | Blocked { .. } => true,
            }
        });
        html! {
            @for stall in &status.stalls {
                li class="serious" { strong { "Stall: " }
                    (stall.target) " keeps a " code { (stall.operation) } " waiting since " (words::time(stall.started_us)) "." }
            }
            @for target in ill {
                li class="serious" { strong { (target.name) ": " } (words::target_state(target, status.now_us)) "." }
            }
            @for problem in &status.problems {
                li class="serious" { strong { (problem.word) ": " } (problem.text) " Since " (words::time(problem.since_us)) "." }
            }
        }
    }

    /// The round in progress; what came last and what comes next where there is none.
    pub fn round(&self) -> Markup {
        match (&self.live, &self.status) {
            (Some(live), _) => in_progress(live),
            (None, Some(status)) => between(status),
            (None, None) => html! { p { "The service is starting." } },
        }
    }
}

fn between(status: &Status) -> Markup {
    html! {
        p { "No round goes on: " (words::state(status)) "." }
        @if let Some(next_us) = status.next_us { p { "Next round: " (words::moment(next_us, status.now_us)) "." } }
        @if let Some(last) = &status.last { p class="muted" { "Last round: " (words::last_round(last)) "." } }
    }
}

fn in_progress(live: &Live) -> Markup {
    let (done, all) = live.runs;
    html! {
        p { "Round " (live.round) ": " strong { (done) " of " (all) " runs" } " done." }
        progress max=(all.max(1)) value=(done) aria-label="Runs of this round that are done" {}
        @match &live.task {
            Some(task) => { (task_now(task)) }
            None => { p class="muted" { "Between two runs." } }
        }
    }
}

fn task_now(task: &Task) -> Markup {
    let waits = task.in_flight.as_ref().filter(|(_, seconds)| *seconds >= 1.0);
    html! {
        p {
            strong { (task.target) } ", " (task.workload.as_deref().unwrap_or("preparation"))
            @if let Some(phase) = &task.phase { ", phase " (phase) }
            ": " (units::seconds(task.seconds.round())) " so far."
        }
        @if let Some(progress) = &task.progress {
            p class="muted" { "Preparing " (progress.what) ": " (progress.files) " of " (progress.files_total) " files." }
        }
        @if let Some((operation, seconds)) = waits {
            p class="serious" { strong { "Waiting: " } code { (operation) } " has not returned for " (units::seconds(seconds.round())) "." }
        }
        @if !task.operations.is_empty() { (operations(&task.operations)) }
        p class="muted" { "Read " (units::bytes(task.bytes_read as f64)) ", written " (units::bytes(task.bytes_written as f64)) " in this phase." }
    }
}

fn operations(all: &[OperationNow]) -> Markup {
    let seconds = |us: Option<f64>| us.map_or("–".to_owned(), |us| units::seconds(us / 1e6));
    html! {
        div class="scroll" role="region" aria-label="Calls of this phase so far" tabindex="0" {
            table {
                thead { tr { th scope="col" { "call" } @for head in ["n", "a second", "p50", "p99", "failed"] { th scope="col" class="figure" { (head) } } } }
                tbody {
                    @for one in all {
                        tr {
                            th scope="row" { (one.operation) }
                            td class="figure" { (one.count) }
                            td class="figure" { (one.per_second.map_or("–".to_owned(), units::thousands)) }
                            td class="figure" { (seconds(one.p50_us)) }
                            td class="figure" { (seconds(one.p99_us)) }
                            td class="figure" { (one.errors) }
                        }
                    }
                }
            }
        }
    }
}
