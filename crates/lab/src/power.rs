//! Energy that the machine takes while it forwards: from the processors' own counters (RAPL, Linux
//! `Documentation/power/powercap/powercap.rst`), or from a power meter that a command reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sandbox::{Error, Spawn};

/// The place of the processors' energy counters.
const ROOT: &str = "/sys/class/powercap";

/// The reason why no energy is known.
const NO_METER: &str = "not measured: the processors have no RAPL counters that can be read, and no \
                        --power-meter was given";

/// Time between two readings of a command: it must not take the processors from what is measured.
const EVERY: Duration = Duration::from_millis(250);

/// A command takes no longer.
const LIMIT: Duration = Duration::from_secs(5);

/// A source of readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meter {
    /// The counters of all processor packages.
    Rapl(Vec<Package>),
    /// A shell command that prints the watts of the moment.
    Command(String),
}

/// The energy counter of a processor package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// File with the microjoules since some moment.
    counter: PathBuf,
    /// Microjoules at which it begins again.
    range: u64,
}

/// A measurement that goes on.
#[derive(Debug)]
pub enum Metering {
    /// Counters, and the microjoules of each at the start.
    Rapl(Vec<(Package, u64)>),
    /// Samples of a command.
    Command(Samples),
}

/// Watts that a thread reads until it is told to stop.
#[derive(Debug)]
pub struct Samples {
    start: Instant,
    /// Dropped, it stops the thread.
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<f64>, Error>>,
}

/// What measures the energy, or why nothing does, for people.
pub fn source(meter: Option<&Meter>) -> String {
    meter.map_or_else(|| NO_METER.to_owned(), Meter::describe)
}

impl Meter {
    /// The command's meter, or that of this machine; `None`: it has none.
    ///
    /// # Errors
    /// The command fails, or prints something that is no number.
    pub fn find(command: Option<String>) -> Result<Option<Meter>, Error> {
        let Some(command) = command else {
            return Ok(Self::rapl(Path::new(ROOT)));
        };
        watts(&command)?;
        Ok(Some(Meter::Command(command)))
    }

    fn rapl(root: &Path) -> Option<Meter> {
        let zones = fs::read_dir(root).ok()?.flatten().map(|zone| zone.path());
        let mut packages: Vec<Package> = zones.filter_map(|zone| Package::at(&zone)).collect();
        packages.sort_by(|a, b| a.counter.cmp(&b.counter));
        (!packages.is_empty()).then_some(Meter::Rapl(packages))
    }

    /// Begins to measure.
    ///
    /// # Errors
    /// A counter cannot be read.
    pub fn start(&self) -> Result<Metering, Error> {
        match self {
            Meter::Rapl(packages) => {
                let with_count = |p: &Package| Ok((p.clone(), p.microjoules()?));
                let packages = packages.iter().map(with_count);
                packages.collect::<Result<_, _>>().map(Metering::Rapl)
            }
            Meter::Command(command) => Ok(Metering::Command(Samples::of(command.clone()))),
        }
    }

    /// What is measured, for people.
    pub fn describe(&self) -> String {
        match self {
            Meter::Rapl(packages) => {
                format!("processor packages by RAPL ({} of them)", packages.len())
            }
            Meter::Command(command) => format!("power meter `{command}`"),
        }
    }
}

impl Package {
    /// The package of a zone. Its parts, and `psys`, which has all of them, would count twice.
    fn at(zone: &Path) -> Option<Self> {
        let name = fs::read_to_string(zone.join("name")).ok()?;
        let range = fs::read_to_string(zone.join("max_energy_range_uj")).ok()?;
        name.starts_with("package").then_some(Package {
            counter: zone.join("energy_uj"),
            range: range.trim().parse().ok()?,
        })
    }

    fn microjoules(&self) -> Result<u64, Error> {
        let path = self.counter.display().to_string();
        let text = fs::read_to_string(&self.counter).map_err(|e| Error::file(&path, e))?;
        text.trim().parse().map_err(|_| Error::Output {
            program: path,
            message: format!("`{}` is no number", text.trim()),
        })
    }
}

impl Metering {
    /// Joules since the start.
    ///
    /// # Errors
    /// A counter cannot be read; the command fails, prints something that is no number, or has
    /// printed nothing in time.
    pub fn joules(self) -> Result<f64, Error> {
        match self {
            Metering::Rapl(packages) => {
                let spent = packages.iter().map(|(package, then)| {
                    let now = package.microjoules()?;
                    // It has begun again at most once: that takes minutes.
                    let spent = now.checked_sub(*then);
                    Ok(spent.unwrap_or_else(|| now + package.range.saturating_sub(*then)) as f64)
                });
                let microjoules: f64 = spent.sum::<Result<f64, Error>>()?;
                Ok(microjoules / 1e6)
            }
            Metering::Command(samples) => samples.joules(),
        }
    }
}

impl Samples {
    fn of(command: String) -> Self {
        let (stop, stopped) = mpsc::channel();
        let read = move || {
            let mut samples = Vec::new();
            loop {
                samples.push(watts(&command)?);
                if stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Disconnected) {
                    return Ok(samples);
                }
            }
        };
        Samples {
            start: Instant::now(),
            stop,
            thread: std::thread::spawn(read),
        }
    }

    fn joules(self) -> Result<f64, Error> {
        let Samples {
            start,
            stop,
            thread,
        } = self;
        let seconds = start.elapsed().as_secs_f64();
        drop(stop);
        let samples = thread.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        Ok(seconds * samples.iter().sum::<f64>() / samples.len().max(1) as f64)
    }
}

/// The watts that a command prints.
fn watts(command: &str) -> Result<f64, Error> {
    let failed = |message: String| Error::Output {
        program: format!("power meter `{command}`"),
        message,
    };
    let output = Spawn::new("sh").args(["-c", command]).output(LIMIT);
    let output = output.map_err(|e| failed(e.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let number = said.trim().parse::<f64>().ok();
    match number.filter(|watts| output.status.success() && watts.is_finite() && *watts >= 0.0) {
        Some(watts) => Ok(watts),
        None => Err(failed(format!(
            "it must print the watts of the moment, as in 41.5, and printed `{}`; {}; {}",
            said.trim(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, zone: &str, name: &str, microjoules: u64) -> PathBuf {
        let zone = root.join(zone);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("{name}\n")).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "10000000\n").unwrap();
        fs::write(zone.join("energy_uj"), format!("{microjoules}\n")).unwrap();
        zone.join("energy_uj")
    }

    #[test]
    fn packages_are_added_up_and_their_parts_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert_eq!(Meter::rapl(root), None);
        let one = zone(root, "intel-rapl:0", "package-0", 1_000_000);
        let two = zone(root, "intel-rapl:1", "package-1", 9_000_000);
        let part = zone(root, "intel-rapl:0:0", "core", 5);
        let all = zone(root, "intel-rapl:2", "psys", 5);
        let metering = Meter::rapl(root).unwrap().start().unwrap();
        for (counter, now) in [(&one, 3_500_000), (&part, 7), (&all, 9)] {
            fs::write(counter, format!("{now}\n")).unwrap();
        }
        // This one has begun again at 10 J.
        fs::write(&two, "500000\n").unwrap();
        let joules = metering.joules().unwrap();
        assert!((joules - 4.0).abs() < 1e-9, "{joules}");
    }

    #[test]
    fn a_command_says_the_watts() {
        let meter = Meter::find(Some("echo 20".into())).unwrap().unwrap();
        let (start, metering) = (Instant::now(), meter.start().unwrap());
        let started = Instant::now();
        while started.elapsed().as_millis() < 30 {
            std::thread::yield_now();
        }
        let joules = metering.joules().unwrap();
        let most = 20.0 * start.elapsed().as_secs_f64();
        assert!((0.6..=most).contains(&joules), "{joules} of {most}");
        for wrong in ["echo much", "echo 5; exit 1", "echo -3", "true", "echo NaN"] {
            let error = Meter::find(Some(wrong.into())).unwrap_err().to_string();
            assert!(error.contains("watts of the moment"), "{error}");
        }
    }
}
