//! What is sent to the collector, and when.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use control::config::Sflow;
use router::sflow::{Counted, Counters, Datagram, Direction, Flow, Sample, UNKNOWN};

/// Longest time that a sample waits for others to be sent with (sflow_version_5.txt, section 4.1).
const FLUSH: Duration = Duration::from_secs(1);

/// The agent, whether or not it is to send anything.
#[derive(Default)]
pub struct Agent {
    running: Option<Running>,
    /// When it first had something to send.
    started: Option<Instant>,
    /// Datagrams that were sent, and those that the kernel did not take.
    pub(super) datagrams: u32,
    pub(super) failed: u64,
    /// Why it did not take the last of them.
    pub(super) error: Option<io::ErrorKind>,
    /// By ifIndex.
    sources: BTreeMap<u32, Numbers>,
}

struct Running {
    settings: Sflow,
    collector: SocketAddr,
    socket: UdpSocket,
    agent: IpAddr,
    datagram: Datagram,
    /// When its first sample was put in.
    since: Option<Instant>,
    /// When counters were last sent.
    counted: Option<Instant>,
}

/// Samples of an interface so far.
#[derive(Debug, Clone, Copy, Default)]
struct Numbers {
    flows: u32,
    counters: u32,
}

/// What is told of an interface.
pub(super) struct Source {
    /// Its ifIndex.
    pub index: u32,
    /// What it has counted.
    pub counted: Counted,
    /// It is administratively up.
    pub admin_up: bool,
    /// It carries packets.
    pub up: bool,
    /// It takes in frames to every station.
    pub promiscuous: bool,
}

impl Agent {
    /// It sends by these settings from now on, through a socket that `open` opens for the collector's
    /// family; `None`: nothing.
    ///
    /// # Errors
    /// The socket's: it goes on as before.
    pub(super) fn set(
        &mut self,
        settings: Option<&Sflow>,
        open: impl FnOnce(SocketAddr) -> io::Result<UdpSocket>,
    ) -> io::Result<()> {
        let Some(settings) = settings else {
            self.running = None;
            return Ok(());
        };
        let none = || io::Error::other("there is no collector");
        let collector = settings.collector.ok_or_else(none)?.0;
        let agent = Ipv4Addr::UNSPECIFIED.into();
        self.running = Some(Running {
            settings: *settings,
            collector,
            socket: open(collector)?,
            agent,
            datagram: Datagram::new(agent),
            since: None,
            counted: self.running.as_ref().and_then(|before| before.counted),
        });
        Ok(())
    }

    /// One packet in so many is sampled; `None`: none is.
    pub(super) fn rate(&self) -> Option<u32> {
        self.running.as_ref().map(|r| r.settings.sampling_rate)
    }

    /// Its settings, and the address that it has for the collector.
    pub(crate) fn settings(&self) -> Option<(&Sflow, IpAddr)> {
        let running = self.running.as_ref()?;
        Some((&running.settings, running.agent))
    }

    /// Samples of an interface that were put in datagrams.
    pub(super) fn samples(&self, index: u32) -> u32 {
        self.sources.get(&index).map_or(0, |numbers| numbers.flows)
    }

    /// What may be sent now, from the agent that is configured or from that of `address`; `None`:
    /// nothing.
    pub(super) fn sending(
        &mut self,
        now: Instant,
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> Option<Sending<'_>> {
        let running = self.running.as_mut()?;
        // What waits is of the address that the router had then.
        if running.datagram.is_empty() {
            let unknown = Ipv4Addr::UNSPECIFIED.into();
            let agent = running.settings.agent.or_else(address).unwrap_or(unknown);
            if running.agent != agent {
                running.agent = agent;
                running.datagram = Datagram::new(agent);
            }
        }
        let started = *self.started.get_or_insert(now);
        Some(Sending {
            running,
            uptime: now.saturating_duration_since(started).as_millis() as u32,
            now,
            datagrams: &mut self.datagrams,
            failed: &mut self.failed,
            error: &mut self.error,
            sources: &mut self.sources,
        })
    }
}

/// An agent at a time.
pub(super) struct Sending<'a> {
    running: &'a mut Running,
    now: Instant,
    /// Milliseconds since it first had something to send.
    uptime: u32,
    datagrams: &'a mut u32,
    failed: &'a mut u64,
    error: &'a mut Option<io::ErrorKind>,
    sources: &'a mut BTreeMap<u32, Numbers>,
}

impl Sending<'_> {
    /// Puts a sample of a packet in.
    pub fn flow(&mut self, source: &Source, sample: &Sample) {
        let numbers = self.sources.entry(source.index).or_default();
        numbers.flows = numbers.flows.wrapping_add(1);
        let settings = &self.running.settings;
        let header = sample.header();
        let most = header.len().min(settings.header_bytes.into());
        let flow = Flow {
            sequence: numbers.flows,
            source: source.index,
            rate: settings.sampling_rate,
            // They wrap around, as the standard's counters do.
            pool: source.counted.packets.rx_packets as u32,
            drops: source.counted.lost as u32,
            length: sample.length,
            header: &header[..most],
        };
        self.push(|datagram| datagram.push_flow(&flow));
    }

    /// True if it is time for counters, of all interfaces.
    pub fn counters_are_due(&mut self) -> bool {
        let interval = Duration::from_secs(self.running.settings.polling_interval.into());
        let counted = self.running.counted;
        let due = counted.is_none_or(|last| self.now >= last + interval);
        if due {
            self.running.counted = Some(self.now);
        }
        due
    }

    /// Puts counters of an interface in.
    pub fn counters(&mut self, source: &Source) {
        let numbers = self.sources.entry(source.index).or_default();
        numbers.counters = numbers.counters.wrapping_add(1);
        let counted = source.counted.packets;
        let counters = Counters {
            sequence: numbers.counters,
            source: source.index,
            speed: 0,
            admin_up: source.admin_up,
            up: source.up,
            promiscuous: source.promiscuous,
            // Why a packet was dropped is counted by nodes, not by interfaces.
            input: Direction {
                octets: counted.rx_bytes,
                packets: counted.rx_packets as u32,
                discards: counted.drops as u32,
                errors: UNKNOWN,
            },
            output: Direction {
                octets: counted.tx_bytes,
                packets: counted.tx_packets as u32,
                discards: counted.tx_errors as u32,
                errors: UNKNOWN,
            },
        };
        self.push(|datagram| datagram.push_counters(&counters));
    }

    fn push(&mut self, put: impl Fn(&mut Datagram) -> bool) {
        // An empty one has room for any.
        if !put(&mut self.running.datagram) {
            self.flush();
            put(&mut self.running.datagram);
        }
        self.running.since.get_or_insert(self.now);
    }

    /// Sends what has waited long enough.
    pub fn flush_if_due(&mut self) {
        let since = self.running.since;
        if since.is_some_and(|since| self.now >= since + FLUSH) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let running = &mut *self.running;
        let datagram = running.datagram.finish(*self.datagrams, self.uptime);
        match running.socket.send_to(datagram, running.collector) {
            Ok(_) => *self.error = None,
            Err(error) => {
                *self.failed += 1;
                *self.error = Some(error.kind());
            }
        }
        *self.datagrams = self.datagrams.wrapping_add(1);
        running.datagram.clear();
        running.since = None;
    }
}
