//! Progress output during rounds: bars on standard error, a line per run on standard output.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use longhaul_model::{Progress, Target, TargetName};
use longhaul_service::round::RoundObserver;
use longhaul_service::worker::WorkerObserver;
use longhaul_store::StoredRun;
use longhaul_view::render::terminal::{line, visible};
use longhaul_view::screens::runs::{ProgressDetail, progress_line};
use longhaul_view::{json, units};

/// The output format of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStyle {
    /// Readable text, a line per run without its figures.
    ShortLines,
    /// Readable text, a line per run.
    Lines,
    /// One JSON object per line.
    Json,
    /// The reason of each failure on standard error; the caller prints the results of all runs.
    Failures,
    /// No output for each run; the caller prints a summary of all runs.
    Silent,
}

/// A check before each round. `Err` contains the reason why no further round may run.
pub type BudgetCheck<'a> = Box<dyn FnMut() -> Result<(), String> + 'a>;

/// Shows the progress of rounds in the terminal.
pub struct ProgressUi<'a> {
    progress_style: OutputStyle,
    budget_check: BudgetCheck<'a>,
    bar: ProgressBar,
    /// Label of the corpus whose preparation the bar shows; `None` if the bar shows phases or only a spinner.
    preparing: Option<String>,
    /// Number of phases of a run, and number of phases that have started; `None` if the number of phases is
    /// unknown.
    phases: Option<(u64, u64)>,
}

impl<'a> ProgressUi<'a> {
    /// Creates the display. The bar stays hidden until the first progress is reported.
    pub fn new(style: OutputStyle, check: BudgetCheck<'a>) -> Self {
        Self {
            progress_style: style,
            budget_check: check,
            bar: ProgressBar::hidden(),
            preparing: None,
            phases: None,
        }
    }

    /// Creates the display for runs with this many phases each. The bar shows the number of finished phases.
    pub fn with_phases(style: OutputStyle, check: BudgetCheck<'a>, phases: u64) -> Self {
        Self { phases: Some((phases, 0)), ..Self::new(style, check) }
    }

    /// Removes the bar from the terminal.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn show_failure(&self, stored: &StoredRun) {
        if let Some(failure) = &stored.run.failure {
            let text = format!("longhaul: {}: {}", stored.run.target, failure.message);
            self.bar.suspend(|| crate::output::print_error(text));
        }
    }

    fn show_spinner(&mut self, text: String) {
        if self.preparing.take().is_some() || self.bar.is_finished() || self.bar.is_hidden() {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(self.phases.map_or(0, |(phases, _)| phases));
            let bar = if self.phases.is_some() { "[{bar:24}] {pos}/{len} " } else { "" };
            self.bar.set_style(
                progress_style(&format!("{{spinner}} {bar}{{msg}}  {{elapsed}}")).progress_chars("=> "),
            );
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
        self.bar.set_message(visible(&text));
        if let Some((_, begun)) = self.phases {
            self.bar.set_position(begun);
        }
    }
}

fn progress_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl WorkerObserver for ProgressUi<'_> {
    fn progress(&mut self, target: &TargetName, progress: &Progress) {
        let what = format!("{target}: {}", progress.item);
        if self.preparing.as_deref() != Some(what.as_str()) {
            self.bar.finish_and_clear();
            self.bar = ProgressBar::new(progress.bytes_total);
            let bar = "{msg} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
            self.bar.set_style(progress_style(bar).progress_chars("=> "));
            self.bar.set_position(progress.bytes);
            self.bar.reset_eta();
            self.preparing = Some(what.clone());
        }
        let files = format!("{what} {}/{} files", progress.files, progress.files_total);
        self.bar.set_message(visible(&files));
        self.bar.set_position(progress.bytes);
    }

    fn phase_started(&mut self, target: &TargetName, name: &str) {
        self.show_spinner(format!("{target}: {name}"));
        self.phases = self.phases.map(|(phases, begun)| (phases, begun + 1));
    }
}

impl RoundObserver for ProgressUi<'_> {
    fn run_started(&mut self, target: &Target, workload: &str) {
        self.phases = self.phases.map(|(phases, _)| (phases, 0));
        self.show_spinner(format!("{}: {workload}", target.name));
    }

    fn run_ended(&mut self, stored: &StoredRun) {
        let text = match self.progress_style {
            OutputStyle::ShortLines => line(&progress_line(stored, ProgressDetail::Short)),
            OutputStyle::Lines => line(&progress_line(stored, ProgressDetail::Figures)),
            OutputStyle::Json => json::run(stored).to_string(),
            OutputStyle::Failures => return self.show_failure(stored),
            OutputStyle::Silent => return,
        };
        self.bar.suspend(|| crate::output::println!("{text}"));
    }

    fn round_started(&mut self, number: i64, index: u32, rounds: u32) {
        let stored_as = match self.progress_style {
            OutputStyle::Lines => format!(" (number {number})"),
            OutputStyle::ShortLines => String::new(),
            OutputStyle::Json | OutputStyle::Failures | OutputStyle::Silent => return,
        };
        self.bar.suspend(|| crate::output::println!("round {} of {rounds}{stored_as}", index + 1));
    }

    fn may_continue(&mut self, _place: u32) -> bool {
        match (self.budget_check)() {
            Ok(()) => true,
            Err(reason) => {
                self.bar.suspend(|| {
                    crate::output::eprintln!("longhaul: stopped before the next round: {reason}")
                });
                false
            }
        }
    }
}

/// Returns the reason why no further round may run: the byte budget of a target is used up.
pub fn budget_exceeded_text(target: &TargetName, used: u64, budget: u64) -> String {
    format!(
        "`{target}`: {} read and written in the last 24 hours; the configuration allows {}",
        units::bytes(used as f64),
        units::bytes(budget as f64)
    )
}
