//! Options of `export fleet`.

use clap::Args;

/// Options of `export fleet`.
#[derive(Args)]
pub struct FleetArgs {
    /// With `fleet`: name of the site [default: that of the configuration].
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// With `fleet`: begin a collection in a folder that has none. Without it, such a folder is refused: it may be a share that
    /// is not mounted.
    #[arg(long, conflicts_with = "check")]
    pub begin: bool,
    /// With `fleet`: write all weeks again, for a collection from which files were lost.
    #[arg(long)]
    pub again: bool,
    /// With `fleet`: export nothing; read every file of the collection, and list those that must not count.
    #[arg(long, conflicts_with = "again")]
    pub check: bool,
    /// With --check: move the files that must not count to the folder `refused`.
    #[arg(long, requires = "check")]
    pub move_refused: bool,
}

impl FleetArgs {
    /// Returns the name of an option that was given; `None` if none was.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--site", self.site.is_some()),
            ("--begin", self.begin),
            ("--again", self.again),
            ("--check", self.check),
            ("--move-refused", self.move_refused),
        ];
        options.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    }
}
