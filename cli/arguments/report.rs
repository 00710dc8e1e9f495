//! Arguments of `report` and `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::civil::Date;
use longhaul_analysis::summary::Week;
use longhaul_export::Format;
use longhaul_model::TargetName;

use super::day;
use super::fleet::FleetArgs;
use super::merge::ShareArgs;
use super::values::{format_of_file, named};

/// Arguments of `report`.
#[derive(Args)]
pub struct ReportArgs {
    /// The ISO week, as in 2026-W46 [default: the newest one with a round].
    pub week: Option<Week>,
    /// Show one pair of shares in depth, as in smb,nfs.
    #[arg(long, value_name = "A,B")]
    pub pair: Option<PairArg>,
    /// With --pair: only this task.
    #[arg(long, value_name = "NAME", requires = "pair")]
    pub workload: Option<String>,
    /// With --pair: only rounds from this day on.
    #[arg(long, value_name = "DATE", requires = "pair", value_parser = day)]
    pub since: Option<Date>,
    /// With --pair: compare before and after this day, or before and after the latest event of this kind (`longhaul events --json` has
    /// the kinds).
    #[arg(long, value_name = "DATE|EVENT", requires = "pair")]
    pub at: Option<String>,
    /// Format of the report [default: that of --output by its name, else text].
    #[arg(long, value_enum)]
    pub format: Option<ReportFormat>,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// File to write; an existing one is replaced [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave out all names, also those of targets unless they are only a protocol (`nfs4`), for publishing.
    #[arg(long, conflicts_with = "pair")]
    pub anonymous: bool,
    /// Make the report from this file, which `longhaul export runs` wrote, instead of the database.
    #[arg(long, value_name = "FILE")]
    pub from_export: Option<PathBuf>,
    /// Print everything: failures, all times, scores, events, the method.
    #[arg(long, short)]
    pub verbose: bool,
    /// Exit with code 0 if every pair is decided, and with 5 if not.
    #[arg(long)]
    pub exit_code: bool,
}

impl ReportArgs {
    /// Returns the requested format: JSON for `--json`, that of `--format`, or that of the file by its name.
    pub fn chosen_format(&self) -> ReportFormat {
        let given = self.json.then_some(ReportFormat::Json).or(self.format);
        given.or_else(|| format_of_file(self.output.as_deref())).unwrap_or(ReportFormat::Text)
    }
}

/// A format of reports.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// Text for the terminal.
    Text,
    /// Markdown, for a forum.
    Md,
    /// A single HTML page without scripts and external files.
    Html,
    /// A picture with the answer and the typical times, to share; needs --output.
    Png,
    /// JSON, for programs.
    Json,
}

/// Two targets, written as A,B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairArg {
    /// Name of the first target.
    pub a: TargetName,
    /// Name of the second target.
    pub b: TargetName,
}

impl std::str::FromStr for PairArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (a, b) = text.split_once(',').ok_or("write it as A,B, as in smb,nfs")?;
        let name = |name: &str| {
            name.trim().parse().map_err(|error: longhaul_model::TargetNameError| error.to_string())
        };
        Ok(Self { a: name(a)?, b: name(b)? })
    }
}

/// The kinds of data that can be exported.
#[derive(ValueEnum, Clone, Copy)]
pub enum ExportKind {
    /// All data that verdicts are computed from: one row per run, target, epoch, round, event and day of freshness.
    Runs,
    /// One row per operation of each phase of each run, with its histogram.
    Ops,
    /// The events that may have changed results.
    Events,
    /// One row per change that was made elsewhere, with the time until it was visible.
    Freshness,
    /// One row per target and protocol: what was verified since the beginning.
    Integrity,
    /// One row per property of files and target: the last check.
    Fidelity,
    /// One anonymous file of this machine for `longhaul merge`; it is shown before it is written.
    Share,
    /// All of it, into one folder or bucket for many machines: see --to.
    Fleet,
}

/// Formats of exports with their names and help.
const EXPORT_FORMATS: &[(Format, &str, &str)] = &[
    (Format::Csv, "csv", "Comma-separated values with a header row"),
    (Format::Json, "json", "JSON Lines, one object per row"),
    (Format::Parquet, "parquet", "Apache Parquet; needs --output"),
];

/// Arguments of `export`.
#[derive(Args)]
pub struct ExportArgs {
    /// The data to export.
    #[arg(value_enum)]
    pub what: ExportKind,
    /// The file to write, with share.
    #[arg(value_name = "FILE", conflicts_with = "output")]
    pub file: Option<PathBuf>,
    /// The file format; share and fleet have their own [default: that of --output by its name, else csv].
    #[arg(long, value_parser = named(EXPORT_FORMATS))]
    pub format: Option<Format>,
    /// Start of the period: a day, such as 2026-11-09, or a time, such as 2026-11-09T18:00:00+01:00. Earlier rounds are
    /// left out.
    #[arg(long, value_name = "DATE")]
    pub from: Option<String>,
    /// End of the period: the first day or time that is left out. With `fleet`: the folder, or s3://bucket/path.
    #[arg(long, value_name = "DATE")]
    pub to: Option<String>,
    /// File to write; an existing one is replaced [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Options of share.
    #[command(flatten)]
    pub share: ShareArgs,
    /// Options of `fleet`.
    #[command(flatten)]
    pub fleet: FleetArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn report_has_the_format_of_its_file() {
        let of = |name: &str| format_of_file::<ReportFormat>(Some(Path::new(name)));
        assert_eq!(
            ["a.html", "a.MD", "a.png", "a.json"].map(of),
            [
                Some(ReportFormat::Html),
                Some(ReportFormat::Md),
                Some(ReportFormat::Png),
                Some(ReportFormat::Json)
            ]
        );
        assert_eq!(["a", "a.txt", "html"].map(of), [None; 3]);
    }

    #[test]
    fn pair_needs_two_names() {
        let pair: PairArg = "smb, nfs".parse().unwrap();
        assert_eq!((pair.a.as_str(), pair.b.as_str()), ("smb", "nfs"));
        for bad in ["smb", "smb,", ",nfs", "a/b,c"] {
            assert!(bad.parse::<PairArg>().is_err(), "{bad}");
        }
    }
}
