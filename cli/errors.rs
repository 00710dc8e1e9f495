//! Errors of commands: their exit codes and the next step that they name.

use longhaul_model::{Hint, with_causes};
use longhaul_service::config::ConfigError;

use crate::client::ClientError;
use crate::exit;

/// Returns the exit code of a command that failed.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let is_usage =
        error.downcast_ref::<ConfigError>().is_some() || error.downcast_ref::<UsageError>().is_some();
    if let Some(ClientError::NotRunning(_)) = error.downcast_ref::<ClientError>() {
        return exit::NO_SERVICE;
    }
    match error.downcast_ref::<longhaul_store::Error>() {
        Some(longhaul_store::Error::NoDatabase { .. } | longhaul_store::Error::Incomplete { .. }) => {
            exit::NO_DATA
        }
        _ if is_usage => exit::USAGE,
        _ => exit::ERROR,
    }
}

/// Returns the next step that the error, or one of its causes, knows.
pub fn hint(error: &anyhow::Error) -> Option<String> {
    fn hint_as<E: Hint + 'static>(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
        cause.downcast_ref::<E>()?.hint()
    }
    let known = [
        hint_as::<longhaul_store::Error>,
        hint_as::<longhaul_export::Error>,
        hint_as::<longhaul_fleet::Error>,
        hint_as::<longhaul_launchd::PlanError>,
        hint_as::<longhaul_launchd::StepError>,
    ];
    error.chain().find_map(|cause| known.iter().find_map(|hint| hint(cause)))
}

/// Returns the text of an error with its causes, without the next step.
pub fn text(error: &anyhow::Error) -> String {
    with_causes(error.chain())
}

/// Returns text, causes and next step of an error in one line.
pub fn one_line(error: &anyhow::Error) -> String {
    [text(error)].into_iter().chain(hint(error)).collect::<Vec<_>>().join(": ")
}

/// An invalid command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_model::{Mount, Protocol};
    use longhaul_service::database_lock::DatabaseLock;

    use super::*;

    #[test]
    fn database_at_an_automount_may_be_on_a_local_disk() {
        let hint = |protocol| {
            let mounts = [Mount::new("/", "systemd-1", protocol)];
            let error = DatabaseLock::acquire(Path::new("/nonexistent/longhaul.sqlite"), &mounts).err();
            hint(&error.unwrap().into()).unwrap()
        };
        assert!(hint(Protocol::Other("autofs".to_owned())).contains("so that its disk is mounted"));
        assert_eq!(hint(Protocol::Nfs(None)), "give `--database PATH` on a local disk");
    }
}
