//! The names that the checks of fidelity give to their files, so that no other file is ever removed.
//!
//! A server may show another name than the one that was given: in other letters, without a character that it does not
//! store, in another normalization. Such a name is recognized by its letters and digits.

use std::ffi::{CStr, CString};
use std::path::Path;

use longhaul_corpus::names::plain_names;
use longhaul_model::Property;

/// Name of the folder in the sandbox and in the sandbox's manifest.
pub const FOLDER: &str = "fidelity";
/// Addition to the name of a property's folder after it was renamed.
const RENAMED: &str = "-renamed";
/// Begin of every name.
const BEGIN: &str = "longhaul-";

/// File that shows that no other program removed the files of a check.
pub const CONTROL: &CStr = c"longhaul-control";
/// File whose property is checked.
pub const FILE: &CStr = c"longhaul-file";
/// Second file, or second name of a file.
pub const OTHER: &CStr = c"longhaul-other";

/// Two names that differ only in their normalization.
pub const NORMALIZATION_PAIR: [&CStr; 2] = [c"longhaul-caf\u{e9}", c"longhaul-cafe\u{301}"];
/// Two names that differ only in case.
pub const CASE_PAIR: [&CStr; 2] = [c"longhaul-Case", c"longhaul-case"];

/// Length of a long name in units: bytes, or units of UTF-16.
const NAME_UNITS: usize = 255;
/// Length of each folder of a long path, in bytes.
const PATH_PART_BYTES: usize = 200;

/// Ends of all names that are neither numbered nor long, after [`BEGIN`] and without other characters than letters,
/// digits and hyphens. `caf` and an empty rest are names with letters that are not ASCII.
const RESTS: [&str; 9] = ["control", "file", "other", "caf", "cafe", "case", "end", "ab", ""];
/// Begin of the names that a client gives to a file that was removed while it is open: NFS, FUSE, and SMB on a Mac.
const OPEN_FILES: [&[u8]; 3] = [b".nfs", b".fuse_hidden", b".smbdelete"];

/// Returns the name that a property is about; `None` if it is not about one name.
pub fn single_name(property: Property) -> Option<CString> {
    let name = match property {
        Property::ComposedName => return Some(NORMALIZATION_PAIR[0].to_owned()),
        Property::DecomposedName => return Some(NORMALIZATION_PAIR[1].to_owned()),
        Property::TrailingDot => "end.".to_owned(),
        Property::TrailingSpace => "end ".to_owned(),
        Property::Colon => "a:b".to_owned(),
        Property::Backslash => "a\\b".to_owned(),
        Property::QuestionMark => "a?b".to_owned(),
        Property::Asterisk => "a*b".to_owned(),
        Property::QuotationMark => "a\"b".to_owned(),
        Property::AngleBrackets => "a<>b".to_owned(),
        Property::VerticalBar => "a|b".to_owned(),
        Property::LongName => "n".repeat(NAME_UNITS - BEGIN.len()),
        Property::WideName => "\u{e9}".repeat(NAME_UNITS - BEGIN.len()),
        _ => return None,
    };
    Some(with_begin(&name))
}

/// Returns the name of a numbered file.
pub fn numbered(number: u32) -> CString {
    with_begin(&number.to_string())
}

/// Returns the name of each folder of a long path.
pub fn path_part() -> CString {
    with_begin(&"n".repeat(PATH_PART_BYTES - BEGIN.len()))
}

fn with_begin(rest: &str) -> CString {
    CString::new(format!("{BEGIN}{rest}")).expect("the name contains no NUL")
}

/// Returns the name of the folder of a property.
pub fn folder_of(property: Property) -> CString {
    CString::new(property.name()).expect("the name contains no NUL")
}

/// Returns the name of the folder of a property after it was renamed.
pub fn renamed_folder_of(property: Property) -> CString {
    CString::new(format!("{}{RENAMED}", property.name())).expect("the name contains no NUL")
}

/// Returns whether a path, relative to a folder of a sandbox, is a file of a check of fidelity.
pub fn owns(folder: &str, path: &Path) -> bool {
    if folder != FOLDER {
        return false;
    }
    let names = plain_names(path).unwrap_or_default();
    match names.split_first() {
        Some((first, rest)) => {
            is_folder_of_property(first) && !rest.is_empty() && rest.iter().all(|name| is_own(name))
        }
        None => false,
    }
}

fn is_folder_of_property(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    Property::from_name(name.strip_suffix(RENAMED).unwrap_or(name)).is_some()
}

/// Returns whether a check creates files with this name, as a server may show it.
fn is_own(name: &[u8]) -> bool {
    if OPEN_FILES.iter().any(|begin| name.starts_with(begin)) {
        return true;
    }
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric() || **byte == b'-');
    let letters: String = letters.map(|byte| char::from(byte.to_ascii_lowercase())).collect();
    let Some(rest) = letters.strip_prefix(BEGIN) else { return false };
    let is_all = |is: fn(&u8) -> bool| rest.bytes().all(|byte| is(&byte));
    RESTS.contains(&rest) || is_all(u8::is_ascii_digit) || is_all(|byte| *byte == b'n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn is_owned(property: Property, name: &[u8]) -> bool {
        owns(FOLDER, &Path::new(property.name()).join(OsStr::from_bytes(name)))
    }

    #[test]
    fn every_given_name_is_recognized() {
        let fixed = [CONTROL, FILE, OTHER].into_iter().chain(NORMALIZATION_PAIR).chain(CASE_PAIR);
        let names = fixed.map(CStr::to_owned).chain([numbered(0), numbered(99_999), path_part()]);
        let singles = Property::ALL.into_iter().filter_map(single_name);
        let names: Vec<CString> = names.chain(singles).collect();
        assert!(names.iter().all(|name| is_owned(Property::Colon, name.to_bytes())));
        assert!(names.iter().all(|name| name.count_bytes() <= 3 * NAME_UNITS));
        let deep = path_part().into_string().unwrap() + "/" + FILE.to_str().unwrap();
        assert!(is_owned(Property::LongPath, deep.as_bytes()));
        let renamed = renamed_folder_of(Property::Colon).into_string().unwrap();
        assert!(owns(FOLDER, &Path::new(&renamed).join("longhaul-file")));
    }

    #[test]
    fn names_that_a_server_changes_are_recognized() {
        for shown in
            ["longhaul-a\u{f022}b", "longhaul-a_b", "LONGHAUL-CASE", "longhaul-end", "longhaul-a%3ab"]
        {
            let is_ours = is_owned(Property::Colon, shown.as_bytes());
            assert_eq!(is_ours, !shown.contains('%'), "{shown}");
        }
        assert!(is_owned(Property::DeleteWhileOpen, b".nfs000000000001"));
    }

    #[test]
    fn files_of_others_are_not_recognized() {
        for name in ["letter.txt", "longhaul", "longhaul-letter", "my-longhaul-file.txt", "file"] {
            assert!(!is_owned(Property::Colon, name.as_bytes()), "{name}");
        }
        assert!(!owns(FOLDER, Path::new("longhaul-file")) && !owns("tree", Path::new("colon/longhaul-file")));
        assert!(!owns(FOLDER, Path::new("colon")), "a file in place of a folder");
    }
}
