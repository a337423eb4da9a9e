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
    /// The file cannot be written, or there are no random numbers.
    pub fn make(path: &Path) -> io::Result<Token> {
        let bytes = random::bytes::<BYTES>()?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
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

    /// Removes its file.
    pub fn remove(&self) {
        // If that fails, it opens nothing any more all the same.
        let _ = fs::remove_file(&self.path);
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
        token.remove();
        assert!(!path.exists());
        assert!(!Token::make(&path).unwrap().is(text.trim()));
        assert!(Token::make(&directory.path().join("no/ui.token")).is_err());
    }
}
