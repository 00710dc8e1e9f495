//! Checks a file of a collection: can it be read, and can its rows be what a machine exported?

use longhaul_model::Timestamp;

use super::fleet_table::FleetTable;
use super::plausible::is_plausible;
use crate::read::scan_parquet;
use crate::table::Cell;

/// Columns that hold a time.
const TIMES: [&str; 2] = ["started_us", "at_us"];
/// Columns in which a number is never negative.
const AMOUNTS: [&str; 11] = [
    "seconds",
    "calls",
    "errors",
    "sum_ns",
    "min_ns",
    "max_ns",
    "bytes",
    "wire_bytes",
    "files",
    "mismatches",
    "timeouts",
];

/// Position of a file in a collection, and the time of the check.
#[derive(Debug, Clone, Copy)]
pub struct FileLocation<'a> {
    /// Table that the file belongs to.
    pub table: FleetTable,
    /// Source that its folder is named after.
    pub source: &'a str,
    /// Time of the check: later records are impossible.
    pub now: Timestamp,
}

/// Returns the number of rows of a file.
///
/// # Errors
///
/// The reason why the file must not count, as text for the user.
pub fn inspect(bytes: &[u8], place: &FileLocation<'_>) -> Result<u64, String> {
    let mut problem: Option<String> = None;
    let mut row = 0u64;
    let rows = scan_parquet(bytes, |names, cells| {
        row += 1;
        if problem.is_none() {
            let missing = if row == 1 { missing_column(names, place) } else { None };
            problem = missing
                .or_else(|| problem_of_row(names, cells, place).map(|why| format!("row {row}: {why}")));
        }
    });
    let rows = rows.map_err(|reason| format!("it is damaged or incomplete ({reason})"))?;
    problem.map_or(Ok(rows), Err)
}

fn missing_column(names: &[String], place: &FileLocation<'_>) -> Option<String> {
    let has = |wanted: &&str| names.iter().any(|name| name == wanted);
    let missing = place.table.key_columns().iter().copied().find(|wanted| !has(wanted))?;
    Some(format!("it has no column `{missing}`"))
}

fn problem_of_row(names: &[String], cells: &[Cell<'static>], place: &FileLocation<'_>) -> Option<String> {
    names.iter().zip(cells).find_map(|(name, cell)| match (name.as_str(), cell) {
        ("source", Cell::Text(source)) if source != place.source => {
            Some(format!("it was copied from the folder of machine {source}"))
        }
        (time, Cell::Integer(at))
            if TIMES.contains(&time) && !is_plausible(Timestamp::from_us(*at), place.now) =>
        {
            Some(format!("{time} is before 2020 or in the future"))
        }
        (amount, Cell::Integer(number)) if AMOUNTS.contains(&amount) && *number < 0 => {
            Some(format!("{amount} is negative"))
        }
        (amount, Cell::Real(number))
            if !number.is_finite() || (AMOUNTS.contains(&amount) && *number < 0.0) =>
        {
            Some(format!("{amount} is negative or not a number"))
        }
        _ => None,
    })
}

#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests {
    use super::super::encode::encode;
    use super::*;
    use crate::table::{Definition, Kind};

    const LOCATION: FileLocation<'static> = FileLocation {
        table: FleetTable::Integrity,
        source: "c0ffee-0001",
        now: Timestamp::from_us(1_764_000_000_000_000),
    };

    /// Inspects a table with one row. Its columns are those of the integrity table except one, and these.
    fn inspected(columns: &[(Definition, Cell<'static>)], left_out: &str) -> Result<u64, String> {
        let is_other =
            |name: &&str| *name != left_out && columns.iter().all(|((column, ..), _)| column != name);
        let mut row: Vec<(Definition, Cell<'static>)> = columns.to_vec();
        let others = FleetTable::Integrity.column_names().into_iter().filter(is_other);
        row.extend(others.map(|name| {
            let source = Cell::text("c0ffee-0001".to_owned());
            ((name, Kind::Text, ""), if name == "source" { source } else { Cell::Null })
        }));
        let definitions: Vec<Definition> = row.iter().map(|(definition, _)| *definition).collect();
        let cells: Vec<Cell<'static>> = row.into_iter().map(|(_, cell)| cell).collect();
        let file = encode(&definitions, |sink| sink.row(&cells)).unwrap();
        assert!(file.bytes.len() < 1 << 20, "small on the disk");
        inspect(&file.bytes, &LOCATION)
    }

    fn refused(columns: &[(Definition, Cell<'static>)]) -> String {
        inspected(columns, "").unwrap_err()
    }

    #[test]
    fn only_columns_of_the_key_are_required() {
        assert_eq!(inspected(&[], "wire_bytes"), Ok(1), "it was added after the file was written");
        assert_eq!(inspected(&[], "run"), Err("it has no column `run`".to_owned()));
    }

    #[test]
    fn duration_that_is_not_a_number_is_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let reason = problem_of_row(&["seconds".to_owned()], &[Cell::Real(bad)], &LOCATION);
            assert_eq!(reason.unwrap(), "seconds is negative or not a number");
        }
        assert_eq!(
            refused(&[(("seconds", Kind::Real, ""), Cell::Real(-1.0))]),
            "row 1: seconds is negative or not a number"
        );
    }

    fn assert_too_large(kind: Kind, huge: Cell<'static>) {
        let reason = refused(&[(("note", kind, ""), huge)]);
        assert!(reason.contains("larger than any that longhaul exports"), "{reason}");
    }

    #[test]
    fn small_file_with_a_huge_text_is_refused() {
        assert_too_large(Kind::Text, Cell::text("0".repeat(300 << 20)));
    }

    #[test]
    fn small_file_with_many_numbers_is_refused() {
        assert_too_large(Kind::Integers, Cell::Integers(vec![0; 20 << 20].into()));
    }
}
