//! The output format of a command: text for a user, or JSON for programs.

use longhaul_view::Document;
use serde::Serialize;

use crate::render;

/// The output format of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Readable text.
    Text,
    /// JSON, for programs.
    Json,
}

impl OutputFormat {
    /// Returns the format that the `--json` flag selects.
    pub fn from_json_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a value as JSON, or a screen as text. Only the one that is printed is built.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON.
    pub fn print<T: Serialize>(
        self,
        value: impl FnOnce() -> T,
        screen: impl FnOnce() -> Document,
    ) -> anyhow::Result<()> {
        match self {
            Self::Json => crate::output::println!("{}", serde_json::to_string_pretty(&value())?),
            Self::Text => render::print(&screen()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_not_built_for_text() {
        let value = || -> u8 { unreachable!("text was asked for") };
        OutputFormat::Text.print(value, Document::new).unwrap();
    }
}
