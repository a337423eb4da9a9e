//! The token that changes need: a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use control::random;
use subtle::ConstantTimeEq;

/// Random bytes of a token; 256 bits, which nobody guesses.
const BYTES: usize = 32;

/// A token, and its file.
pub(crate) struct Token {
    text: String,
    path: PathBuf,
}

impl Token {
    /// Makes one, and its file anew with mode 0600.
    ///
    /// # Errors
    /// There is a file that holds no token, it cannot be written, or there are no random numbers.
    pub fn make(path: &Path) -> io::Result<Token> {
        let bytes = random::bytes::<BYTES>()?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        check_replaceable(path)?;
        // Never into a file that was there: somebody could have it open.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        writeln!(file, "{text}")?;
        let path = path.to_owned();
        Ok(Token { text, path })
    }

    /// Whether this is the token; it takes as long whatever the difference.
    pub fn is(&self, given: &str) -> bool {
        self.text.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes its file, unless it is another one by now.
    pub fn remove(&self) {
        let found = fs::read_to_string(&self.path);
        if found.is_ok_and(|found| found.trim_end() != self.text) {
            return;
        }
        // If that fails, it opens nothing any more all the same.
        let _ = fs::remove_file(&self.path);
    }
}

/// A file of before goes only if it holds a token and nothing else.
fn check_replaceable(path: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // A line of hexadecimal digits.
    let is_token = there.is_file() && there.len() == 2 * BYTES as u64 + 1 && {
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
        let text = fs::read_to_string(path).unwrap_or_default();
        text.strip_suffix('\n').is_some_and(digits)
    };
    match is_token {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it is there, and no token of before; move it away, or name another file",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_its_owner_reads_it_and_it_is_new_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ui.token");
        fs::write(&path, "of before").unwrap();
        assert!(Token::make(&path).is_err(), "it is no token");
        assert_eq!(fs::read_to_string(&path).unwrap(), "of before");
        fs::write(&path, format!("{}\n", "0a".repeat(BYTES))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let token = Token::make(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim().len(), 2 * BYTES);
        assert!(token.is(text.trim()));
        for other in ["", "of before", &text, &text.trim()[1..]] {
            assert!(!token.is(other), "{other:?}");
        }
        fs::write(&path, "another").unwrap();
        token.remove();
        assert!(path.exists(), "it is not ours any more");
        fs::write(&path, &text).unwrap();
        token.remove();
        assert!(!path.exists());
        assert!(!Token::make(&path).unwrap().is(text.trim()));
        assert!(Token::make(&directory.path().join("no/ui.token")).is_err());
    }
}
