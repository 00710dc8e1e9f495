//! Names of AppleDouble files. If a file system does not support extended attributes, macOS stores those of `NAME`
//! in a file `._NAME` in the same folder, moves and removes both together, and shows both in listings (xnu
//! bsd/vfs/vfs_xattr.c:1572 `default_setxattr`, bsd/vfs/kpi_vfs.c:4714 `vn_rename`, 5285 `xattrfile_remove`). The
//! kernel wrote them itself until macOS 14; the process `doubleagentd` does since macOS 15.

use std::ffi::{CStr, CString};

/// Name of the fact with the number of AppleDouble files in the listings of a run.
pub const FACT_NAME: &str = "apple-double-files";

/// Prefix of the name of an AppleDouble file.
const PREFIX: &[u8] = b"._";

/// Returns the name of the file or folder that an AppleDouble file belongs to; `None` for any other name.
pub fn owner_name(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(PREFIX).filter(|owner| !owner.is_empty())
}

/// Returns the name of the AppleDouble file of a file or folder.
pub fn apple_double_name(name: &CStr) -> CString {
    CString::new([PREFIX, name.to_bytes()].concat()).expect("a name contains no NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_is_found_only_for_apple_double_names() {
        assert_eq!(owner_name(b"._IMG 000016.jpg"), Some(&b"IMG 000016.jpg"[..]));
        assert_eq!(owner_name(apple_double_name(c"folder 0000").to_bytes()), Some(&b"folder 0000"[..]));
        for name in ["IMG 000016.jpg", ".hidden", "._", "_._x", ""] {
            assert_eq!(owner_name(name.as_bytes()), None, "{name}");
        }
    }
}
