//! The journal of a matrix: what has been measured so far, so that a sudden end loses one run at
//! most.
//!
//! It has one JSON object a line. The first one has the text of the matrix file, because runs of one
//! matrix must not be mixed with those of another.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use report::matrix::MatrixRun;
use sandbox::Error;
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// What is measured: the file's text, and the start of the random order.
    Matrix { text: String, seed: u32 },
    /// A run of the configuration has begun.
    Begun(Vec<String>),
    /// It has ended.
    Done(Box<MatrixRun>),
}

/// An open journal, which no other process has open.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Start of the random order.
    pub seed: u32,
    /// Runs that have ended.
    pub runs: Vec<MatrixRun>,
    /// The configuration of a run that had begun and not ended.
    pub unfinished: Option<Vec<String>>,
}

impl Journal {
    /// Opens the journal at `path` of the matrix with this text, or begins one with this seed. A
    /// last line that was not written to its end is removed.
    ///
    /// # Errors
    /// Another process has it open; it is of another text or seed, or no journal; it cannot be
    /// written.
    pub fn open(path: &Path, text: &str, seed: Option<u32>) -> Result<Self, Error> {
        let failed = |e| Error::file(path, e);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(asked(path, "another `parshall matrix` writes it"));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let mut known = Vec::new();
        file.read_to_end(&mut known).map_err(failed)?;
        let end = known
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        file.set_len(end as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut journal = Self {
            path: path.to_owned(),
            file,
            seed: seed.unwrap_or_else(any_seed),
            runs: Vec::new(),
            unfinished: None,
        };
        if end == 0 {
            journal.write(&Line::Matrix {
                text: text.to_owned(),
                seed: journal.seed,
            })?;
            let directory = path.parent().filter(|d| !d.as_os_str().is_empty());
            let directory = File::open(directory.unwrap_or(Path::new(".")));
            directory.and_then(|d| d.sync_all()).map_err(failed)?;
        } else {
            journal.read(&String::from_utf8_lossy(&known[..end]), text, seed)?;
        }
        Ok(journal)
    }

    fn read(
        &mut self,
        known: &str,
        asked_text: &str,
        asked_seed: Option<u32>,
    ) -> Result<(), Error> {
        for (number, line) in known.lines().enumerate() {
            let line = serde_json::from_str(line).map_err(|e| {
                asked(
                    &self.path,
                    &format!("line {} is of no journal: {e}", number + 1),
                )
            })?;
            match line {
                Line::Matrix { text, .. } if text != asked_text => {
                    return Err(asked(
                        &self.path,
                        "the matrix file has changed since; put it back as it was, or remove the journal to measure anew",
                    ));
                }
                Line::Matrix { seed, .. } if asked_seed.is_some_and(|asked| asked != seed) => {
                    return Err(asked(
                        &self.path,
                        &format!(
                            "it was begun with seed {seed}; leave --seed out, or remove the journal to measure anew"
                        ),
                    ));
                }
                Line::Matrix { seed, .. } => self.seed = seed,
                Line::Begun(at) => self.unfinished = Some(at),
                Line::Done(run) => {
                    self.unfinished = None;
                    self.runs.push(*run);
                }
            }
        }
        Ok(())
    }

    /// Notes that a run begins.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&mut self, at: &[String]) -> Result<(), Error> {
        self.write(&Line::Begun(at.to_vec()))
    }

    /// Notes a run that has ended. When this returns, it is on the disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn done(&mut self, run: MatrixRun) -> Result<(), Error> {
        self.write(&Line::Done(Box::new(run.clone())))?;
        self.runs.push(run);
        Ok(())
    }

    /// Removes it: its runs are kept elsewhere.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(self) -> Result<(), Error> {
        fs::remove_file(&self.path).map_err(|e| Error::file(&self.path, e))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let failed = |e| Error::file(&self.path, e);
        let mut text = serde_json::to_string(line).map_err(|e| failed(e.into()))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(failed)?;
        self.file.sync_data().map_err(failed)
    }
}

impl Drop for Journal {
    /// A process that is just being started has the file open too, until it becomes its program.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

fn asked(path: &Path, why: &str) -> Error {
    Error::Asked(format!("{}: {why}", path.display()))
}

/// A seed that differs from time to time.
fn any_seed() -> u32 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    now.map_or(0, |now| now.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(round: u32) -> MatrixRun {
        MatrixRun {
            at: vec!["a".to_owned()],
            round,
            figure: Some(f64::from(round)),
            ..MatrixRun::default()
        }
    }

    /// Whatever the length at which the last line was torn.
    #[test]
    fn a_sudden_end_loses_one_run_at_most() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, "text", Some(7)).unwrap();
        journal.begin(&["a".to_owned()]).unwrap();
        journal.done(run(1)).unwrap();
        let whole = fs::read(&path).unwrap().len();
        journal.begin(&["b".to_owned()]).unwrap();
        journal.done(run(2)).unwrap();
        drop(journal);
        let all = fs::read(&path).unwrap();
        for len in whole..all.len() {
            fs::write(&path, &all[..len]).unwrap();
            let mut journal = Journal::open(&path, "text", None).unwrap();
            assert_eq!((journal.seed, &journal.runs[..]), (7, &[run(1)][..]));
            let begun = all[whole..len]
                .contains(&b'\n')
                .then(|| vec!["b".to_owned()]);
            assert_eq!(journal.unfinished, begun);
            journal.done(run(3)).unwrap();
            drop(journal);
            let again = Journal::open(&path, "text", Some(7)).unwrap();
            assert_eq!(again.runs, [run(1), run(3)]);
        }
        fs::write(&path, "").unwrap();
        assert!(Journal::open(&path, "text", None).unwrap().runs.is_empty());
    }

    #[test]
    fn a_journal_of_something_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let open = |text, seed| match Journal::open(&path, text, seed) {
            Ok(journal) => Ok(journal),
            Err(e) => Err(e.to_string()),
        };
        let journal = open("text", Some(7)).unwrap();
        assert!(
            open("text", None)
                .unwrap_err()
                .contains("another `parshall matrix`")
        );
        drop(journal);
        assert!(
            open("other", None)
                .unwrap_err()
                .contains("has changed since")
        );
        assert!(
            open("text", Some(8))
                .unwrap_err()
                .contains("begun with seed 7")
        );
        open("text", None).unwrap().remove().unwrap();
        assert!(!path.exists());
        fs::write(&path, "numbers\n").unwrap();
        assert!(
            open("text", None)
                .unwrap_err()
                .contains("line 1 is of no journal")
        );
    }
}
