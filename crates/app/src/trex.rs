//! `parshall trex-server`: the load tester, driven by T-Rex's clients.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ::trex::zmtp::Limits;
use ::trex::{Addresses, PortFacts, Server};
use clap::Args;
use loadgen::model::units::Bits;
use session::interface::Interface;
use session::{Links, Member, Session, Spec, Threads};
use wire::eth::Mac;

use crate::load::{Interrupt, line_rate};
use crate::output;

/// The ports of a load session, and what serves them.
#[derive(Args, Debug)]
pub struct Tester {
    /// Port, once for each: af_xdp:IF, memif:PATH,id=N,role=client|server,secret-file=FILE, or
    /// pcap:FILE, which only writes
    #[arg(long = "port", value_name = "PORT", required = true)]
    ports: Vec<Spec>,
    /// Speed in bits a second, for rates in %, once for all ports or once for each [default: the
    /// link's]
    #[arg(long = "speed", value_name = "RATE", value_parser = line_rate)]
    speeds: Vec<Bits>,
    /// Destination Ethernet address, once for each port [default: that of the port at the other
    /// end]
    #[arg(long, value_name = "MAC")]
    dst_mac: Vec<Mac>,
    /// Threads that send; the packets of each stream are divided among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    cores: u32,
    /// Processors to bind threads to, in order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpu: Vec<usize>,
}

/// Serve T-Rex's clients and scripts: they acquire ports, add streams, start and measure.
///
/// Ports are numbered from 0 on, and come in pairs: 0 receives what 1 sends, and 1 what 0 sends. A
/// single port receives its own packets.
#[derive(Args, Debug)]
pub struct TrexServer {
    #[command(flatten)]
    tester: Tester,
    /// Address to listen on. T-Rex's protocol knows no passwords: whoever reaches it may send
    /// traffic, so let it be one that only those reach who may
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// TCP port for requests; 0: any that is free
    #[arg(long, value_name = "N", default_value_t = 4501)]
    rpc_port: u16,
    /// TCP port for events; 0: any that is free
    #[arg(long, value_name = "N", default_value_t = 4500)]
    events_port: u16,
}

/// Ports as clients see them, and as they are opened.
type Ports = (Vec<PortFacts>, Vec<Member<Spec>>);

/// Time between checks for the end: nobody sees so short a delay, and 20 checks a second cost
/// nothing.
const TICK: Duration = Duration::from_millis(50);

impl TrexServer {
    /// Serves until a signal to end comes.
    ///
    /// # Errors
    /// The mistake in the command line, a port or an address.
    pub fn run(self) -> crate::Outcome {
        if self.rpc_port == self.events_port && self.rpc_port != 0 {
            let port = self.rpc_port;
            return Err(format!("--rpc-port and --events-port are the same, {port}").into());
        }
        let interrupt = Interrupt::on_signal()?;
        let (session, facts) = self.tester.open(&interrupt)?;
        let at = |port| SocketAddr::new(self.listen, port);
        let addresses = Addresses {
            requests: at(self.rpc_port),
            events: at(self.events_port),
        };
        let server = Server::start(session, facts, addresses, Limits::default());
        let server = server.map_err(|e| {
            let (requests, events) = (addresses.requests, addresses.events);
            format!("{requests} and {events}: {e}; choose others by --rpc-port and --events-port")
        })?;
        let Addresses { requests, events } = server.addresses();
        if !self.listen.is_loopback() {
            output::tell(&format!(
                "parshall: anyone who can reach {} can send traffic: T-Rex's protocol has no \
                 passwords\n",
                self.listen
            ));
        }
        output::print(&format!("requests at {requests}, events at {events}\n"))?;
        while !interrupt.has_come() {
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}

impl Tester {
    /// Opens the ports, and says what they are.
    ///
    /// # Errors
    /// The mistake in the command line, or a port.
    pub fn open(
        &self,
        interrupt: &Interrupt,
    ) -> Result<(Session, Vec<PortFacts>), Box<dyn std::error::Error>> {
        let (mut facts, members) = self.ports()?;
        let threads = Threads {
            cores: self.cores,
            cpus: &self.cpu,
        };
        let session = Session::open(&members, threads, interrupt)?;
        // That one is lost ends nothing: clients are told, and the others go on.
        let links = Links::watch(&self.ports, Arc::default())?;
        for (port, spec) in facts.iter_mut().zip(&self.ports) {
            port.link = links.of(spec);
        }
        Ok((session, facts))
    }

    /// The ports that are asked for.
    fn ports(&self) -> Result<Ports, Box<dyn std::error::Error>> {
        let count = self.ports.len();
        if count > 1 && !count.is_multiple_of(2) {
            return Err(format!("{count} ports; they come in pairs: give one more --port").into());
        }
        if ![0, 1, count].contains(&self.speeds.len()) {
            return Err("give --speed once for all ports, or once for each".into());
        }
        if ![0, count].contains(&self.dst_mac.len()) {
            return Err("give --dst-mac once for each port, or not at all".into());
        }
        let receiver = |number: usize| if count == 1 { 0 } else { number ^ 1 };
        let macs: Vec<Mac> = self
            .ports
            .iter()
            .enumerate()
            .map(mac)
            .collect::<Result<_, _>>()?;
        let (mut facts, mut members) = (Vec::new(), Vec::new());
        for (number, spec) in self.ports.iter().enumerate() {
            let given = self.speeds.get(number).or(self.speeds.first()).copied();
            let known = || Interface::open(spec.interface()?).ok()?.line();
            let line = given.or_else(|| known().map(|line| line.rate));
            facts.push(PortFacts {
                driver: spec
                    .sender()
                    .map(|kind| kind.to_string())
                    .unwrap_or_default(),
                description: spec.to_string(),
                receiver: receiver(number),
                line,
                mac: macs[number],
                destination: match self.dst_mac.get(number) {
                    Some(mac) => *mac,
                    None => macs[receiver(number)],
                },
                takes_all: spec.interface().is_none(),
                link: None,
            });
            members.push(Member {
                port: spec.clone(),
                receiver: receiver(number),
                line,
            });
        }
        Ok((facts, members))
    }
}

/// A port's own Ethernet address.
fn mac((number, spec): (usize, &Spec)) -> Result<Mac, session::Error> {
    let interface = spec.interface().map(Interface::open).transpose()?;
    let own = interface.and_then(|interface| interface.mac);
    // For a port without a device, any locally administered address will do.
    let last = u8::try_from(number).unwrap_or(u8::MAX);
    Ok(own.unwrap_or(Mac([0x02, 0x70, 0x73, 0, 0xfe, last])))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        server: TrexServer,
    }

    fn server(words: &str) -> TrexServer {
        let words = ["parshall"].into_iter().chain(words.split(' '));
        Cli::try_parse_from(words).expect("a command line").server
    }

    #[test]
    fn ports_come_in_pairs() {
        let ports = |words: &str| server(words).tester.ports().map_err(|e| e.to_string());
        let (facts, members) =
            ports("--port memif:@a --port memif:@b --speed 10gbps").expect("two");
        assert_eq!([facts[0].receiver, members[1].receiver], [1, 0]);
        assert_eq!(
            (facts[0].destination, facts[1].line),
            (facts[1].mac, Some(Bits(1e10)))
        );
        let (facts, _) = ports("--port memif:@a --dst-mac 02:00:00:00:00:07").expect("one");
        assert_eq!((facts[0].receiver, facts[0].line), (0, None));
        assert_eq!(facts[0].destination, Mac([2, 0, 0, 0, 0, 7]));
        for (words, what) in [
            (
                "--port memif:@a --port memif:@b --port memif:@c",
                "come in pairs",
            ),
            (
                "--port memif:@a --speed 1gbps --speed 2gbps",
                "--speed once",
            ),
            (
                "--port memif:@a --port memif:@b --dst-mac 02:00:00:00:00:07",
                "--dst-mac once",
            ),
            ("--port af_xdp:no-such-device", "no-such-device"),
        ] {
            let why = ports(words).map(drop).expect_err("refused");
            assert!(why.contains(what), "{words}: {why}");
        }
    }

    #[test]
    fn it_listens_on_loopback_unless_told_otherwise() {
        assert!(server("--port memif:@a").listen.is_loopback());
        assert!(!server("--port memif:@a --listen ::").listen.is_loopback());
    }
}
