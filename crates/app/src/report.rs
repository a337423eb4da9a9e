//! `parshall report`: the page of load tests that were made before.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use report::html::{self, Drawing};
use report::loadtest::{self, Channel, LoadTest};

use crate::{Outcome, output};

/// Draw results of load tests as one HTML page with graphs, as graph.rb does
///
/// Files are those of T-Rex's load-test scripts and the JSON of `parshall loadtest` and `parshall
/// lab`. Tests of the same profile are drawn in the same graphs: rates sent and come back and loss,
/// over time and over the rate sent. The page needs no network.
#[derive(Args)]
pub struct Report {
    /// Results, as JSON
    #[arg(value_name = "FILE.json", required = true)]
    files: Vec<PathBuf>,
    /// Title of the page [default: the names of the files]
    #[arg(short = 't', long, value_name = "TEXT")]
    title: Option<String>,
    /// The page; with -, to standard output
    #[arg(
        short = 'o',
        long,
        value_name = "out.html|-",
        default_value = "index.html"
    )]
    output: PathBuf,
    /// Only these directions: 0-1, 1-0, and all for the trials of a search
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    only_channels: Vec<Channel>,
    /// Share of the packets that counts as too much loss, 0.0001 to 1
    #[arg(
        short = 'f',
        long,
        value_name = "SHARE",
        default_value = "0.001",
        value_parser = threshold
    )]
    fail_threshold: f64,
}

impl Report {
    /// Writes the page.
    pub fn run(self) -> Outcome {
        output::check(&self.output)?;
        output::keeps(&self.files, "-o", &self.output)?;
        let mut tests = Vec::new();
        for file in &self.files {
            tests.extend(self.read(file)?);
        }
        if !self.only_channels.is_empty() {
            loadtest::keep(&mut tests, &self.only_channels);
            if tests.is_empty() {
                return Err("--only-channels: no test has any of these directions".into());
            }
        }
        let names: Vec<String> = self.files.iter().map(|file| stem(file)).collect();
        let title = self.title.clone();
        let title = title.unwrap_or_else(|| format!("Load test: {}", names.join(", ")));
        let drawing = Drawing {
            title: &title,
            threshold: self.fail_threshold,
            measured: None,
        };
        output::write(&self.output, &html::load_tests(&tests, &drawing))
    }

    fn read(&self, file: &Path) -> Result<Vec<LoadTest>, String> {
        let in_file = |e: String| format!("{}: {e}", file.display());
        let text = fs::read_to_string(file).map_err(|e| in_file(e.to_string()))?;
        loadtest::read(&self.name(file), &text).map_err(in_file)
    }

    /// What a file's test is called: its name, with its directory if others have that name too.
    fn name(&self, file: &Path) -> String {
        let stem = stem(file);
        match self.files.iter().filter(|f| self::stem(f) == stem).count() {
            0 | 1 => stem,
            _ => file.display().to_string(),
        }
    }
}

/// The name of a file without directory and ending.
fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or(file.as_os_str());
    stem.to_string_lossy().into_owned()
}

/// A share from 0.0001 to 1.
fn threshold(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok();
    let value = value.filter(|v| (0.0001..=1.0).contains(v));
    value.ok_or_else(|| "expected a share from 0.0001 to 1, for example 0.001".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        report: Report,
    }

    const KNOWN: &str = include_str!("../../loadgen/tests/loadtest-sample.json");

    fn run(words: &[&str]) -> Result<(), String> {
        let argv = std::iter::once("report").chain(words.iter().copied());
        let command = Command::try_parse_from(argv).map_err(|e| e.to_string())?;
        command.report.run().map_err(|e| e.to_string())
    }

    #[test]
    fn files_become_one_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for name in ["a/test.json", "b/test.json", "c.json"] {
            fs::create_dir_all(Path::new(&path(name)).parent().unwrap()).unwrap();
            fs::write(path(name), KNOWN).unwrap();
        }
        fs::write(
            path("wrong.json"),
            KNOWN.replace("\"profile_file\"", "\"x\""),
        )
        .unwrap();
        let [a, b, c, wrong] = ["a/test.json", "b/test.json", "c.json", "wrong.json"].map(path);
        let page = path("out.html");
        let written = || fs::read_to_string(&page).unwrap();
        run(&[
            &a,
            &b,
            &c,
            "-t",
            "Monday & Tuesday",
            "-f",
            "0.05",
            "-o",
            &page,
        ])
        .unwrap();
        for right in [
            &*a,
            &*b,
            ">c</th>",
            "Monday &amp; Tuesday",
            "less than 5 % loss",
            "0→1",
        ] {
            assert!(written().contains(right), "{right}");
        }
        run(&[&c, "--only-channels", "1-0", "-o", &page]).unwrap();
        assert!(!written().contains("0→1") && written().contains("Load test: c"));
        let error = run(&[&c, &wrong, "-o", &page]).unwrap_err();
        assert_eq!(
            error,
            format!("{wrong}: vars.profile_file is missing; expected a text")
        );
        let onto = run(&[&a, &c, "-o", &c]).unwrap_err();
        assert_eq!(
            onto,
            format!("{c}: the input and -o are one file; name another")
        );
        assert_eq!(fs::read_to_string(&c).unwrap(), KNOWN);
        let only_all = run(&[&c, "--only-channels", "all", "-o", &page]).unwrap_err();
        assert!(only_all.contains("--only-channels"), "{only_all}");
        for refused in [
            &["-f", "2"][..],
            &["-f", "nan"],
            &["--only-channels", "2-3"],
            &["-o", "/no/x"],
        ] {
            assert!(run(&[&[&*c], refused].concat()).is_err(), "{refused:?}");
        }
    }
}
