//! The ports of a load test in software, and the threads that serve them.

use std::fs;
use std::io;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::io::{af_xdp, memif};
use ::ports::{Device, Open, Opener, Receive};
use graph::pool::STRIDE_AF_XDP;
use graph::{Pool, Port};
use loadgen::device::{Count, Receiver, Transmitter};
use loadgen::histogram;
use loadgen::model::divide::divide;
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Counters;
use loadgen::receive::flow::Flow;
use loadgen::send::{Cores, Generator};
use loadgen::tester::{Ended, Endpoint, Tester};

use crate::interface::Interface;
use crate::{Caller, Error, Spec};

/// Packet buffers for what the threads hold themselves, in caches and frames, and for packets under
/// way in a memif. What the rings of AF_XDP sockets hold comes on top.
const BUFFERS: u32 = 1 << 13;
/// Time to wait for the other side of a memif.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port in software and what it is for.
pub struct Software {
    spec: Spec,
    /// Streams to send, if it is to send.
    pub send: Option<Vec<(Stream, Pps)>>,
    /// Streams that are to come back by it, if it is to receive.
    pub expect: Option<Vec<Stream>>,
}

impl Software {
    /// Queues that it serves in any case: one for each core if it sends.
    fn senders(&self, cores: u32) -> u32 {
        if self.send.is_none() { 1 } else { cores }
    }

    /// AF_XDP queues that it needs. To send one for each core suffices; what comes may come on any.
    fn queues(&self, cores: u32) -> u32 {
        let sends = self.senders(cores);
        match self.spec.interface() {
            Some(name) if self.expect.is_some() => af_xdp::queues(name).unwrap_or(1).max(sends),
            Some(_) => sends,
            None => 0,
        }
    }
}

/// The threads that serve ports in software.
#[derive(Debug, Clone, Copy)]
pub struct Threads<'a> {
    /// Threads that send, 1 or more: what a port sends is divided among them.
    pub cores: u32,
    /// Processors that they are bound to, in order; one more is for a thread that only receives.
    pub cpus: &'a [usize],
}

/// Index of a port among those in software; the same one for the same specification.
pub fn place(spec: &Spec, software: &mut Vec<Software>) -> usize {
    if let Some(known) = software.iter().position(|s| s.spec == *spec) {
        return known;
    }
    software.push(Software {
        spec: spec.clone(),
        send: None,
        expect: None,
    });
    software.len() - 1
}

/// The ports in software with their threads running.
#[derive(Default)]
pub struct Served {
    ports: Vec<Serving>,
    testers: Vec<Tester>,
    /// With the number of queues that send.
    open: Vec<(Open, u32)>,
    opener: Opener,
}

/// A port that threads serve.
#[derive(Default)]
struct Serving {
    /// Generators, by core, until they are handed out.
    generators: Vec<Generator>,
    /// Counters, by queue, until they are handed out.
    counters: Vec<Counters>,
    /// Its queues; those that send come first.
    queues: Vec<Queue>,
}

/// Owner of a queue's work.
struct Queue {
    /// Place of the thread among the testers.
    tester: usize,
    /// Place of the queue with that thread.
    place: usize,
    sends: bool,
}

impl Served {
    /// Transmitter of the port at a place; handed out once.
    ///
    /// # Errors
    /// The port does not send.
    pub fn transmitter(&mut self, place: usize) -> Result<Box<dyn Transmitter>, Error> {
        let cores = mem::take(&mut self.ports[place].generators);
        if cores.is_empty() {
            Err(Error::NoSender)
        } else {
            Ok(Box::new(Cores(cores)))
        }
    }

    /// Receiver of the port at a place; handed out once.
    pub fn receiver(&mut self, place: usize) -> Box<dyn Receiver> {
        Box::new(Queues(mem::take(&mut self.ports[place].counters)))
    }

    /// Generators and counters of the port at a place; handed out once.
    pub fn take(&mut self, place: usize) -> (Cores, Queues) {
        let port = &mut self.ports[place];
        let (generators, counters) = (&mut port.generators, &mut port.counters);
        (Cores(mem::take(generators)), Queues(mem::take(counters)))
    }

    /// Replaces what the port at a place sends; others go on.
    ///
    /// # Errors
    /// A thread has ended.
    pub fn send(&mut self, place: usize, streams: &[(Stream, Pps)]) -> Result<Cores, Ended> {
        let senders: Vec<&Queue> = self.ports[place]
            .queues
            .iter()
            .filter(|q| q.sends)
            .collect();
        let shares = divide(streams, u32::try_from(senders.len()).unwrap_or(u32::MAX));
        let queues = senders.into_iter().zip(shares);
        let generators = queues.map(|(q, share)| self.testers[q.tester].send(q.place, &share));
        generators.collect::<Result<_, _>>().map(Cores)
    }

    /// Replaces what is to come back by the port at a place; others go on.
    ///
    /// # Errors
    /// A thread has ended.
    pub fn expect(&mut self, place: usize, streams: &[Stream]) -> Result<Queues, Ended> {
        let queues = self.ports[place].queues.iter();
        let counters = queues.map(|q| self.testers[q.tester].expect(q.place, streams));
        counters.collect::<Result<_, _>>().map(Queues)
    }

    /// Starts a thread, if it has queues to serve, on a processor if one is given.
    fn start(&mut self, lines: Vec<Line>, pool: &Arc<Pool>, cpu: Option<usize>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let owners: Vec<_> = lines.iter().map(|line| (line.port, line.sends)).collect();
        let endpoints = lines.into_iter().map(|line| line.endpoint).collect();
        let begin = move || {
            // Where pinning is not allowed, measure all the same.
            let _ = cpu.map(kernel::cpu::pin);
        };
        let (tester, controls) = Tester::spawn(endpoints, pool.clone(), begin)?;
        for (place, ((port, sends), (generator, counters))) in
            owners.into_iter().zip(controls).enumerate()
        {
            let port = &mut self.ports[port];
            port.generators.extend(sends.then_some(generator));
            port.counters.push(counters);
            port.queues.push(Queue {
                tester: self.testers.len(),
                place,
                sends,
            });
        }
        self.testers.push(tester);
        Ok(())
    }
}

/// The receiving queues of one port, counted together.
#[derive(Default)]
pub struct Queues(Vec<Counters>);

impl Receiver for Queues {
    fn counts(&self) -> Vec<Count> {
        let queues: Vec<Vec<Count>> = self.0.iter().map(Receiver::counts).collect();
        let streams = queues.first().map_or(0, Vec::len);
        (0..streams)
            .map(|stream| queues.iter().filter_map(|q| q.get(stream).copied()).sum())
            .collect()
    }

    /// A flow whose packets came by several queues has lost its order: nothing is said about it.
    fn flows(&self) -> Vec<Option<Flow>> {
        let queues: Vec<Vec<Option<Flow>>> = self.0.iter().map(Receiver::flows).collect();
        let streams = queues.first().map_or(0, Vec::len);
        let of = |stream: usize| {
            let mut flows = queues
                .iter()
                .filter_map(|q| q.get(stream)?.clone())
                .filter(|flow| flow.latency.measured > 0);
            flows.next().filter(|_| flows.next().is_none())
        };
        (0..streams).map(of).collect()
    }

    fn times(&self) -> Option<histogram::Counts> {
        let queues = self.0.iter().filter_map(Receiver::times);
        queues.reduce(histogram::Counts::and)
    }

    fn start_over(&mut self) {
        self.0.iter_mut().for_each(Receiver::start_over);
    }

    fn other(&self) -> Count {
        self.0.iter().map(Receiver::other).sum()
    }
}

/// A queue, the place of its port, and whether it sends.
struct Line {
    port: usize,
    sends: bool,
    endpoint: Endpoint,
}

/// Opens the ports in software and starts the threads that serve them: those that send (and receive
/// by the ports they send by), and with one more processor one that only receives.
///
/// # Errors
/// A port cannot be opened or divided, no one connects to a memif, or a signal comes before.
pub fn serve(
    software: Vec<Software>,
    with: Threads<'_>,
    caller: &dyn Caller,
) -> Result<Served, Error> {
    let mut served = Served::default();
    if software.is_empty() {
        return Ok(served);
    }
    let Threads { cores, cpus } = with;
    let queues: u32 = software.iter().map(|port| port.queues(cores)).sum();
    let buffers = BUFFERS * cores + queues * af_xdp::Queue::HOLDS;
    let pool = Pool::new(buffers, STRIDE_AF_XDP).map_err(|source| Error::Memory {
        mebibytes: (u64::from(buffers) * STRIDE_AF_XDP as u64) >> 20,
        source,
    })?;
    let senders = cores as usize;
    let mut threads: Vec<Vec<Line>> = (0..=senders).map(|_| Vec::new()).collect();
    for (place, port) in software.into_iter().enumerate() {
        let sends = port.send.is_some();
        // Counting on a processor of its own takes no time from sending.
        let apart = cpus.len() > senders && !sends;
        let endpoints = endpoints(port, cores, &pool, &mut served, caller)?;
        for (queue, endpoint) in endpoints.into_iter().enumerate() {
            let thread = if apart { senders } else { queue % senders };
            threads[thread].push(Line {
                port: place,
                sends: sends && queue < senders,
                endpoint,
            });
        }
        served.ports.push(Serving::default());
    }
    for (thread, lines) in threads.into_iter().enumerate() {
        served.start(lines, &pool, cpus.get(thread).copied())?;
    }
    connected(&served.open, caller)?;
    Ok(served)
}

/// Serves ports that are open already, each with one queue that sends and receives, by one thread.
///
/// # Errors
/// The thread cannot be started.
pub fn serve_open(ports: Vec<Box<dyn Port>>, pool: &Arc<Pool>) -> io::Result<Served> {
    let mut served = Served::default();
    served.ports.resize_with(ports.len(), Serving::default);
    let lines = ports.into_iter().enumerate().map(|(place, port)| Line {
        port: place,
        sends: true,
        endpoint: Endpoint {
            port,
            send: Vec::new(),
            expect: Vec::new(),
        },
    });
    served.start(lines.collect(), pool, None)?;
    Ok(served)
}

/// A port's queues; one for each core sends, all receive.
fn endpoints(
    port: Software,
    cores: u32,
    pool: &Arc<Pool>,
    served: &mut Served,
    caller: &dyn Caller,
) -> Result<Vec<Endpoint>, Error> {
    let receive = match port.expect {
        None => Receive::Nothing,
        Some(_) => Receive::Everything,
    };
    let (senders, queues) = (port.senders(cores), port.queues(cores));
    let Software { spec, send, expect } = port;
    let opened = match &spec {
        Spec::Memif {
            socket,
            id,
            role,
            secret_file,
        } => {
            let config = memif::Config {
                id: *id,
                queues: u16::try_from(cores).unwrap_or(u16::MAX),
                secret: secret_file.as_deref().map(secret).transpose()?,
                ..memif::Config::new("parshall", socket, *role)
            };
            let opened = served.opener.memif(config);
            if opened.is_ok() && *role == memif::Role::Server {
                caller.made(socket);
            }
            opened
        }
        Spec::Pcap(_) if senders > 1 => {
            return Err(Error::FileOfManyCores(spec));
        }
        Spec::Pcap(file) => {
            let file = Path::new(file);
            let (reads, writes) = (expect.is_some(), send.is_some());
            if reads && writes {
                return Err(Error::FileBothWays(spec));
            }
            ::ports::pcap("pcap", reads.then_some(file), writes.then_some(file))
        }
        Spec::AfXdp(name) | Spec::Live(name) | Spec::Sink(name) => {
            if let Some(few) = af_xdp::queues(name).filter(|few| *few < senders) {
                return Err(Error::FewQueues {
                    interface: name.clone(),
                    port: spec,
                    cores: senders,
                    queues: few,
                });
            }
            if expect.is_some() {
                // It is there, and up.
                Interface::open(name)?;
            }
            let device = Device {
                name,
                queues: Some(queues),
                mode: af_xdp::Mode::Auto,
                receive,
            };
            served.opener.device(&device, pool)
        }
    };
    let mut open = opened.map_err(|source| Error::Open {
        port: spec,
        source: source.into(),
    })?;
    let queues = mem::take(&mut open.queues);
    served.open.push((open, senders));
    let mut shares = divide(&send.unwrap_or_default(), senders).into_iter();
    let expect = expect.unwrap_or_default();
    Ok(queues
        .into_iter()
        .map(|port| Endpoint {
            port,
            send: shares.next().unwrap_or_default(),
            expect: expect.clone(),
        })
        .collect())
}

/// Waits until all memifs have their other side, with a queue for each core that sends.
fn connected(open: &[(Open, u32)], caller: &dyn Caller) -> Result<(), Error> {
    let until = Instant::now() + PATIENCE;
    let memifs = || {
        open.iter()
            .filter_map(|(port, n)| Some((port.memif()?, *n)))
    };
    while let Some((status, _)) = memifs().find(|(status, _)| !status.up) {
        if Instant::now() >= until {
            let nobody = status.reason.is_empty().then(|| "nobody there".to_owned());
            return Err(Error::NoConnection {
                within: PATIENCE,
                reason: nobody.unwrap_or(status.reason),
            });
        }
        if caller.is_interrupted() {
            return Err(Error::Interrupted);
        }
        // The control thread of memifs connects meanwhile.
        std::thread::sleep(Duration::from_millis(10));
    }
    let few = memifs().find(|(status, queues)| u32::from(status.rings.1) < *queues);
    few.map_or(Ok(()), |(status, cores)| {
        Err(Error::FewRings {
            peer: status.peer,
            cores,
            queues: status.rings.1,
        })
    })
}

/// The first line of a file.
fn secret(file: &str) -> Result<String, Error> {
    let text = fs::read_to_string(file).map_err(|source| Error::Secret {
        file: file.to_owned(),
        source,
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
