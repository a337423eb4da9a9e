//! Traffic profiles, built in or from compiled files.
//!
//! A profile gives the streams of one port. Ports come in pairs; the second one sends
//! [`Way::Back`], for which most profiles swap the address ranges.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::stream::Stream;

mod builtin;
mod capture;
mod chain;
mod compiled;
mod instructions;
mod latency;
mod marks;
mod python;
mod raw;

pub use builtin::BUILTIN;
pub use latency::with_latency;
use python::compile;

/// The port of a pair that sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Way {
    /// The first port of the pair, direction 0.
    #[default]
    Out,
    /// The second port of the pair, direction 1.
    Back,
}

/// Settings of a profile, in the order given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tunables(Vec<(String, String)>);

/// Reason why a profile cannot be opened.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// Neither a built-in name nor a file.
    #[error("profile `{0}`: no such profile; built in are {names}, or name a file: FILE.json, FILE.yaml (compiled), FILE.pcap, FILE.py", names = builtin::names())]
    Unknown(String),
    /// The file exists but cannot be read.
    #[error("profile {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is not a profile.
    #[error("profile {name}: {why}")]
    Wrong {
        /// The file or profile.
        name: String,
        /// Place where it is wrong, and the reason.
        why: String,
    },
    /// A setting that the profile does not have, or a wrong value.
    #[error("profile {name}: {why}")]
    Tunable {
        /// The profile.
        name: String,
        /// The setting, and what is accepted.
        why: String,
    },
}

impl Tunables {
    /// Reads `size=64,vm=var2`, separated by commas or blanks; also `--size=64` and `--size 64 --vm
    /// var2`. A value in quotes is one, whatever is in it, and keeps them: what a quoted value is,
    /// the profile says.
    ///
    /// # Errors
    /// A message with the word that has no value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut words = std::iter::from_fn(|| {
            let (word, after) = word(rest);
            rest = after;
            (!word.is_empty()).then_some(word)
        });
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, value),
                None if word.starts_with("--") => (word, words.next().unwrap_or("")),
                None => (word, ""),
            };
            let key = key.trim_start_matches('-');
            if key.is_empty() || value.is_empty() {
                return Err(format!(
                    "tunable `{word}`: expected NAME=VALUE, for example size=64,vm=var2"
                ));
            }
            found.push((key.to_owned(), value.to_owned()));
        }
        Ok(Self(found))
    }

    /// Adds all settings of `others`, after these.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Adds a setting. The last one of a name counts.
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.0.push((name.to_owned(), value.to_string()));
        self
    }

    /// The last value given for `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first name that is not in `known`.
    fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.0
            .iter()
            .map(|(key, _)| key.as_str())
            .find(|key| !known.contains(key))
    }
}

/// Bytes of a compiled profile's file at most.
const LARGEST: u64 = 64 << 20;
/// Characters that separate settings.
const SEPARATORS: [char; 3] = [',', ' ', '\t'];

/// The first word of `text` without the separators before it, and the rest. Separators between the
/// quotes of a value are part of it; a quote that nothing closes is a letter like others.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(SEPARATORS);
    let end = |from: usize| {
        text[from..]
            .find(SEPARATORS)
            .map_or(text.len(), |at| from + at)
    };
    let value = text[..end(0)].find('=').map_or(0, |at| at + 1);
    let quote = text[value..]
        .chars()
        .next()
        .filter(|c| ['"', '\''].contains(c));
    let closed = quote.and_then(|quote| {
        let first = value + 1;
        text[first..].find(quote).map(|at| first + at + 1)
    });
    text.split_at(end(closed.unwrap_or(value)))
}

/// The streams of profile `name` for one port: a file that is there, or a built-in name. Files are
/// compiled profiles (`.json`, `.yaml`), captures (`.pcap`, `.cap`) and T-Rex's own (`.py`), whose
/// library has to be on PYTHONPATH.
///
/// # Errors
/// [`ProfileError`]: one line with the profile, the place in it and what is accepted.
pub fn open(name: &str, way: Way, tunables: &Tunables) -> Result<Vec<Stream>, ProfileError> {
    open_with(name, way, tunables, None)
}

/// As [`open`], with the directory of T-Rex.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    name: &str,
    way: Way,
    tunables: &Tunables,
    library: Option<&Path>,
) -> Result<Vec<Stream>, ProfileError> {
    let path = Path::new(name);
    let kind = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    if !path.is_file()
        && let Some(profile) = builtin::find(name)
    {
        let streams = profile.streams(way, tunables);
        return streams.map_err(|why| tunable(profile.name, why));
    }
    match kind.as_deref() {
        Some("json" | "yaml" | "yml") => {
            if let Some(name_of) = tunables.unknown(&[]) {
                let why = format!("a compiled profile has no tunables (`{name_of}`)");
                return Err(tunable(name, why));
            }
            let text = text(path).map_err(|e| unread(path, e))?;
            parse(name, &text)
        }
        Some("pcap" | "cap") => {
            let file = std::fs::File::open(path).map_err(|e| unread(path, e))?;
            let file = std::io::BufReader::new(file);
            capture::read(file, tunables).map_err(|why| wrong(name, why))
        }
        Some("py") => {
            if !path.is_file() {
                return Err(ProfileError::Unknown(name.to_owned()));
            }
            parse(name, &compile(path, way, tunables, library)?)
        }
        _ => Err(ProfileError::Unknown(name.to_owned())),
    }
}

fn tunable(name: &str, why: String) -> ProfileError {
    ProfileError::Tunable {
        name: name.to_owned(),
        why,
    }
}

fn wrong(name: &str, why: String) -> ProfileError {
    ProfileError::Wrong {
        name: name.to_owned(),
        why,
    }
}

/// The text of a profile's file, which may be anything, such as a device without end.
fn text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(LARGEST + 1).read_to_string(&mut text)? as u64 > LARGEST {
        let what = format!("it is larger than {} MiB, which is the most", LARGEST >> 20);
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

fn unread(path: &Path, error: std::io::Error) -> ProfileError {
    ProfileError::Read {
        path: path.to_owned(),
        error,
    }
}

/// Reads the text of a compiled profile; `name` is for messages, and its ending says whether the
/// text is YAML.
///
/// # Errors
/// [`ProfileError::Wrong`] with the stream, the instruction, and what is wrong or not supported.
pub fn parse(name: &str, text: &str) -> Result<Vec<Stream>, ProfileError> {
    let value = if name.ends_with(".yaml") || name.ends_with(".yml") {
        serde_saphyr::from_str(text).map_err(|e| {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or("").to_owned();
            wrong(name, format!("not a YAML list of streams: {first}"))
        })?
    } else {
        serde_json::from_str(text)
            .map_err(|e| wrong(name, format!("not a JSON array of streams: {e}")))?
    };
    compiled::parse(value).map_err(|why| wrong(name, why))
}

#[cfg(test)]
mod tests;
