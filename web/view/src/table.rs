//! Tables as data.

use crate::text::Text;

/// A table with a title for each column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Description of the table in a few words; read out by screen readers.
    pub caption: String,
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows from top to bottom, with one cell for each column. The first cell is the row's title.
    pub rows: Vec<Vec<Text>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Title of the column.
    pub title: String,
    /// Kind of its cells.
    pub kind: ColumnKind,
}

/// Kind of the cells of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Words, aligned left.
    Words,
    /// Numbers with their units, aligned right.
    Figures,
}

impl Table {
    /// Creates a table without columns and rows.
    pub fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..Self::default() }
    }

    /// Adds columns of words.
    pub fn words<'t>(self, titles: impl IntoIterator<Item = &'t str>) -> Self {
        self.with_columns(titles, ColumnKind::Words)
    }

    /// Adds columns of figures.
    pub fn figures<'t>(self, titles: impl IntoIterator<Item = &'t str>) -> Self {
        self.with_columns(titles, ColumnKind::Figures)
    }

    fn with_columns<'t>(mut self, titles: impl IntoIterator<Item = &'t str>, kind: ColumnKind) -> Self {
        self.columns.extend(titles.into_iter().map(|title| Column { title: title.to_owned(), kind }));
        self
    }

    /// Adds a row.
    pub fn row<T: Into<Text>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// Formats the table as comma-separated values (RFC 4180). A cell that a spreadsheet would evaluate as a formula is
    /// prefixed with `'`.
    pub fn csv(&self) -> String {
        let titles = self.columns.iter().map(|column| column.title.clone()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(Text::content).collect());
        std::iter::once(titles).chain(rows).map(|cells: Vec<String>| csv_line(&cells)).collect()
    }
}

fn csv_line(cells: &[String]) -> String {
    cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn csv_cell(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
