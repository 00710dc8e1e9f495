//! Values and options that several commands share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{
    OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser,
    ValueParserFactory,
};
use clap::{Args, ValueEnum};
use jiff::civil::Date;
use longhaul_model::{Scale, TargetName};

/// A target on the command line, parsed from `NAME=PATH`.
#[derive(Debug, Clone)]
pub struct NamedPath {
    /// Name of the target.
    pub name: TargetName,
    /// Path as it was written on the command line.
    pub path: PathBuf,
}

impl std::str::FromStr for NamedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, path) = text.split_once('=').ok_or("write it as NAME=PATH, as in smb=/Volumes/media")?;
        if path.is_empty() {
            return Err("the path is missing: write it as NAME=PATH".to_owned());
        }
        let name = name.parse().map_err(|error: longhaul_model::TargetNameError| error.to_string())?;
        Ok(Self { name, path: path.into() })
    }
}

impl ValueParserFactory for NamedPath {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        let parse = |text: OsString| match text.to_str() {
            Some(text) => text.parse::<Self>(),
            None => {
                Err("the path is not UTF-8, which configurations and exports need. Rename the folder, or \
                         measure another one"
                    .to_owned())
            }
        };
        ValueParser::new(OsStringValueParser::new().try_map(parse))
    }
}

/// Scales with their names and help.
pub const SCALES: &[(Scale, &str, &str)] = &[
    (Scale::Quick, "quick", "Small test data; short rounds"),
    (Scale::Standard, "standard", "Test data with the parameters of the reference workloads"),
    (Scale::Large, "large", "Large test data: 100,000 files"),
];

/// Returns a parser of values that are chosen by name. Each value is followed by its name and its help.
pub fn named<T: Copy + Send + Sync + 'static>(
    values: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let names = values.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(move |text| {
        let found = values.iter().find(|(_, name, _)| *name == text);
        found.map(|(value, ..)| *value).ok_or("no value has this name")
    })
}

/// Parses a whole number. The error says what to write, unlike that of the standard library.
pub fn whole_number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "write a whole number".to_owned())
}

/// Parses a day. The error says what to write, unlike that of the library.
pub fn day(text: &str) -> Result<Date, String> {
    text.parse().map_err(|_| "write it as year, month and day, as in 2026-11-02".to_owned())
}

/// Returns the format that a file has by the end of its name, if it is one of `F`.
pub fn format_of_file<F: ValueEnum>(path: Option<&Path>) -> Option<F> {
    F::from_str(path?.extension()?.to_str()?, true).ok()
}

/// Arguments of commands that only print.
#[derive(Args)]
pub struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A duration on the command line, in whole seconds. jiff's parser of durations does not fit: its `SignedDuration` knows
/// no days, and its `Span` accepts texts that are refused here, such as `2 h` and `2w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurationArg(pub u32);

impl std::str::FromStr for DurationArg {
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
        if digits.is_empty() || digits.contains(|c: char| !c.is_ascii_digit()) {
            return Err("write it as 90s, 30m, 2h or 1d".to_owned());
        }
        let seconds = digits.parse::<u32>().ok().and_then(|count| count.checked_mul(seconds_each));
        let seconds = seconds.ok_or("it is too long: at most 49710d".to_owned())?;
        if seconds > 0 { Ok(Self(seconds)) } else { Err("it must be longer than zero".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_needs_a_unit() {
        assert_eq!("2h".parse(), Ok(DurationArg(7200)));
        assert_eq!("30m".parse(), Ok(DurationArg(1800)));
        for bad in ["2", "h", "0m", "-1h", "2 h", "99999999d", "2w", ""] {
            assert!(bad.parse::<DurationArg>().is_err(), "{bad}");
        }
    }

    #[test]
    fn target_needs_a_name_and_a_path() {
        assert!("smb=/Volumes/a=b".parse::<NamedPath>().is_ok_and(|target| target.path.ends_with("a=b")));
        for bad in ["smb", "smb=", "=x", "a/b=/x"] {
            assert!(bad.parse::<NamedPath>().is_err(), "{bad}");
        }
    }
}
