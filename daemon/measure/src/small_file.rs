//! Reads small text files that a user names. The size limit keeps a wrong name, such as that of a device, from
//! using up memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::private_files::{self, MAX_BYTES};

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // `<(command)` of a shell is a pipe there, which has a writer. Any other pipe may never have one.
    let is_descriptor =
        ["/dev/fd", "/dev/stdin", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder));
    let file = if is_descriptor { File::open(path) } else { private_files::open(path) };
    let mut bytes = vec![];
    file?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 1 MiB: is it the right file?",
        ));
    }
    Ok(bytes)
}

/// Reads a whole text file, or a pipe of this process to its end.
///
/// # Errors
///
/// The error of the operating system, `FileTooLarge` if the file is larger than 1 MiB, or `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text: is it the right file?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_device_is_refused() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn an_open_pipe_of_this_process_is_read() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, b"scale = 1").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read_text(Path::new(&path)).unwrap(), "scale = 1");
    }

    #[test]
    fn a_pipe_without_a_writer_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read_text(&pipe).unwrap_err().kind(), ErrorKind::InvalidInput);
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
