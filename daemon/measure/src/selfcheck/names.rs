//! What a share does with names: case, normalization, odd characters, length.

use std::ffi::{CStr, CString};

use crate::error::RunError;
use crate::platform::{self, Wanted};

use super::scratch::Listed;
use super::{Answer, Ask, CheckedTarget, Expectation, Expectations, Scratch, TargetCheck};

/// The calls of this group.
pub const CHECKS: &[TargetCheck] = &[
    TargetCheck {
        call: "case of names",
        expected: Expectations {
            linux: Expectation {
                text: "listed as it was written",
                source: "path_resolution(7), mount.cifs(8)",
            },
            macos: Expectation {
                text: "listed as it was written",
                source: "man getattrlist(2), VOL_CAP_FMT_CASE_PRESERVING",
            },
        },
        ask: Ask::Files(case),
    },
    TargetCheck {
        call: "normalization of names",
        expected: Expectations {
            linux: Expectation {
                text: "found again, listed as it was written or in another form",
                source: "path_resolution(7)",
            },
            macos: Expectation {
                text: "found again, listed as it was written or in another form",
                source: "Apple File System Reference, case and normalization",
            },
        },
        ask: Ask::Files(normalization),
    },
    TargetCheck {
        call: "odd characters in names",
        expected: Expectations {
            linux: Expectation { text: "each kept or refused, none changed", source: "path_resolution(7)" },
            macos: Expectation {
                text: "each kept or refused, none changed",
                source: "SMBClient kernel/smbfs/smbfs_subr.c; xnu bsd/vfs/vfs_utfconv.c",
            },
        },
        ask: Ask::Files(odd_characters),
    },
    TargetCheck {
        call: "longest name",
        expected: Expectations {
            linux: Expectation { text: "255 bytes", source: "NAME_MAX, limits.h(0p)" },
            macos: Expectation { text: "255 bytes", source: "xnu bsd/sys/syslimits.h, NAME_MAX" },
        },
        ask: Ask::Files(longest),
    },
];

const UPPER: &CStr = c"Case";
const LOWER: &CStr = c"case";
/// One name in its two forms: with one character for the letter and its accent, and with two.
const COMPOSED: &CStr = c"caf\u{e9}";
const DECOMPOSED: &CStr = c"cafe\u{301}";

/// Names that some servers refuse or change, with what is odd about them.
const ODD: [(&CStr, &str); 14] = [
    (c"a:b", "colon"),
    (c"a*b", "asterisk"),
    (c"a?b", "question mark"),
    (c"a\"b", "quotation mark"),
    (c"a<b", "less-than"),
    (c"a>b", "greater-than"),
    (c"a|b", "vertical bar"),
    (c"a\\b", "backslash"),
    (c"a ", "space at the end"),
    (c"a.", "dot at the end"),
    (c"a\nb", "line feed"),
    (c"a%41", "percent sign"),
    (c"a\u{1f600}", "emoji"),
    (c"a\xff", "byte that is no UTF-8"),
];

/// A letter of two bytes, for a name that is longer in bytes than in characters.
const WIDE: &str = "\u{e9}";
/// The longest name of POSIX systems, in bytes.
const LONGEST: usize = 255;

/// Whether a check of this group gives this name to a file.
pub fn is_own(name: &[u8]) -> bool {
    let fixed = [UPPER, LOWER, COMPOSED, DECOMPOSED];
    let is_long = !name.is_empty() && name.iter().all(|byte| *byte == b'n');
    let is_wide = !name.is_empty()
        && name.len().is_multiple_of(2)
        && name.chunks(2).all(|pair| pair == WIDE.as_bytes());
    fixed.into_iter().chain(ODD.map(|(name, _)| name)).any(|own| own.to_bytes() == name) || is_long || is_wide
}

/// Whether a listing shows a name.
fn shows(listed: &[Listed], name: &CStr) -> bool {
    listed.iter().any(|entry| entry.name.as_c_str() == name)
}

fn case(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    scratch.write(UPPER, b"x", on.context)?;
    let is_sensitive = on.context.lookup(scratch.folder(), LOWER)?.is_none();
    let listed = scratch.list_until(on.context, Wanted::Names, |listed| shows(listed, UPPER))?;
    let is_kept = shows(&listed, UPPER);
    let sensitive = if is_sensitive { "case-sensitive" } else { "case-insensitive" };
    let kept = if is_kept { "case is kept" } else { "case is not kept" };
    Ok(Answer::expect(is_kept, format!("{sensitive}; {kept}")))
}

fn normalization(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    scratch.write(COMPOSED, b"x", on.context)?;
    let shows_one = |listed: &[Listed]| shows(listed, COMPOSED) || shows(listed, DECOMPOSED);
    let listed = scratch.list_until(on.context, Wanted::Names, shows_one)?;
    let form = match (shows(&listed, COMPOSED), shows(&listed, DECOMPOSED)) {
        (true, _) => "listed as it was written",
        (false, true) => "listed decomposed",
        (false, false) => "not listed in any form",
    };
    let finds = |name| Ok::<bool, RunError>(on.context.lookup(scratch.folder(), name)?.is_some());
    let (itself, other) = (finds(COMPOSED)?, finds(DECOMPOSED)?);
    let other = if other { "the other form finds it too" } else { "the other form is another name" };
    let is_found = itself && shows_one(&listed);
    let itself = if itself { "found again" } else { "not found again" };
    Ok(Answer::expect(is_found, format!("{itself}; {form}; {other}")))
}

/// The result of making a file with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameOutcome {
    Kept,
    Changed,
    Refused(String),
}

fn odd_characters(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let outcomes = outcomes(on, scratch, &ODD.map(|(name, _)| name))?;
    let named: Vec<_> = ODD.iter().map(|(_, what)| *what).zip(outcomes).collect();
    Ok(judge_odd(&named))
}

/// Makes a file of each name, looks at all in one listing, and removes them.
fn outcomes(
    on: &CheckedTarget<'_>,
    scratch: &Scratch,
    names: &[&CStr],
) -> Result<Vec<NameOutcome>, RunError> {
    let refusals = names.iter().map(|name| refusal(on, scratch, name)).collect::<Result<Vec<_>, _>>()?;
    let made = || names.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()).map(|(name, _)| *name);
    let is_whole = |listed: &[Listed]| made().all(|name| shows(listed, name));
    let listed = scratch.list_until(on.context, Wanted::Names, is_whole)?;
    // By the name that was given: one that is listed otherwise would not be found by anything else.
    made().try_for_each(|name| scratch.unlink(name, on.context))?;
    let outcome = |(name, refusal): (&&CStr, Option<String>)| match refusal {
        Some(error) => NameOutcome::Refused(error),
        None if shows(&listed, name) => NameOutcome::Kept,
        None => NameOutcome::Changed,
    };
    Ok(names.iter().zip(refusals).map(outcome).collect())
}

/// Makes a file; the name of the error where that is refused.
fn refusal(on: &CheckedTarget<'_>, scratch: &Scratch, name: &CStr) -> Result<Option<String>, RunError> {
    match on.context.create(scratch.folder(), name) {
        Ok(file) => on.context.close(file).map(|()| None),
        Err(RunError::Operation { source, .. }) => {
            Ok(Some(platform::error_name(&source).unwrap_or_else(|| source.kind().to_string())))
        }
        Err(other) => Err(other),
    }
}

fn judge_odd(outcomes: &[(&str, NameOutcome)]) -> Answer {
    let kept = outcomes.iter().filter(|(_, outcome)| *outcome == NameOutcome::Kept).count();
    let mut text = format!("{kept} of {} kept", outcomes.len());
    let refused = outcomes.iter().filter_map(|(what, outcome)| match outcome {
        NameOutcome::Refused(error) => Some(format!("{what} ({error})")),
        NameOutcome::Kept | NameOutcome::Changed => None,
    });
    let changed = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == NameOutcome::Changed)
        .map(|(what, _)| (*what).to_owned());
    let (refused, changed): (Vec<_>, Vec<_>) = (refused.collect(), changed.collect());
    for (word, list) in [("refused", &refused), ("changed", &changed)] {
        if !list.is_empty() {
            text += &format!("; {word}: {}", list.join(", "));
        }
    }
    Answer::expect(changed.is_empty(), text)
}

fn longest(on: &CheckedTarget<'_>, scratch: &Scratch) -> Result<Answer, RunError> {
    let mut fits = |length| accepts(on, scratch, "n".repeat(length));
    // Some encrypted folders take 143 bytes.
    let found = if fits(LONGEST)? { LONGEST } else { longest_that(&mut fits)? };
    let more = if fits(LONGEST + 1)? { "256 are accepted" } else { "256 are refused" };
    let wide = accepts(on, scratch, WIDE.repeat(LONGEST))?;
    let wide = if wide { "accepted" } else { "refused" };
    let text = format!("{found} bytes; {more}; 255 letters of two bytes are {wide}");
    Ok(Answer::expect(found == LONGEST, text))
}

fn accepts(on: &CheckedTarget<'_>, scratch: &Scratch, name: String) -> Result<bool, RunError> {
    let name = CString::new(name).expect("the name holds no NUL");
    Ok(outcomes(on, scratch, &[&name])? == [NameOutcome::Kept])
}

/// The largest length from 0 to 254 that fits, by halving.
fn longest_that(fits: &mut impl FnMut(usize) -> Result<bool, RunError>) -> Result<usize, RunError> {
    let (mut fitting, mut too_long) = (0, LONGEST);
    while too_long - fitting > 1 {
        let middle = (fitting + too_long) / 2;
        if fits(middle)? { fitting = middle } else { too_long = middle }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selfcheck::Verdict;

    #[test]
    fn a_changed_name_differs_and_a_refused_one_does_not() {
        let outcomes = [
            ("colon", NameOutcome::Refused("EINVAL".to_owned())),
            ("asterisk", NameOutcome::Kept),
            ("emoji", NameOutcome::Kept),
        ];
        let answer = judge_odd(&outcomes);
        assert_eq!(answer, Answer::ok("2 of 3 kept; refused: colon (EINVAL)"));
        let changed = judge_odd(&[("dot at the end", NameOutcome::Changed)]);
        assert_eq!(changed.verdict, Verdict::Differs);
        assert!(changed.text.contains("changed: dot at the end"), "{}", changed.text);
    }

    #[test]
    fn the_longest_name_is_found_by_halving() {
        for longest in [0, 1, 143, 254] {
            let found = longest_that(&mut |length| Ok(length <= longest)).unwrap();
            assert_eq!(found, longest);
        }
    }

    #[test]
    fn long_and_odd_names_are_known_as_own() {
        let own = |name: &[u8]| is_own(name);
        assert!(own("n".repeat(255).as_bytes()) && own(WIDE.repeat(255).as_bytes()));
        assert!(ODD.iter().all(|(name, _)| own(name.to_bytes())));
        assert!(own(COMPOSED.to_bytes()) && own(DECOMPOSED.to_bytes()));
        assert!(!own(b"") && !own(b"name") && !own(b"a") && !own(b"letter.txt"));
    }
}
