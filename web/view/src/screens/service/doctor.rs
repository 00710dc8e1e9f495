//! The checks of `longhaul doctor`.

use longhaul_model::status::{Check, CheckStatus};

use crate::document::Document;
use crate::screens::words;
use crate::table::Table;
use crate::text::{Text, Tone};

/// Returns the checks as a table, each followed by what to do about it.
pub fn checks<'c>(checks: impl IntoIterator<Item = &'c Check>) -> Document {
    let mut table = Table::new("Checks").words(["result", "check", "finding"]);
    for check in checks {
        table.row([result(check.status), check.name.as_str().into(), check.message.as_str().into()]);
        if let Some(fix) = &check.fix {
            table.row(["", "", &words::capitalized(fix)]);
        }
    }
    let mut document = Document::new();
    document.table(table);
    document
}

fn result(status: CheckStatus) -> Text {
    let (word, tone) = match status {
        CheckStatus::Ok => ("ok", Tone::Good),
        CheckStatus::Warning => ("warning", Tone::Warning),
        CheckStatus::Failed => ("failed", Tone::Bad),
        CheckStatus::Unknown => ("unknown", Tone::Warning),
    };
    Text::new().toned(word, tone)
}
