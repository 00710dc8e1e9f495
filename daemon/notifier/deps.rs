//! Dependencies of the notifier.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_service::handle::ServiceHandle;
use longhaul_store::SharedWriter;

/// Dependencies of the notifier.
pub struct NotifierDeps {
    /// Path of the database, which has the queue.
    pub database: PathBuf,
    /// Writer of the database.
    pub writer: SharedWriter,
    /// Handle of the service, for its status.
    pub handle: Arc<ServiceHandle>,
}
