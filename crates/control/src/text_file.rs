//! Text files of people, which may name anything, such as a device without end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

const MIB: usize = 1 << 20;

/// The text of a file of at most so many bytes, whole MiB. No more of it is read.
///
/// # Errors
/// It is larger, or is not UTF-8; what the system says.
pub(crate) fn read(path: &Path, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    let beyond = most as u64 + 1;
    File::open(path)?.take(beyond).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, too_large(most)));
    }
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}

/// The message about a text of more than so many bytes, whole MiB.
pub(crate) fn too_large(most: usize) -> String {
    format!("it is larger than {} MiB, the limit", most / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read(Path::new("/dev/zero"), 2 * MIB).expect_err("it has no end");
        assert_eq!(error.to_string(), "it is larger than 2 MiB, the limit");
    }

    #[test]
    fn what_is_as_large_as_it_may_be_is_read() {
        let path = std::env::temp_dir().join(format!("parshall-text-{}", std::process::id()));
        std::fs::write(&path, "x".repeat(MIB)).expect("there is room");
        let (fits, more) = (read(&path, MIB), read(&path, MIB - 1));
        std::fs::remove_file(&path).expect("it is ours");
        assert_eq!(fits.expect("it fits").len(), MIB);
        assert_eq!(
            more.expect_err("a byte more").kind(),
            ErrorKind::FileTooLarge
        );
    }
}
