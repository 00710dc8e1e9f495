//! Origin of exported rows.

/// Version of the tables. New columns do not change it; a change of meaning does, and a column that is no longer written.
pub const FLEET_SCHEMA: u64 = 1;

/// Origin of exported rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Source of the rows: one database of one machine. It is the machine id and the start of the database's first run, so that
    /// a machine whose database was replaced is not mistaken for its former self.
    pub source: String,
    /// Random id of the machine.
    pub machine_id: String,
    /// Name of the site, from the administrator's configuration.
    pub site: String,
    /// Name of the machine, from the administrator's configuration; `None` if it has none.
    pub label: Option<String>,
}
