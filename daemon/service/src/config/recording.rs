//! The `[recording]` section: the recording that rounds replay.

use serde::Deserialize;

use super::value::InvalidValue;
use crate::recordings::RecordingName;

/// The `[recording]` section as written, before its values are validated.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FileRecording {
    replay: Option<toml::Spanned<String>>,
}

impl FileRecording {
    /// Returns the name of the recording that rounds replay; `None` if they replay none.
    pub(super) fn validate(self) -> Result<Option<RecordingName>, InvalidValue> {
        let parse = |name: toml::Spanned<String>| {
            let offset = name.span().start;
            name.into_inner().parse().map_err(|error| InvalidValue::new(offset, format!("`replay`: {error}")))
        };
        self.replay.map(parse).transpose()
    }
}
