//! Names of AppleDouble files. Where a file system keeps no extended attributes, a Mac's kernel keeps those of `NAME` in
//! a file `._NAME` beside it, moves and removes both together, and hides neither from a listing (xnu bsd/vfs/vfs_xattr.c
//! `default_setxattr`, bsd/vfs/kpi_vfs.c `vn_rename`, `xattrfile_remove`).

use std::ffi::{CStr, CString};

/// The name of the fact that says how many AppleDouble files the listings of a run showed.
pub const FACT: &str = "apple-double-files";

/// Begins the name of an AppleDouble file.
const PREFIX: &[u8] = b"._";

/// The name of the file or folder whose attributes a name stands for; `None` for a name that is no AppleDouble file's.
pub fn twin_of(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(PREFIX).filter(|owner| !owner.is_empty())
}

/// The name of the AppleDouble file of a name.
pub fn twin(name: &CStr) -> CString {
    CString::new([PREFIX, name.to_bytes()].concat()).expect("a name holds no NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twin_names_its_owner_and_nothing_else_is_one() {
        assert_eq!(twin_of(b"._IMG 000016.jpg"), Some(&b"IMG 000016.jpg"[..]));
        assert_eq!(twin_of(twin(c"folder 0000").to_bytes()), Some(&b"folder 0000"[..]));
        for name in ["IMG 000016.jpg", ".hidden", "._", "_._x", ""] {
            assert_eq!(twin_of(name.as_bytes()), None, "{name}");
        }
    }
}
