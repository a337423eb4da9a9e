//! Energy that the machine takes while it forwards: from the processors' own counters (RAPL, Linux
//! `Documentation/power/powercap/powercap.rst`), or from a power meter that a command reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
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

/// Watts that no machine takes: whoever prints more prints something else, or in another unit.
const MOST: f64 = 1e6;

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
    /// The start, and the microjoules of each counter then.
    Rapl(Instant, Vec<(Package, u64)>),
    /// Samples of a command.
    Command(Samples),
}

/// Watts that a thread reads until it is told to stop.
#[derive(Debug)]
pub struct Samples {
    /// Dropped, it stops the thread.
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<f64>, Error>>,
}

/// Microjoules for each of `packets` that came back, if sending them for `seconds` took `watts`;
/// `None` if none did.
pub fn microjoules_per_packet(watts: f64, seconds: f64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| 1e6 * watts * seconds / packets as f64)
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
                let packages = packages.collect::<Result<_, _>>()?;
                Ok(Metering::Rapl(Instant::now(), packages))
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
    /// The mean power in watts since the start, in the time between the readings themselves: they
    /// need not begin and end with what is measured.
    ///
    /// # Errors
    /// A counter cannot be read; the command fails, prints something that is no number, or has
    /// printed nothing in time.
    pub fn watts(self) -> Result<f64, Error> {
        match self {
            Metering::Rapl(start, packages) => {
                let spent = packages.iter().map(|(package, then)| {
                    let now = package.microjoules()?;
                    // It has begun again at most once: that takes minutes.
                    let spent = now.checked_sub(*then);
                    Ok(spent.unwrap_or_else(|| now + package.range.saturating_sub(*then)) as f64)
                });
                let microjoules: f64 = spent.sum::<Result<f64, Error>>()?;
                // Two readings at once say nothing, and divide by nothing.
                let seconds = start.elapsed().as_secs_f64().max(1e-9);
                Ok(microjoules / 1e6 / seconds)
            }
            Metering::Command(samples) => samples.watts(),
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
            stop,
            thread: std::thread::spawn(read),
        }
    }

    fn watts(self) -> Result<f64, Error> {
        drop(self.stop);
        let samples = self.thread.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        Ok(samples.iter().sum::<f64>() / samples.len().max(1) as f64)
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
    match number.filter(|watts| output.status.success() && (0.0..=MOST).contains(watts)) {
        Some(watts) => Ok(watts),
        None => Err(failed(objection(said.trim(), &output))),
    }
}

/// What is wrong with a command that printed `said`.
fn objection(said: &str, output: &Output) -> String {
    let printed = match said {
        "" => "nothing".to_owned(),
        said => format!("`{said}`"),
    };
    let status = match output.status.success() {
        true => String::new(),
        false => format!("; {}", output.status),
    };
    let complaint = match String::from_utf8_lossy(&output.stderr).trim() {
        "" => String::new(),
        complaint => format!("; {complaint}"),
    };
    format!(
        "it must print the watts of the moment, as in 41.5, from 0 to {MOST}, and printed \
         {printed}{status}{complaint}"
    )
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
        let before = Instant::now();
        let metering = Meter::rapl(root).unwrap().start().unwrap();
        let started = Instant::now();
        for (counter, now) in [(&one, 3_500_000), (&part, 7), (&all, 9)] {
            fs::write(counter, format!("{now}\n")).unwrap();
        }
        // This one has begun again at 10 J.
        fs::write(&two, "500000\n").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let least = started.elapsed().as_secs_f64();
        let watts = metering.watts().unwrap();
        let most = before.elapsed().as_secs_f64();
        assert!((4.0 / most..=4.0 / least).contains(&watts), "{watts}");
    }

    #[test]
    fn energy_is_for_packets_that_came_back() {
        assert_eq!(microjoules_per_packet(20.0, 2.0, 1000), Some(40_000.0));
        assert_eq!(microjoules_per_packet(20.0, 2.0, 0), None);
    }

    #[test]
    fn a_command_says_the_watts() {
        let meter = Meter::find(Some("echo 20".into())).unwrap().unwrap();
        let metering = meter.start().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(metering.watts().unwrap(), 20.0);
        for (wrong, end) in [
            ("echo much", "printed `much`"),
            ("echo 5; exit 1", "printed `5`; exit status: 1"),
            ("echo -3", "printed `-3`"),
            ("true", "printed nothing"),
            ("echo NaN", "printed `NaN`"),
            ("echo inf", "printed `inf`"),
            ("echo 1000001", "from 0 to 1000000, and printed `1000001`"),
            (
                "echo no outlet >&2; exit 2",
                "printed nothing; exit status: 2; no outlet",
            ),
        ] {
            let error = Meter::find(Some(wrong.into())).unwrap_err().to_string();
            assert!(error.contains("watts of the moment"), "{error}");
            assert!(error.ends_with(end), "{error}");
        }
    }
}
