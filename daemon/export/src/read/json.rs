//! Reads JSON Lines files.

use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::assembler::{Assembler, MAX_ROW_BYTES};
use crate::Error;
use crate::archive::LAYOUT;
use crate::table::{Cell, Kind};

pub(super) fn read(mut input: impl BufRead, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    for at in 1.. {
        line.clear();
        let mut limited = input.by_ref().take(MAX_ROW_BYTES as u64);
        limited.read_until(b'\n', &mut line).map_err(|source| assembler.read_error(source))?;
        match line.trim_ascii() {
            _ if line.is_empty() => break,
            _ if line.len() == MAX_ROW_BYTES => return Err(assembler.row_too_long()),
            [] => {}
            text => match serde_json::from_slice(text) {
                Ok(entries) => add_row(entries, at, assembler)?,
                Err(_) => assembler.skip_row("without a complete JSON object", at),
            },
        }
    }
    Ok(())
}

fn add_row(entries: Map<String, Value>, at: u64, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut cells = assembler.empty_row();
    for (name, value) in entries {
        match LAYOUT.column_index(&name) {
            Some(index) => cells[index] = cell(value, LAYOUT.columns[index].kind),
            None => assembler.skip_value(&name, at),
        }
    }
    assembler.add_row(at, &cells)
}

fn cell(value: Value, kind: Kind) -> Cell<'static> {
    match value {
        value if kind == Kind::Json => Cell::Json(value.to_string().into()),
        Value::Null => Cell::Null,
        Value::String(text) => Cell::text(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, Some(real)) => Cell::Real(real),
            (None, None) => Cell::Json(number.to_string().into()),
        },
        value @ (Value::Bool(_) | Value::Array(_) | Value::Object(_)) => Cell::Json(value.to_string().into()),
    }
}
