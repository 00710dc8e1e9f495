//! What `longhaul doctor` asks the service.

use super::Service;
use crate::status::Check;

impl Service {
    /// Looks at everything that has to be right for rounds to be made.
    pub(super) fn examine(&mut self) -> Vec<Check> {
        vec![]
    }
}
