use std::io;

/// Failure of something in the sandbox, or in the laboratory. Messages say what, where, and what to
/// do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program that is needed is not installed, or cannot be started.
    #[error("cannot run {program}: {source}; install it ({package})")]
    Missing {
        /// The program.
        program: String,
        /// Debian package that has it.
        package: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A program ended with an exit code other than 0.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// The command line.
        command: String,
        /// The first line of its error text.
        message: String,
    },
    /// A program did not get ready, or did not end, in time.
    #[error("{what} after {seconds} s; its last words: {log}")]
    Timeout {
        /// The event that did not happen.
        what: String,
        /// Time that it was given.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program printed something unexpected.
    #[error("cannot understand the output of {program}: {message}")]
    Output {
        /// The program.
        program: String,
        /// The mistake in its output.
        message: String,
    },
    /// The user asked for something that does not exist or is not possible.
    #[error("{0}")]
    Asked(String),
    /// The user or the system asked us to stop.
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
