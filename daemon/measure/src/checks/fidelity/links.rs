//! Checks of hard links and symbolic links.

use super::answer::Answer;
use super::names::{FILE, OTHER};
use super::property_folder::PropertyFolder;
use crate::error::RunError;
use crate::platform::EntryKind;

/// Content of the file before and after it is written through its second name; both are equally long.
const CONTENTS: [&[u8]; 2] = [b"first", b"other"];

pub fn hard_link(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, CONTENTS[0], context)?;
    if let Err(error) = context.link(place.folder(), FILE, OTHER) {
        return Answer::refused(error);
    }
    place.reopen()?;
    let links = place.facts(FILE)?.links;
    let second = place.open(OTHER)?;
    let written = context.write_all(&second, CONTENTS[1], 0);
    context.close(second)?;
    match written {
        // A mount that cannot write in place (gvfs) has only the link count to judge by.
        Err(error) if !error.is_unsupported() && links != 2 => return Err(error),
        _ => {}
    }
    let (content, _) = place.read_evicted(FILE, 0, CONTENTS[1].len())?;
    Ok(judge_links(links, content == CONTENTS[1]).read_from(place.facts_source()))
}

fn judge_links(links: u64, is_shared: bool) -> Answer {
    match (links, is_shared) {
        (2, true) => Answer::kept(""),
        (_, true) => Answer::changed(format!("one file with two names, but its link count is {links}")),
        (_, false) => Answer::lost("the second name is a copy"),
    }
}

pub fn symbolic_link(place: &mut PropertyFolder<'_>) -> Result<Answer, RunError> {
    let context = place.context;
    place.files.write(FILE, CONTENTS[0], context)?;
    if let Err(error) = context.symlink(place.folder(), FILE, OTHER) {
        return Answer::refused(error);
    }
    place.reopen()?;
    let kind = place.facts(OTHER)?.kind;
    let answer = match (kind, context.read_link(place.folder(), OTHER)) {
        (EntryKind::Symlink, Ok(found)) if found.as_c_str() == FILE => Answer::kept(""),
        (EntryKind::Symlink, Ok(_)) => Answer::changed("it leads to another name"),
        (EntryKind::Symlink, Err(error)) => Answer::changed(format!(
            "its destination cannot be read: {}",
            crate::selfcheck::error_text(&error)
        )),
        _ => Answer::lost("a file in place of a link"),
    };
    Ok(answer.read_from(place.facts_source()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_model::KeepResult;

    #[test]
    fn second_name_with_content_of_its_own_is_lost() {
        assert_eq!(judge_links(2, true).result, KeepResult::Kept);
        assert_eq!(judge_links(1, true).result, KeepResult::Changed);
        assert_eq!(judge_links(1, false).result, KeepResult::Lost);
    }
}
