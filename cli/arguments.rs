//! The command line.

mod classic;
mod otel;
mod sampling;
mod selfcheck;
mod weekly;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser, ValueParser, ValueParserFactory};
use clap::{Args, Parser, Subcommand, ValueEnum};
use longhaul_measure::model::{Scale, TargetName};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_service::config::LEVELS;

use crate::bench::BenchCommand;
use crate::commands::{Doing, Init, Logs, Uninstall};
pub use classic::{Classic, ClassicCommand, ProfileCommand};
pub use otel::OtelCommand;
pub use sampling::{Samples, Window};
pub use selfcheck::SelfCheckArguments;
pub use weekly::{Compare, Evidence, Export, ExportedArgument, Report, Verdict, WeekArguments};

/// longhaul measures network drives by doing real tasks on them, and says what the numbers carry.
#[derive(Parser)]
#[command(name = "longhaul", version, about, max_term_width = 100)]
pub struct Arguments {
    /// What is asked for everywhere.
    #[command(flatten)]
    pub shared: Shared,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What is asked for everywhere.
#[derive(Args, Clone)]
pub struct Shared {
    /// The database [default: in the platform's data folder].
    #[arg(long, global = true, value_name = "PATH")]
    pub database: Option<PathBuf>,
    /// The configuration file [default: config.toml in the platform's configuration folder, if it is there].
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// A guided first run: finds the network drives, asks what to compare, and writes the configuration.
    Init(Init),
    /// Two short rounds of all tasks on the local disk and on each target given; leaves only the database behind.
    Try(Try),
    /// What is mounted here, by which protocol, negotiated how; no mount is touched.
    Targets(Listing),
    /// Randomised rounds of all tasks on all targets, in the foreground.
    #[command(after_help = workload_list())]
    Run(Run),
    /// A tool that people quote (dd, blogbench, bonnie++, AJA, ...), reproduced, with all that it does not tell.
    Classic(Classic),
    /// A task of your own, as data.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// What all runs say: per task and target, cold and warm apart, paired by round.
    Summary(Summary),
    /// The weekly summary: what may be said about each pair and task, and what the week was like.
    Week(WeekArguments),
    /// Two shares in depth: every task, day by day, before and after an event.
    Compare(Compare),
    /// The headline of each pair, for scripts.
    Verdict(Verdict),
    /// A week to be passed on: Markdown for a forum, a page, or a file for somebody else's longhaul. It names nobody.
    Report(Report),
    /// The runs in the database.
    Runs(Runs),
    /// One run in full: phases, operations, errors, conditions.
    Show(Show),
    /// How the shares felt, and what moved on them, all day long.
    Samples(Samples),
    /// The ledger of waits: when a share kept somebody waiting, and for how long.
    Stalls(Window),
    /// The journal: what changed, and when.
    Events(Window),
    /// What is kept, as a file for other programs, and from which every verdict can be recomputed.
    Export(Export),
    /// The OpenTelemetry collector that rounds are exported to.
    #[command(subcommand)]
    Otel(OtelCommand),
    /// Removes what longhaul keeps on a target; lists it first and asks.
    Clean(Clean),
    /// The configuration: prints a commented sample, or checks a file.
    Config(Config),
    /// Has longhaul measure in the background, from now on and after each login.
    Install(Doing),
    /// Takes the background service away; with --purge, everything of longhaul.
    Uninstall(Uninstall),
    /// Starts the background service.
    Start(Doing),
    /// Stops the background service until it is started, or until the next login.
    Stop(Doing),
    /// Stops the background service and starts it.
    Restart(Doing),
    /// What the background service says.
    Logs(Logs),
    /// How the background service goes: problems, targets, rounds.
    Status(StatusArguments),
    /// Makes no rounds for a while; one in progress is cut short.
    Pause(Pause),
    /// Makes rounds again.
    Resume,
    /// Rounds of the background service.
    #[command(subcommand)]
    Round(RoundCommand),
    /// Changes what the background service's log says, until it is restarted.
    LogLevel {
        /// The level.
        #[arg(value_parser = LEVELS)]
        level: String,
    },
    /// Checks everything that measuring needs, as the background service sees it; one line each, with its fix.
    Doctor(Listing),
    /// Makes every system call that longhaul uses once, on this machine and in each target, and prints a table for an issue.
    Selfcheck(SelfCheckArguments),
    /// A live view of the background service; `q` leaves it.
    Top,
    /// The address of the page; opened within a minute, it lets this browser pause, resume and make rounds.
    Page,
    /// The process that touches one target. Started by longhaul itself.
    #[command(hide = true)]
    Worker,
    /// Our side of the comparisons with other tools; used by the scripts in tests/bench/.
    #[command(hide = true, subcommand)]
    Bench(BenchCommand),
}

/// `name=path`, parsed.
#[derive(Debug, Clone)]
pub struct TargetArgument {
    /// The name.
    pub name: TargetName,
    /// The path as it was written.
    pub path: PathBuf,
}

impl std::str::FromStr for TargetArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, path) = text.split_once('=').ok_or("write it as NAME=PATH, as in smb=/Volumes/media")?;
        if path.is_empty() {
            return Err("the path is missing: write it as NAME=PATH".to_owned());
        }
        let name =
            name.parse().map_err(|error: longhaul_measure::model::TargetNameError| error.to_string())?;
        Ok(Self { name, path: path.into() })
    }
}

impl ValueParserFactory for TargetArgument {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        let parse = |text: OsString| match text.to_str() {
            Some(text) => text.parse::<Self>(),
            None => Err(
                "the path is not UTF-8, which a configuration and exports have to be. Rename the folder, or \
                 measure another one"
                    .to_owned(),
            ),
        };
        ValueParser::new(OsStringValueParser::new().try_map(parse))
    }
}

/// A scale on the command line.
#[derive(ValueEnum, Clone, Copy)]
pub enum ScaleArgument {
    /// Minutes in all.
    Quick,
    /// The parameters of the reference workloads.
    Standard,
    /// 100,000 files.
    Large,
}

impl From<ScaleArgument> for Scale {
    fn from(argument: ScaleArgument) -> Self {
        match argument {
            ScaleArgument::Quick => Self::Quick,
            ScaleArgument::Standard => Self::Standard,
            ScaleArgument::Large => Self::Large,
        }
    }
}

/// Arguments of `try`.
#[derive(Args)]
pub struct Try {
    /// A folder to measure beside the local disk, as NAME=PATH; may be given several times.
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<TargetArgument>,
    /// Keep the test data on the targets.
    #[arg(long)]
    pub keep: bool,
}

/// Arguments of lists.
#[derive(Args)]
pub struct Listing {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `run`.
#[derive(Args)]
pub struct Run {
    /// A folder to measure, as NAME=PATH; may be given several times [default: the targets of the configuration].
    #[arg(long = "target", value_name = "NAME=PATH")]
    pub targets: Vec<TargetArgument>,
    /// A task to run; may be given several times [default: those of the configuration, else all].
    #[arg(long = "workload", value_name = "NAME")]
    pub workloads: Vec<String>,
    /// How many rounds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// How large the test data is.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArgument>,
    /// After how many seconds a run is booked as hung [default: 900].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub cap: Option<u64>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `summary`.
#[derive(Args)]
pub struct Summary {
    /// Runs of this scale [default: that of the last run].
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArgument>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `runs`.
#[derive(Args)]
pub struct Runs {
    /// Only runs on this target.
    #[arg(long, value_name = "NAME")]
    pub target: Option<TargetName>,
    /// Only runs of this task.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// At most this many, the latest; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub last: u32,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `show`.
#[derive(Args)]
pub struct Show {
    /// The run's number, as `longhaul runs` lists it.
    pub run: i64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `clean`.
#[derive(Args)]
pub struct Clean {
    /// The target's name, as in the configuration or the database, or NAME=PATH.
    pub target: String,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `status`.
#[derive(Args)]
pub struct StatusArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Again and again, every two seconds.
    #[arg(long)]
    pub watch: bool,
}

/// Arguments of `pause`.
#[derive(Args)]
pub struct Pause {
    /// For how long, as 30m, 2h or 1d [default: until `longhaul resume`].
    #[arg(long = "for", value_name = "DURATION")]
    pub duration: Option<Seconds>,
}

/// What to do with rounds.
#[derive(Subcommand)]
pub enum RoundCommand {
    /// Makes one as soon as none is in progress; only the budget can forbid it.
    Now,
}

/// A duration on the command line, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub u32);

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len());
        let seconds_each = match unit {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return Err("write it as 90s, 30m, 2h or 1d".to_owned()),
        };
        let seconds = digits.parse::<u32>().ok().and_then(|count| count.checked_mul(seconds_each));
        seconds.filter(|seconds| *seconds > 0).map(Self).ok_or("write it as 90s, 30m, 2h or 1d".to_owned())
    }
}

/// Arguments of `config`.
#[derive(Args)]
pub struct Config {
    /// Print a commented sample with every key.
    #[arg(long)]
    pub print: bool,
}

fn workload_list() -> String {
    let lines = WORKLOADS.iter().map(|workload| format!("  {:<24}{}", workload.name(), workload.summary()));
    format!("Tasks:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_names_every_workload() {
        assert!(WORKLOADS.iter().all(|workload| workload_list().contains(workload.name())));
    }

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!("2h".parse(), Ok(Seconds(7200)));
        assert_eq!("30m".parse(), Ok(Seconds(1800)));
        for bad in ["2", "h", "0m", "-1h", "2 h", "99999999d", "2w", ""] {
            assert!(bad.parse::<Seconds>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_target_is_a_name_and_a_path() {
        assert!(
            "smb=/Volumes/a=b".parse::<TargetArgument>().is_ok_and(|target| target.path.ends_with("a=b"))
        );
        for bad in ["smb", "smb=", "=x", "a/b=/x"] {
            assert!(bad.parse::<TargetArgument>().is_err(), "{bad}");
        }
    }
}
