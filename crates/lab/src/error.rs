use std::io;

/// Why something in the laboratory could not be done. Every message says what, where, and what to do if there is
/// something to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that the laboratory needs is not installed, or cannot be started.
    #[error("cannot run {program}: {source}; install it ({package})")]
    Missing {
        /// The program.
        program: String,
        /// Debian package that has it.
        package: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended with an exit code that is not 0.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// The command line.
        command: String,
        /// The first line of what it printed as its error.
        message: String,
    },
    /// A program did not get ready, or did not end, in time.
    #[error("{what} after {seconds} s; its last words: {log}")]
    Timeout {
        /// What did not happen.
        what: String,
        /// How long was waited.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program printed something that is not what it is known to print.
    #[error("cannot understand the output of {program}: {message}")]
    Output {
        /// The program.
        program: String,
        /// What is wrong with it.
        message: String,
    },
    /// The user asked for something that does not exist.
    #[error("{0}")]
    Asked(String),
    /// The user or the system asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Wraps an error about the file `path`.
    pub fn file(path: impl AsRef<std::path::Path>, source: io::Error) -> Self {
        Self::File {
            path: path.as_ref().display().to_string(),
            source,
        }
    }
}
