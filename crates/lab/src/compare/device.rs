//! The devices under test.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use report::model::PortMode;
use report::setup::{Dut, Io, Lane, Spread};

use super::topology::{Merge, Topology};
use sandbox::{Error, Process, Spawn, cleanup, command, patience, veth};

/// True if the device has ports of this kind.
pub fn has(dut: Dut, io: Io) -> bool {
    dut == Dut::Parshall || io == Io::Veth
}

/// Processors of the generator and of the device; the same one if there is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    /// The generator's.
    pub generator: usize,
    /// The device's, if it has one of its own.
    pub device: usize,
}

impl Cpus {
    /// The first two processors that we may use.
    pub fn here() -> Self {
        let cpus = kernel::cpu::usable();
        Self {
            generator: cpus[0],
            device: *cpus.get(1).unwrap_or(&cpus[0]),
        }
    }

    /// The number of different ones.
    pub fn count(self) -> usize {
        1 + usize::from(self.generator != self.device)
    }

    /// Those of the processors `usable` that the load tester may use beside a device spread like
    /// this: not the device's, if it has one of its own.
    pub fn off_device(self, spread: Spread, usable: &[usize]) -> Vec<usize> {
        let mut others = usable.to_vec();
        others.retain(|cpu| spread == Spread::Shared || *cpu != self.device);
        others
    }

    /// Processor that the device runs on when spread like this.
    fn of_device(self, spread: Spread) -> usize {
        match spread {
            Spread::Shared => self.generator,
            Spread::Apart => self.device,
        }
    }
}

/// A device in its namespace, ready to forward.
#[derive(Debug)]
pub struct Running {
    /// The lane that forwards.
    pub lane: Lane,
    /// Its ports and their modes.
    pub ports: Vec<PortMode>,
    router: Option<Router>,
}

/// The router, and how it is asked.
#[derive(Debug)]
struct Router {
    configuration: String,
    process: Process,
    exe: String,
    socket: String,
}

impl Router {
    fn show(&self, words: &[&str]) -> Result<String, Error> {
        show(&self.exe, &self.socket, words)
    }

    /// Waits until all of `parts` are in what it shows.
    fn shows(&mut self, words: &[&str], parts: &[&str]) -> Result<(), Error> {
        let Self {
            process,
            exe,
            socket,
            ..
        } = self;
        process.ready(patience(Duration::from_secs(20)), || {
            show(exe, socket, words).is_ok_and(|text| parts.iter().all(|part| text.contains(part)))
        })
    }

    /// Waits until it has a route.
    fn learns(&mut self, prefix: &str) -> Result<(), Error> {
        let family = if prefix.contains(':') { "ip6" } else { "ip" };
        self.shows(&[family, "fib", prefix], &[prefix])
    }
}

fn show(exe: &str, socket: &str, words: &[&str]) -> Result<String, Error> {
    let argv = [&[exe, "show", "--socket", socket], words].concat();
    command::run(&argv)
}

impl Running {
    /// Starts a device in the topology and waits until it can forward. `router` is what Parshall's
    /// router has beyond the configuration of its ports, and how both become one.
    ///
    /// # Errors
    /// If both do not become one; if it does not get ready: the message has the last lines of its log.
    pub fn start(
        dut: Dut,
        io: Io,
        exe: &Path,
        spread: Spread,
        cpus: Cpus,
        at: &Topology,
        router: Option<(&str, Merge)>,
    ) -> Result<Self, Error> {
        match dut {
            Dut::Kernel => kernel(spread, cpus, at),
            Dut::Parshall => {
                let ports = at.router_configuration(cpus.of_device(spread));
                let configuration = match router {
                    Some((beyond, merge)) => merge(&ports, beyond)?,
                    None => ports,
                };
                parshall(io, exe, &configuration, at)
            }
        }
    }

    /// What a script must know to configure it: of the router, where its configuration file and its
    /// socket are.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let router = self.router.iter().flat_map(|router| {
            [
                ("PARSHALL_CONFIGURATION", &router.configuration),
                ("PARSHALL_SOCKET", &router.socket),
            ]
        });
        router.map(|(name, value)| (name.to_owned(), value.clone()))
    }

    /// Stops it in an orderly way. The topology can be used again.
    ///
    /// # Errors
    /// If the router does not end.
    pub fn stop(mut self) -> Result<(), Error> {
        match &mut self.router {
            Some(router) => router.process.stop().map(drop),
            None => Ok(()),
        }
    }

    /// Adds routes of IPv6 to what is behind `gen1`, and waits until the device has them.
    ///
    /// # Errors
    /// If the kernel refuses one, or the router does not learn them.
    pub fn add_routes(&mut self, at: &Topology, prefixes: &[String]) -> Result<(), Error> {
        at.add_routes_of(prefixes)?;
        match (&mut self.router, prefixes.last()) {
            // It learns them in the order in which they were made.
            (Some(router), Some(last)) => router.learns(last),
            _ => Ok(()),
        }
    }
}

fn kernel(spread: Spread, cpus: Cpus, at: &Topology) -> Result<Running, Error> {
    at.device.set_forwarding(true)?;
    at.kernel_forwards()?;
    if spread == Spread::Apart {
        // The generator's ends of the links are polled where the device sends: on its processor.
        for name in ["dut0", "dut1"] {
            veth::thread_on(&at.device, name, cpus.device)?;
        }
    }
    let ports = vec![port(Dut::Kernel, Io::Veth, "kernel forwarding, GRO on")];
    Ok(Running {
        lane: Lane::Kernel,
        ports,
        router: None,
    })
}

fn parshall(io: Io, exe: &Path, configuration: &str, at: &Topology) -> Result<Running, Error> {
    let directory = cleanup::directory();
    let file = directory.join("router.yaml");
    let socket = directory.join("router.sock");
    fs::write(&file, configuration).map_err(|e| Error::file(&file, e))?;
    // Packets that the kernel forwarded would count as the router's.
    at.device.set_forwarding(false)?;
    let state = directory.join("router.state").display().to_string();
    let (file, socket) = (file.display().to_string(), socket.display().to_string());
    let exe = exe.display().to_string();
    let process = Spawn::new(&exe)
        .args(["run", "-c", &file, "--socket", &socket, "--state", &state])
        .inside(&at.device)
        .start()?;
    let mut router = Router {
        configuration: file,
        process,
        exe,
        socket,
    };
    router.shows(&["interface"], &["dut0", "dut1"])?;
    at.add_routes()?;
    at.networks()
        .try_for_each(|network| router.learns(network))?;
    let Hardware { mode, lane } = Hardware::of_first(&router.show(&["hardware", "--json"])?)?;
    Ok(Running {
        lane,
        ports: vec![port(Dut::Parshall, io, &mode)],
        router: Some(router),
    })
}

fn port(dut: Dut, io: Io, mode: &str) -> PortMode {
    PortMode {
        user: dut.to_string(),
        name: "dut0, dut1".into(),
        driver: io.to_string(),
        mode: mode.into(),
    }
}

/// The part of an interface in `show hardware --json` that is used here.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Hardware {
    mode: String,
    lane: Lane,
}

impl Hardware {
    /// That of the first interface; all ports are alike, and behind them come their sub-interfaces.
    fn of_first(json: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Answer {
            interfaces: Vec<Value>,
        }
        let wrong = |message: String| Error::Output {
            program: "parshall show hardware --json".into(),
            message,
        };
        let answer: Answer = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
        let first = answer.interfaces.into_iter().next();
        let first = first.ok_or_else(|| wrong("no interface in it".into()))?;
        serde_json::from_value(first).map_err(|e| wrong(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of the router. A system test checks that the router still answers like this.
    const ANSWER: &str = include_str!("hardware.json");

    #[test]
    fn the_routers_answer_is_read() {
        let (mode, lane) = ("copy".into(), Lane::Userspace);
        assert_eq!(Hardware::of_first(ANSWER).unwrap(), Hardware { mode, lane });
    }

    #[test]
    fn answers_of_another_shape_are_refused() {
        let read = Hardware::of_first;
        for (json, why) in [
            (
                r#"{"interfaces":[{"mode":"copy"}]}"#,
                "missing field `lane`",
            ),
            (r#"{"interfaces":[{"mode":null,"lane":"xdp"}]}"#, "null"),
            (
                r#"{"interfaces":[{"mode":"copy","lane":"kernel space"}]}"#,
                "unknown variant",
            ),
            (r#"{"interfaces":[]}"#, "no interface"),
            ("no json", "expected"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_load_tester_stays_off_the_device() {
        let cpus = Cpus {
            generator: 2,
            device: 3,
        };
        assert_eq!(cpus.off_device(Spread::Apart, &[2, 3, 5]), [2, 5]);
        assert_eq!(cpus.off_device(Spread::Shared, &[2, 3, 5]), [2, 3, 5]);
    }

    #[test]
    fn kernel_has_no_memif() {
        assert!(has(Dut::Kernel, Io::Veth) && !has(Dut::Kernel, Io::Memif));
        assert!(has(Dut::Parshall, Io::Memif));
    }
}
