//! Reading a small file that a user names: a wrong name, such as that of a device, takes no memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The most that is read of such a file, in bytes.
pub const MOST_BYTES: u64 = 1 << 20;

/// Reads a whole file.
///
/// # Errors
///
/// What the system says; `FileTooLarge` for more than 1 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 1 MiB: is it the right file?",
        ));
    }
    Ok(bytes)
}

/// Reads a whole file of text.
///
/// # Errors
///
/// As [`read`]; `InvalidData` for what is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text in UTF-8: is it the right file?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_an_end_is_too_large() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_small_file_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "scale = \"quick\"\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "scale = \"quick\"\n");
        std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(file.path()).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
