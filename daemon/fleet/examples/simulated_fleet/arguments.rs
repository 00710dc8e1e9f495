//! The command line.

use std::path::PathBuf;

use anyhow::Context as _;

/// Size of the fleet, and the folder to write to.
pub struct Arguments {
    pub machines: u64,
    pub weeks: u32,
    pub folder: PathBuf,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut parsed = Self { machines: 20, weeks: 8, folder: PathBuf::new() };
        while let Some(option) = words.next() {
            let value = words.next().with_context(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--machines" => parsed.machines = value.parse().context("--machines needs a number")?,
                "--weeks" => parsed.weeks = value.parse().context("--weeks needs a number")?,
                "--to" => parsed.folder = value.into(),
                _ => anyhow::bail!("unknown option {option}: use --machines, --weeks and --to"),
            }
        }
        anyhow::ensure!(parsed.folder.is_absolute(), "give an absolute path with --to");
        Ok(parsed)
    }
}
