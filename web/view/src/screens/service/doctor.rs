//! The checks of `longhaul doctor`.

use longhaul_model::status::{Check, CheckStatus};

use crate::document::Document;
use crate::table::Table;
use crate::text::{Text, Tone};

/// Returns the checks as a table, each followed by what to do about it.
pub fn checks<'c>(checks: impl IntoIterator<Item = &'c Check>) -> Document {
    let mut table = Table::new("Checks").words(["result", "check", "finding"]);
    for check in checks {
        table.row([result(check.status), check.name.as_str().into(), check.message.as_str().into()]);
        if let Some(fix) = &check.fix {
            table.row(["", "", &capitalized(fix)]);
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

/// Returns the text with its first letter in upper case: advice is written to follow other words too.
fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}
