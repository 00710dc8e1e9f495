//! The names of the workloads of a round.

use longhaul_measure::workloads::{READ_BACK, Workload as _};
use longhaul_presets::catalog;

use super::value::{InvalidValue, did_you_mean};

/// Returns the names of the workloads, each once.
pub(super) fn parse_workloads(
    names: toml::Spanned<Vec<toml::Spanned<String>>>,
) -> Result<Vec<String>, InvalidValue> {
    let offset = names.span().start;
    let mut parsed: Vec<String> = vec![];
    for name in names.into_inner() {
        let name = parse_workload(name)?;
        if !parsed.contains(&name) {
            parsed.push(name);
        }
    }
    let message = "a round needs at least one task; without this line it has all";
    if parsed.is_empty() { Err(InvalidValue::new(offset, message)) } else { Ok(parsed) }
}

fn parse_workload(name: toml::Spanned<String>) -> Result<String, InvalidValue> {
    let offset = name.span().start;
    let name = name.into_inner();
    if name == READ_BACK.name() {
        let message = format!("`{name}` compares no targets: `longhaul integrity --check` makes it");
        return Err(InvalidValue::new(offset, message));
    }
    if catalog().find(&name).is_some() {
        return Ok(name);
    }
    let names: Vec<&str> = catalog().workloads.iter().map(|workload| workload.name()).collect();
    let message = format!("there is no task `{name}`{}", did_you_mean(&name, &names));
    Err(InvalidValue::new(offset, message))
}
