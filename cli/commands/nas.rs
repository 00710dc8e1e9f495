//! `longhaul nas`: reads the NAS of the configuration and shows what it tells.

use std::process::ExitCode;
use std::time::Duration;

use longhaul_nas::{NasError, NasSettings};
use longhaul_service::nas::{NasSample, RUN_LIMIT, sample};
use longhaul_view::Document;
use longhaul_view::json::NasJson;
use longhaul_view::screens;
use longhaul_view::screens::nas::NasView;

use crate::arguments::{GlobalArgs, NasCommand};
use crate::errors::UsageError;
use crate::output_format::OutputFormat;
use crate::{exit, paths};

/// Time between the two readings: from 2 s on, SNMP agents answer with new counters of their disks.
const PAUSE: Duration = Duration::from_secs(3);
/// The error if the configuration names no NAS.
const NOT_CONFIGURED: &str = "no NAS is configured: `longhaul config --print` shows how to add one as [nas]";

/// Runs the subcommand.
pub fn run(shared: &GlobalArgs, command: &NasCommand) -> anyhow::Result<ExitCode> {
    let NasCommand::Check { json } = command;
    let config = paths::load_config(shared)?;
    let settings = config.nas.ok_or_else(|| UsageError(NOT_CONFIGURED.to_owned()))?;
    let found = sample(&settings, PAUSE);
    let form = || json_form(&settings, found.as_ref());
    OutputFormat::from_json_flag(*json).print(form, || screen(&settings, found.as_ref()))?;
    Ok(if found.is_ok() { exit::OK } else { ExitCode::from(exit::RUN_FAILED) })
}

fn screen(settings: &NasSettings, found: Result<&NasSample, &NasError>) -> Document {
    let (kind, address) = (settings.source.kind(), settings.source.address());
    match found {
        Ok(sample) => screens::nas::nas(NasView {
            kind,
            address,
            took_seconds: sample.took.as_secs_f64(),
            limit_seconds: RUN_LIMIT.as_secs_f64(),
            reading: &sample.reading,
            found: sample.found.as_ref(),
        }),
        Err(error) => screens::nas::unread(kind, &error.message),
    }
}

fn json_form(settings: &NasSettings, found: Result<&NasSample, &NasError>) -> NasJson {
    let form = NasJson::new(settings.source.kind(), settings.source.address());
    match found {
        Ok(sample) => NasJson {
            milliseconds: Some(sample.took.as_secs_f64() * 1e3),
            missing: sample.reading.missing(),
            ..form.with_use(sample.found.clone())
        },
        Err(error) => NasJson { problem: Some(error.problem), message: Some(error.message.clone()), ..form },
    }
}
