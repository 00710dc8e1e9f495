//! What is seen while rounds are made: bars on standard error, a line per run on standard output.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use longhaul_measure::model::{Progress, Target, TargetName};
use longhaul_service::round::Audience;
use longhaul_service::runner::Foreground;
use longhaul_service::worker::Observer;
use longhaul_store::StoredRun;

use longhaul_web::json;

use crate::render::{line, units};

/// How runs are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For people.
    Lines,
    /// One JSON object per line.
    Json,
    /// Not: whoever asked prints what came of all of them.
    Silent,
}

/// Whether another round may begin; an answer `Err` says why not.
pub type Gate<'a> = Box<dyn FnMut() -> Result<(), String> + 'a>;

/// Shows rounds as they are made.
pub struct Stage<'a> {
    style: Style,
    gate: Gate<'a>,
    bar: ProgressBar,
    /// What the bar shows the making of; `None` while it only says what is done.
    making: Option<String>,
    /// How many phases a run has, where that is known, and how many have begun.
    phases: Option<(u64, u64)>,
}

impl<'a> Stage<'a> {
    /// An empty stage.
    pub fn new(style: Style, gate: Gate<'a>) -> Self {
        Self { style, gate, bar: ProgressBar::hidden(), making: None, phases: None }
    }

    /// An empty stage for runs that have so many phases each: the bar shows how many are done.
    pub fn with_phases(style: Style, gate: Gate<'a>, phases: u64) -> Self {
        Self { phases: Some((phases, 0)), ..Self::new(style, gate) }
    }

    /// Clears the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn spin(&mut self, text: String) {
        if self.making.take().is_some() || self.bar.is_finished() || self.bar.is_hidden() {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(self.phases.map_or(0, |(phases, _)| phases));
            let bar = if self.phases.is_some() { "[{bar:24}] {pos}/{len} " } else { "" };
            self.bar
                .set_style(style(&format!("{{spinner}} {bar}{{msg}}  {{elapsed}}")).progress_chars("=> "));
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
        self.bar.set_message(text);
        if let Some((_, begun)) = self.phases {
            self.bar.set_position(begun);
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Observer for Stage<'_> {
    fn progress(&mut self, target: &TargetName, progress: &Progress) {
        let what = format!("{target}: {}", progress.what);
        if self.making.as_deref() != Some(what.as_str()) {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(progress.bytes_total);
            let bar = "{msg} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
            self.bar.set_style(style(bar).progress_chars("=> "));
            self.bar.set_position(progress.bytes);
            self.bar.reset_eta();
            self.making = Some(what.clone());
        }
        let files = format!("{what} {}/{} files", progress.files, progress.files_total);
        self.bar.set_message(files);
        self.bar.set_position(progress.bytes);
    }

    fn phase_began(&mut self, target: &TargetName, name: &str) {
        self.spin(format!("{target}: {name}"));
        self.phases = self.phases.map(|(phases, begun)| (phases, begun + 1));
    }
}

impl Audience for Stage<'_> {
    fn run_began(&mut self, target: &Target, workload: &str) {
        self.phases = self.phases.map(|(phases, _)| (phases, 0));
        self.spin(format!("{}: {workload}", target.name));
    }

    fn run_ended(&mut self, stored: &StoredRun) {
        let text = match self.style {
            Style::Lines => line::run(stored),
            Style::Json => json::run(stored).to_string(),
            Style::Silent => return,
        };
        self.bar.suspend(|| anstream::println!("{text}"));
    }
}

impl Foreground for Stage<'_> {
    fn round_began(&mut self, number: i64, place: u32, rounds: u32) {
        if self.style == Style::Lines {
            self.bar.suspend(|| anstream::println!("round {} of {rounds} (number {number})", place + 1));
        }
    }

    fn may_go_on(&mut self, _place: u32) -> bool {
        match (self.gate)() {
            Ok(()) => true,
            Err(reason) => {
                self.bar.suspend(|| anstream::eprintln!("longhaul: no further round: {reason}"));
                false
            }
        }
    }
}

/// What a budget has left, in words.
pub fn over_budget(target: &TargetName, used: u64, budget: u64) -> String {
    format!(
        "`{target}` had {} read and written within 24 hours; the configuration allows {}",
        units::bytes(used as f64),
        units::bytes(budget as f64)
    )
}
