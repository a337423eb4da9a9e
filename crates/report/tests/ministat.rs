//! Comparisons are what Debian's ministat prints: figures, verdicts and pictures.

use std::fs;
use std::process::Command;

use report::compare::text::{self, Show};
use report::compare::{Columns, Confidence, Sample};
use testbed::skip;

/// Levels of confidence in percent.
const LEVELS: [&str; 6] = ["80", "90", "95", "98", "99", "99.5"];

/// A small seeded generator: SplitMix64, as numbers below a limit.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// Values as rates are: about some thousands or millions, more or less apart.
    fn values(&mut self) -> String {
        let (count, decimals) = (3 + self.below(60), [0, 2, 4][self.below(3) as usize]);
        let scale = 10f64.powi(self.below(4) as i32);
        let (center, spread) = (self.below(100) as f64, 1.0 + self.below(60) as f64);
        let mut value = || {
            let sum: u64 = (0..4).map(|_| self.below(1000)).sum();
            let value = (center + spread * (sum as f64 / 4000.0 - 0.5)) * scale;
            let text = format!("{value:.decimals$}\n");
            // How ministat sorts 0 and -0 is not defined.
            let is_zero = text.trim().parse() == Ok(0.0);
            if is_zero { "0\n".to_owned() } else { text }
        };
        (0..count).map(|_| value()).collect()
    }
}

/// Two or more sets of values in files, and ministat's and our comparison of them.
struct Comparison {
    directory: tempfile::TempDir,
}

impl Comparison {
    /// `None` where there is no ministat.
    fn new(test: &str) -> Option<Self> {
        if Command::new("ministat").arg("-h").output().is_err() {
            skip(test, "ministat is not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        Some(Self { directory })
    }

    /// True if both are the same to the last character. Ministat's picture may lack marks: it cuts
    /// off what stands higher than those of later samples. Else both must be the same but for the
    /// marks above the lowest ones.
    fn is_same(&self, files: &[String], level: &str, width: usize, separate_bars: bool) -> bool {
        let read = |(n, content): (usize, &String)| {
            let name = format!("file{n}");
            fs::write(self.directory.path().join(&name), content).unwrap();
            let values = Columns::default().read(content).unwrap();
            Sample::new(name, values).unwrap()
        };
        let samples: Vec<_> = files.iter().enumerate().map(read).collect();
        let mut command = Command::new("ministat");
        command.args(["-c", level, "-w", &width.to_string()]);
        command.args(separate_bars.then_some("-s"));
        command.args(samples.iter().map(|sample| &sample.name));
        let output = command.current_dir(&self.directory).output().unwrap();
        let show = Show {
            picture: Some(width),
            separate_bars,
            difference: Some(level.parse::<Confidence>().unwrap()),
        };
        let theirs = String::from_utf8(output.stdout).unwrap();
        let ours = text::samples(&samples, show);
        let bars = if separate_bars { files.len() } else { 1 };
        let [low, whole] = [&ours, &theirs].map(|text| without_stacks(text, files.len(), bars));
        assert_eq!(low, whole, "{files:?}");
        ours == theirs
    }
}

/// A comparison whose picture has the lowest marks and the bars only.
fn without_stacks(text: &str, files: usize, bars: usize) -> Vec<&str> {
    let lines: Vec<_> = text.lines().collect();
    let end = lines
        .iter()
        .rposition(|line| line.starts_with("+-"))
        .unwrap();
    let (head, picture) = (&lines[..=files], &lines[end - bars - 1..]);
    [head, picture].concat()
}

#[test]
fn a_thousand_comparisons_are_ministats() {
    let Some(comparison) = Comparison::new("a_thousand_comparisons_are_ministats") else {
        return;
    };
    let mut random = Random(0x6d73);
    let mut same = 0;
    for _ in 0..1000 {
        let files: Vec<_> = (0..2 + random.below(3)).map(|_| random.values()).collect();
        let level = LEVELS[random.below(5) as usize];
        let width = 20 + random.below(100) as usize;
        same += u32::from(comparison.is_same(&files, level, width, random.below(2) > 0));
    }
    assert!(same > 200, "only {same} pictures are the same");
}

/// All degrees of freedom that ministat has a table for, and more. Its table for 99.5 % is up to
/// 0.003 too low from 7 to 12.
#[test]
fn quantiles_are_ministats() {
    let Some(comparison) = Comparison::new("quantiles_are_ministats") else {
        return;
    };
    let values = |count: u64, from: u64| -> String {
        (0..count)
            .map(|n| format!("{}\n", from + n * n % 7))
            .collect()
    };
    for degrees in 4..=110 {
        let first = (degrees + 2) / 2;
        let files = [values(first, 0), values(degrees + 2 - first, 1000)];
        for level in LEVELS {
            if level != "99.5" || !(7..=12).contains(&degrees) {
                comparison.is_same(&files, level, 74, false);
            }
        }
    }
}

/// Where ministat's variance is a difference of sums that cancel, its deviation is none.
#[test]
fn the_deviation_of_close_values_is_right() {
    let Some(comparison) = Comparison::new("the_deviation_of_close_values_is_right") else {
        return;
    };
    let close = [
        "1000000.0001",
        "1000000.0002",
        "1000000.0003",
        "1000000.0009",
    ];
    for (values, theirs, ours) in [
        (close.to_vec(), "0.012757759", "0.00035939765"),
        (vec!["47.089113"; 7], "-nan", "0"),
    ] {
        let content = values.join("\n") + "\n";
        fs::write(comparison.directory.path().join("file"), &content).unwrap();
        let mut command = Command::new("ministat");
        let output = command
            .args(["-n", "file"])
            .current_dir(&comparison.directory);
        let text = String::from_utf8(output.output().unwrap().stdout).unwrap();
        assert_eq!(text.split_whitespace().last(), Some(theirs), "{text}");
        let sample = Sample::new("file", Columns::default().read(&content).unwrap()).unwrap();
        let show = Show {
            picture: None,
            separate_bars: false,
            difference: None,
        };
        let text = text::samples(&[sample], show);
        assert_eq!(text.split_whitespace().last(), Some(ours), "{text}");
    }
}
