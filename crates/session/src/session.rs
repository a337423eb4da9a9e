//! Ports that stay open while their streams and rates change.

use std::sync::Arc;
use std::time::Duration;

use graph::{Pool, Port as Device};
use loadgen::device::{Count, Failure, Receiver, Transmitter};
use loadgen::model::load::Load;
use loadgen::model::rate::Rate;
use loadgen::model::stream::{Stream, base_rates};
use loadgen::model::units::{Bits, Pps};
use loadgen::send::Cores;
use loadgen::tester::Ended;

use crate::interface::Interface;
use crate::software::{Queues, Served, Software, Threads, place, serve, serve_open};
use crate::statistics::{self, PortStatistics, State, Statistics};
use crate::{Caller, Error, Spec};

/// A port of a session.
#[derive(Debug, Clone)]
pub struct Member<P> {
    /// The port: a [`Spec`] to open, or a device that is open.
    pub port: P,
    /// Number of the port that receives what this one sends: the one at the far end of the device
    /// under test, or itself.
    pub receiver: usize,
    /// Line rate on layer 1 in bits a second, for rates in %; None: the interface's, if it has one.
    pub line: Option<Bits>,
}

/// Ports, numbered from 0 on in the order they were given, with their owners and streams.
///
/// An owner who has [acquired](Self::acquire) a port gives it [streams](Self::set_streams) and
/// starts it. All of it is allowed while other ports send: they are not disturbed. Dropping the
/// session stops all ports and closes them.
pub struct Session {
    ports: Vec<Port>,
    served: Served,
}

/// A port and what it does.
struct Port {
    name: String,
    receiver: usize,
    line: Option<Bits>,
    owner: Option<String>,
    state: State,
    /// The rate of the latest start or update.
    rate: Pps,
    streams: Vec<(Stream, Pps)>,
    tx: Cores,
    /// Counts what comes by this port.
    rx: Queues,
    /// Counts of what streams before these have sent, of what had come until its streams were
    /// replaced, and of how often the queue was full for streams before these.
    sent_before: Count,
    received_before: Count,
    queue_full_before: u64,
}

impl Session {
    /// Opens ports and starts the threads that serve them: AF_XDP and memif send and receive, a
    /// capture file is written. Live frames and sinks have plans that do not change while they run:
    /// [`open()`](crate::open()) is for those.
    ///
    /// # Errors
    /// A port cannot be opened, is given twice, or cannot be what a session's is; two have one
    /// receiver; the caller gives up.
    pub fn open(
        members: &[Member<Spec>],
        threads: Threads<'_>,
        caller: &dyn Caller,
    ) -> Result<Self, Error> {
        let mut software = Vec::new();
        let mut ports = Vec::new();
        for Member {
            port: spec,
            receiver,
            line,
        } in members
        {
            let interface = spec.interface().map(Interface::open).transpose()?;
            add(spec, &mut software)?;
            let known = interface.and_then(|interface| interface.line());
            let line = line.or(known.map(|line| line.rate));
            ports.push(Port::new(spec.to_string(), *receiver, line));
        }
        check_receivers(&ports)?;
        let served = serve(software, threads, caller)?;
        Ok(Self::new(ports, served))
    }

    /// A session of devices that are open, with one queue each, served by one thread that takes
    /// packets from `pool`, as they do.
    ///
    /// # Errors
    /// Two have one receiver; the thread cannot be started.
    pub fn of(members: Vec<Member<Box<dyn Device>>>, pool: &Arc<Pool>) -> Result<Self, Error> {
        let of = |member: &Member<Box<dyn Device>>| {
            let name = member.port.name().to_owned();
            Port::new(name, member.receiver, member.line)
        };
        let ports: Vec<Port> = members.iter().map(of).collect();
        check_receivers(&ports)?;
        let devices = members.into_iter().map(|member| member.port).collect();
        Ok(Self::new(ports, serve_open(devices, pool)?))
    }

    fn new(mut ports: Vec<Port>, mut served: Served) -> Self {
        for (number, port) in ports.iter_mut().enumerate() {
            (port.tx, port.rx) = served.take(number);
        }
        Self { ports, served }
    }

    /// Makes `owner` the one who may change a port, until it is [released](Self::release). With
    /// `force` also if somebody else has it: what it sends goes on until it is stopped.
    ///
    /// # Errors
    /// There is no such port, or somebody else has it.
    pub fn acquire(&mut self, port: usize, owner: &str, force: bool) -> Result<(), Error> {
        let acquired = &mut self.get(port)?.owner;
        match acquired {
            Some(other) if other != owner && !force => Err(Error::Acquired {
                port,
                owner: other.clone(),
            }),
            _ => {
                *acquired = Some(owner.to_owned());
                Ok(())
            }
        }
    }

    /// Lets others acquire a port. What it sends goes on.
    ///
    /// # Errors
    /// There is no such port, or it is not the owner's.
    pub fn release(&mut self, port: usize, owner: &str) -> Result<(), Error> {
        self.owned(port, owner)?.owner = None;
        Ok(())
    }

    /// Replaces the streams of a port, which are addressed (see [`Stream::address`]), and lets its
    /// receiver expect them: their counts begin at 0. No streams are as good as none ever set.
    ///
    /// # Errors
    /// There is no such port, it is not the owner's, or runs; a rate is a share of an unknown line;
    /// a thread has ended.
    pub fn set_streams(
        &mut self,
        port: usize,
        owner: &str,
        streams: Vec<Stream>,
    ) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        if this.state().runs() {
            return Err(Error::Running(port));
        }
        let rates = base_rates(&streams, this.line).ok_or(Error::NoLine(port))?;
        let receiver = this.receiver;
        let failed = |source: Ended| Error::Device {
            port,
            source: source.into(),
        };
        // What is there to receive comes first: nothing of the new streams is taken for a stranger.
        let rx = self.served.expect(receiver, &streams).map_err(failed)?;
        let streams: Vec<(Stream, Pps)> = streams.into_iter().zip(rates).collect();
        let tx = self.served.send(port, &streams).map_err(failed)?;
        let there = &mut self.ports[receiver];
        there.received_before = there.received();
        there.rx = rx;
        let this = &mut self.ports[port];
        this.sent_before = this.sent();
        this.queue_full_before = this.queue_full();
        this.tx = tx;
        this.state = if streams.is_empty() {
            State::Idle
        } else {
            State::Ready
        };
        this.streams = streams;
        Ok(())
    }

    /// Starts a port at `rate`, its profile from the beginning. It stops by itself after
    /// `duration`, or when a profile of bursts ends.
    ///
    /// # Errors
    /// There is no such port, it is not the owner's, runs already, has no streams, or cannot be sent
    /// at that rate; a thread has ended.
    pub fn start(
        &mut self,
        port: usize,
        owner: &str,
        rate: Rate,
        duration: Option<Duration>,
    ) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        if this.state().runs() {
            return Err(Error::Running(port));
        }
        let rate = this.resolve(port, rate)?;
        this.rate = rate;
        this.change(port, State::Sending, |tx| tx.start_for(rate, duration))
    }

    /// Changes the rate of a port that sends, without a gap, or that pauses.
    ///
    /// # Errors
    /// There is no such port, it is not the owner's, does not run, or cannot be sent at that rate.
    pub fn update(&mut self, port: usize, owner: &str, rate: Rate) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        if !this.state().runs() {
            return Err(Error::NotRunning(port));
        }
        this.rate = this.resolve(port, rate)?;
        if this.state == State::Sending {
            this.tx.set_rate(this.rate);
        }
        Ok(())
    }

    /// Stops a port for a while: it goes on where it stopped.
    ///
    /// # Errors
    /// There is no such port, it is not the owner's, or does not send; a thread has ended.
    pub fn pause(&mut self, port: usize, owner: &str) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        match this.state() {
            State::Sending => this.change(port, State::Paused, Cores::pause),
            _ => Err(Error::NotRunning(port)),
        }
    }

    /// Lets a port that pauses go on.
    ///
    /// # Errors
    /// There is no such port, it is not the owner's, or does not pause; a thread has ended.
    pub fn resume(&mut self, port: usize, owner: &str) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        let rate = this.rate;
        match this.state() {
            State::Paused => this.change(port, State::Sending, |tx| tx.resume(rate)),
            _ => Err(Error::NotPaused(port)),
        }
    }

    /// Stops a port, if it runs. When this returns, nothing more is sent.
    ///
    /// # Errors
    /// There is no such port, or it is not the owner's; a thread has ended.
    pub fn stop(&mut self, port: usize, owner: &str) -> Result<(), Error> {
        let this = self.owned(port, owner)?;
        if this.streams.is_empty() {
            Ok(())
        } else {
            this.change(port, State::Ready, Cores::stop)
        }
    }

    /// Counts of every port since the session was opened, and of every stream since it was set.
    /// Threads count on meanwhile: only what is stopped adds up.
    pub fn statistics(&self) -> Statistics {
        let streams = self.ports.iter().enumerate().flat_map(|(number, port)| {
            let there = &self.ports[port.receiver].rx;
            statistics::of_streams(number, &port.streams, &port.tx, there)
        });
        Statistics {
            ports: self.port_statistics(),
            streams: streams.collect(),
        }
    }

    /// The ports' part of [`statistics`](Self::statistics), which takes little time however many
    /// streams there are.
    pub fn port_statistics(&self) -> Vec<PortStatistics> {
        self.ports.iter().map(Port::statistics).collect()
    }

    /// What a port is doing; None if there is no such port.
    pub fn state(&self, port: usize) -> Option<State> {
        self.ports.get(port).map(Port::state)
    }

    fn get(&mut self, port: usize) -> Result<&mut Port, Error> {
        let ports = self.ports.len();
        self.ports
            .get_mut(port)
            .ok_or(Error::NoPort { port, ports })
    }

    fn owned(&mut self, port: usize, owner: &str) -> Result<&mut Port, Error> {
        let this = self.get(port)?;
        if this.owner.as_deref() == Some(owner) {
            Ok(this)
        } else {
            Err(Error::NotAcquired {
                port,
                owner: owner.to_owned(),
            })
        }
    }
}

impl Port {
    fn new(name: String, receiver: usize, line: Option<Bits>) -> Self {
        Self {
            name,
            receiver,
            line,
            owner: None,
            state: State::Idle,
            rate: Pps(0.0),
            streams: Vec::new(),
            tx: Cores(Vec::new()),
            rx: Queues::default(),
            sent_before: Count::default(),
            received_before: Count::default(),
            queue_full_before: 0,
        }
    }

    /// One that has sent everything is ready again.
    fn state(&self) -> State {
        match self.state {
            State::Sending if self.tx.is_over() => State::Ready,
            state => state,
        }
    }

    fn change(
        &mut self,
        port: usize,
        to: State,
        how: impl FnOnce(&mut Cores) -> Result<(), Failure>,
    ) -> Result<(), Error> {
        how(&mut self.tx).map_err(|source| Error::Device { port, source })?;
        self.state = to;
        Ok(())
    }

    fn resolve(&self, port: usize, rate: Rate) -> Result<Pps, Error> {
        let load = Load::of(&self.streams).ok_or(Error::NoStreams(port))?;
        let resolved = rate.resolve(&load, self.line);
        resolved.map_err(|source| Error::Rate { port, source })
    }

    fn sent(&self) -> Count {
        let now = self.tx.sent().into_iter();
        now.chain([self.sent_before]).sum()
    }

    fn received(&self) -> Count {
        let now = self.rx.counts().into_iter();
        now.chain([self.rx.other(), self.received_before]).sum()
    }

    fn queue_full(&self) -> u64 {
        self.queue_full_before + self.tx.queue_full()
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics {
            name: self.name.clone(),
            owner: self.owner.clone(),
            state: self.state(),
            sent: self.sent(),
            received: self.received(),
            queue_full: self.queue_full(),
        }
    }
}

/// Adds a port that sends, and receives if it can, to those in software.
fn add(spec: &Spec, software: &mut Vec<Software>) -> Result<(), Error> {
    match spec {
        Spec::Live(name) => return Err(Error::OnlySends(name.clone())),
        Spec::Sink(name) => return Err(Error::OnlyReceives(name.clone())),
        Spec::AfXdp(_) | Spec::Memif { .. } | Spec::Pcap(_) => {}
    }
    let port = place(spec, software);
    let port = &mut software[port];
    if port.send.is_some() {
        return Err(Error::GivenTwice(spec.clone()));
    }
    port.send = Some(Vec::new());
    port.expect = (!matches!(spec, Spec::Pcap(_))).then(Vec::new);
    Ok(())
}

/// Every port has a receiver, and no receiver two ports.
fn check_receivers(ports: &[Port]) -> Result<(), Error> {
    for (number, port) in ports.iter().enumerate() {
        let receiver = port.receiver;
        if receiver >= ports.len() {
            return Err(Error::NoPort {
                port: receiver,
                ports: ports.len(),
            });
        }
        let before = ports[..number].iter();
        if let Some(other) = before.clone().position(|p| p.receiver == receiver) {
            return Err(Error::OneReceiver(other, number));
        }
    }
    Ok(())
}
