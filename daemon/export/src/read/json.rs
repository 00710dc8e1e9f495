//! JSON Lines.

use std::io::{BufRead, Read};

use serde_json::{Map, Value};

use super::ROW_BYTES;
use super::assemble::Assembler;
use crate::Error;
use crate::archive::LAYOUT;
use crate::table::{Cell, Kind};

pub(super) fn read(mut input: impl BufRead, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut line = Vec::new();
    for at in 1.. {
        line.clear();
        let mut limited = input.by_ref().take(ROW_BYTES as u64);
        limited.read_until(b'\n', &mut line).map_err(|source| assembler.unread(source))?;
        match line.trim_ascii() {
            _ if line.is_empty() => break,
            _ if line.len() == ROW_BYTES => return Err(assembler.too_large()),
            [] => {}
            text => match serde_json::from_slice(text) {
                Ok(entries) => take(entries, at, assembler)?,
                Err(_) => assembler.leave_out("that are no JSON object, or are cut short", at),
            },
        }
    }
    Ok(())
}

fn take(entries: Map<String, Value>, at: u64, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut cells = assembler.cells();
    for (name, value) in entries {
        match LAYOUT.place(&name) {
            Some(place) => cells[place] = cell(value, LAYOUT.columns[place].kind),
            None => assembler.leave_out_value(&name, at),
        }
    }
    assembler.take(at, &cells)
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
