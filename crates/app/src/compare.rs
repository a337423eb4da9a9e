//! `parshall compare`: whether a difference between measurements is proven.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use report::compare::text::{self, Show};
use report::compare::{Columns, Confidence, LEAST, Sample, figures, picture, results};
use report::model::LabResult;
use serde_json::Value;

use crate::{Outcome, output};

/// Tell whether the difference between measurements is proven, as ministat does
///
/// Each file has a number a line, or columns of numbers (-C); `-` is standard input. The first file
/// is what the others are compared with. JSON results of `lab`, `matrix`, `search`, `loadtest` and
/// `bench` are compared case by case; of one result of the lab, its devices. A file may have several
/// results of a kind, one after the other (`cat run*.json`).
#[derive(Args)]
pub struct Compare {
    /// Files of numbers, or of results as JSON
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<PathBuf>,
    /// Number of the column to compare, from 1
    #[arg(short = 'C', value_name = "COLUMN", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    column: u16,
    /// JSON: compare the number, or the list of numbers, at this place of each result, such as
    /// /search/max_pps
    #[arg(long, value_name = "POINTER")]
    key: Option<String>,
    /// Level of confidence: 80, 90, 95, 98, 99 or 99.5 percent
    #[arg(short = 'c', value_name = "PERCENT", default_value = "95")]
    confidence: Confidence,
    /// Characters between columns
    #[arg(short = 'd', value_name = "DELIMITERS", default_value = " \t")]
    delimiters: String,
    /// No picture, only figures
    #[arg(short = 'A')]
    no_picture: bool,
    /// Only the figures of each file: no picture, no comparison
    #[arg(short = 'n')]
    alone: bool,
    /// Bars of mean and standard deviation on a line each
    #[arg(short = 's')]
    separate_bars: bool,
    /// Width of the picture in characters, 10 to 1000
    #[arg(short = 'w', value_name = "WIDTH", default_value_t = 74, value_parser = clap::value_parser!(u16).range(10..=1000))]
    width: u16,
}

impl Compare {
    /// Compares.
    pub fn run(self) -> Outcome {
        let twice = (1..self.files.len()).find(|&i| is_one_of(&self.files[i], &self.files[..i]));
        if let Some(at) = twice {
            return Err(format!(
                "{}: the same file is given twice, and is no different from itself; name another",
                name(&self.files[at])
            )
            .into());
        }
        let texts = self.files.iter().map(|file| Ok((name(file), read(file)?)));
        let texts = texts.collect::<Result<Vec<_>, String>>()?;
        let is_json = |(_, text): &(String, String)| text.trim_start().starts_with('{');
        match texts.iter().filter(|text| is_json(text)).count() {
            0 => output::print(&self.numbers(&texts)?),
            all if all == texts.len() => output::print(&self.results(&texts)?),
            _ => Err("files of numbers and JSON results cannot be compared with each other".into()),
        }
    }

    fn numbers(&self, texts: &[(String, String)]) -> Result<String, String> {
        let most = picture::MOST;
        if texts.len() > most {
            let count = texts.len();
            return Err(format!(
                "{count} files are given, {most} can be compared at once"
            ));
        }
        let columns = Columns {
            column: self.column.into(),
            delimiters: self.delimiters.clone(),
        };
        let samples = texts.iter().map(|(name, text)| {
            let values = columns.read(text).map_err(|e| format!("{name}: {e}"))?;
            let count = values.len();
            Sample::new(name.clone(), values).ok_or_else(|| {
                let column = self.column;
                format!("{name}: {count} numbers in column {column}, {LEAST} or more are needed")
            })
        });
        let show = Show {
            picture: (!self.no_picture && !self.alone).then_some(self.width.into()),
            separate_bars: self.separate_bars,
            difference: (!self.alone).then_some(self.confidence),
        };
        Ok(text::samples(
            &samples.collect::<Result<Vec<_>, _>>()?,
            show,
        ))
    }

    fn results(&self, texts: &[(String, String)]) -> Result<String, String> {
        let of_lab = texts.iter().map(|(name, text)| {
            let result = serde_json::from_str(text).ok()?;
            Some((name.clone(), result))
        });
        let of_lab: Option<Vec<(String, LabResult)>> = of_lab.collect();
        let said = match of_lab.filter(|_| self.key.is_none()).as_deref() {
            Some([(_, only)]) => results::within(only, self.confidence)?,
            Some(several) => results::between(several, self.confidence)?,
            None => self.figures(texts)?,
        };
        Ok(format!(
            "{said}At {} % confidence.\n",
            self.confidence.percent()
        ))
    }

    fn figures(&self, texts: &[(String, String)]) -> Result<String, String> {
        let of_result = |result: &Value| match &self.key {
            Some(key) => figures::at(result, key),
            None => figures::of(result),
        };
        let of_file = |(name, text): &(String, String)| {
            let results = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            let figures = results.map(|result| {
                let result = result.map_err(|e| format!("{name}: no JSON: {e}"))?;
                of_result(&result).map_err(|e| format!("{name}: {e}"))
            });
            let figures = figures.collect::<Result<Vec<_>, String>>()?;
            Ok((name.clone(), figures.concat()))
        };
        let files = texts.iter().map(of_file);
        let files = files.collect::<Result<Vec<_>, String>>()?;
        results::of_figures(&files, self.confidence)
    }
}

/// The name of a file as it is shown.
fn name(file: &Path) -> String {
    match output::is_stdout(file) {
        true => "<stdin>".to_owned(),
        false => file.display().to_string(),
    }
}

/// True if `file` is one of those, by whatever path; a pipe can be read once, too.
fn is_one_of(file: &Path, those: &[PathBuf]) -> bool {
    let place = |file: &Path| fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    those.iter().any(|other| place(other) == place(file))
}

fn read(file: &Path) -> Result<String, String> {
    let read = if output::is_stdout(file) {
        if io::stdin().is_terminal() {
            output::tell("Reading numbers from standard input, one a line; Ctrl-D ends.\n");
        }
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    read.map_err(|e| format!("{}: {e}", name(file)))
}
