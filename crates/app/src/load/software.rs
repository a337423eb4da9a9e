//! The ports of a load test in software, and the threads that serve them.

use std::error::Error;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::ports::{Device, Open, Opener, Receive};
use graph::Pool;
use graph::pool::STRIDE_AF_XDP;
use io::{af_xdp, memif};
use loadgen::device::{Count, Receiver, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Counters;
use loadgen::receive::flow::Flow;
use loadgen::send::Generator;
use loadgen::tester::{Endpoint, Tester};

use super::interface::Interface;
use super::spec::Spec;

/// Packet buffers for what the threads hold themselves, in caches and frames, and for packets under
/// way in a memif. What the rings of AF_XDP sockets hold comes on top.
const BUFFERS: u32 = 1 << 13;
/// How long to wait for the other side of a memif.
const PATIENCE: Duration = Duration::from_secs(10);

/// A port in software and what it is for.
pub struct Software {
    spec: Spec,
    /// What it sends, nothing at first.
    pub send: Vec<(Stream, Pps)>,
    /// What is to come back by it, nothing at first.
    pub expect: Vec<Stream>,
}

impl Software {
    /// AF_XDP queues that it needs. To send one suffices; what comes may come on any.
    fn queues(&self) -> u32 {
        match self.spec.interface() {
            Some(name) if !self.expect.is_empty() => af_xdp::queues(name).unwrap_or(1).max(1),
            Some(_) => 1,
            None => 0,
        }
    }
}

/// Where a port is among those in software; the same one for the same specification.
pub fn place(spec: &Spec, software: &mut Vec<Software>) -> usize {
    if let Some(known) = software.iter().position(|s| s.spec == *spec) {
        return known;
    }
    software.push(Software {
        spec: spec.clone(),
        send: Vec::new(),
        expect: Vec::new(),
    });
    software.len() - 1
}

/// The ports in software with their threads running.
pub struct Served {
    /// By place; the transmitter until it is handed out.
    controls: Vec<(Option<Generator>, Vec<Counters>)>,
    testers: Vec<Tester>,
    open: Vec<Open>,
    opener: Opener,
    /// Sockets that exist because of us.
    pub sockets: Vec<String>,
}

impl Served {
    /// What sends by the port at a place; handed out once.
    ///
    /// # Errors
    /// The port does not send.
    pub fn transmitter(&mut self, place: usize) -> Result<Box<dyn Transmitter>, Box<dyn Error>> {
        let generator = self.controls.get_mut(place).and_then(|(tx, _)| tx.take());
        Ok(Box::new(generator.ok_or("a port without a sender")?))
    }

    /// What counts the packets of the port at a place; handed out once.
    pub fn receiver(&mut self, place: usize) -> Box<dyn Receiver> {
        Box::new(Queues(mem::take(&mut self.controls[place].1)))
    }
}

/// The receiving queues of one port, counted together.
struct Queues(Vec<Counters>);

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
            let flows = queues.iter().filter_map(|q| q.get(stream)?.clone());
            let mut flows = flows.filter(|flow| flow.latency.measured > 0);
            flows.next().filter(|_| flows.next().is_none())
        };
        (0..streams).map(of).collect()
    }

    fn other(&self) -> Count {
        self.0.iter().map(Receiver::other).sum()
    }
}

/// Opens the ports in software and starts the threads that serve them: one, or with two processors
/// one that sends (and receives by the ports it sends by) and one that only receives.
///
/// # Errors
/// A port cannot be opened, or no one connects to a memif.
pub fn serve(software: Vec<Software>, cpus: &[usize]) -> Result<Served, Box<dyn Error>> {
    let mut served = Served {
        controls: Vec::new(),
        testers: Vec::new(),
        open: Vec::new(),
        opener: Opener::default(),
        sockets: Vec::new(),
    };
    if software.is_empty() {
        return Ok(served);
    }
    let buffers =
        BUFFERS + software.iter().map(Software::queues).sum::<u32>() * af_xdp::Queue::HOLDS;
    let pool = Pool::new(buffers, STRIDE_AF_XDP).map_err(|e| {
        let mebibytes = (u64::from(buffers) * STRIDE_AF_XDP as u64) >> 20;
        format!("no packet memory ({mebibytes} MiB): {e}")
    })?;
    // By thread: the endpoints, and the place that each belongs to.
    let mut threads: [Vec<(usize, Endpoint)>; 2] = Default::default();
    for (place, port) in software.into_iter().enumerate() {
        let thread = usize::from(cpus.len() > 1 && port.send.is_empty());
        let endpoints = endpoints(port, &pool, &mut served)?;
        threads[thread].extend(endpoints.into_iter().map(|e| (place, e)));
        served.controls.push((None, Vec::new()));
    }
    for (endpoints, cpu) in threads.into_iter().zip([cpus.first(), cpus.get(1)]) {
        if endpoints.is_empty() {
            continue;
        }
        let (places, endpoints): (Vec<_>, Vec<_>) = endpoints.into_iter().unzip();
        let cpu = cpu.copied();
        let begin = move || {
            // Where pinning is not allowed, measure all the same.
            let _ = cpu.map(kernel::cpu::pin);
        };
        let (tester, controls) = Tester::spawn(endpoints, pool.clone(), begin)?;
        served.testers.push(tester);
        for (place, (generator, counters)) in places.into_iter().zip(controls) {
            let control = &mut served.controls[place];
            // Only the first queue sends.
            control.0.get_or_insert(generator);
            control.1.push(counters);
        }
    }
    connected(&served.open)?;
    Ok(served)
}

/// A port's queues; the first sends, all receive.
fn endpoints(
    port: Software,
    pool: &Arc<Pool>,
    served: &mut Served,
) -> Result<Vec<Endpoint>, Box<dyn Error>> {
    let receive = match port.expect.is_empty() {
        true => Receive::Nothing,
        false => Receive::Everything,
    };
    let queues = port.queues();
    let Software { spec, send, expect } = port;
    let opened = match &spec {
        Spec::Memif { socket, id, role } => {
            let config = memif::Config {
                id: *id,
                ..memif::Config::new("parshall", socket, *role)
            };
            let opened = served.opener.memif(config);
            if opened.is_ok() && *role == memif::Role::Server {
                served.sockets.push(socket.clone());
            }
            opened
        }
        Spec::Pcap(file) => {
            let file = Path::new(file);
            let (reads, writes) = (!expect.is_empty(), !send.is_empty());
            if reads && writes {
                return Err(format!("{spec} is to be read and written; give two files").into());
            }
            ::ports::pcap("pcap", reads.then_some(file), writes.then_some(file))
        }
        Spec::AfXdp(name) | Spec::Live(name) | Spec::Sink(name) => {
            if !expect.is_empty() {
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
    let mut open = opened.map_err(|e| format!("{spec}: {e}"))?;
    let queues = mem::take(&mut open.queues);
    served.open.push(open);
    let mut send = Some(send);
    Ok(queues
        .into_iter()
        .map(|port| Endpoint {
            port,
            send: send.take().unwrap_or_default(),
            expect: expect.clone(),
        })
        .collect())
}

/// Waits until all memifs have their other side.
fn connected(open: &[Open]) -> Result<(), Box<dyn Error>> {
    let until = Instant::now() + PATIENCE;
    let pending = || open.iter().filter_map(Open::memif).find(|s| !s.up);
    while let Some(status) = pending() {
        if Instant::now() >= until {
            return Err(format!(
                "memif: no connection within {} s ({}); is the device running, and are path, id and roles right?",
                PATIENCE.as_secs(),
                if status.reason.is_empty() { "nobody there" } else { &status.reason }
            )
            .into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
