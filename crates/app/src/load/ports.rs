//! Opens the ports of a load test: what sends, what counts, and the threads that serve those in
//! software.

use std::error::Error;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::ports::{Device, Open, Opener, Receive};
use graph::Pool;
use graph::pool::STRIDE_AF_XDP;
use io::{af_xdp, memif};
use loadgen::device::{Count, Path, Receiver, Sender, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::{Counters, Match};
use loadgen::send::Generator;
use loadgen::tester::{Endpoint, Tester};
use xdp::LiveError;

use super::interface::Interface;
use super::live;
use super::spec::{FORMS, Spec};
use super::traffic::Sending;

/// Packet buffers for what the threads hold themselves, in caches and frames, and for packets under
/// way in a memif. What the rings of AF_XDP sockets hold comes on top.
const BUFFERS: u32 = 1 << 13;
/// How long to wait for the other side of a memif.
const PATIENCE: Duration = Duration::from_secs(10);

/// The open ports of a load test. Generators stop before what they send through goes away.
pub struct TestPorts {
    /// The directions of a load test, in order.
    pub paths: Vec<Path>,
    /// How packets are made.
    pub sender: Sender,
    /// Sockets that exist because of us.
    pub sockets: Vec<String>,
    _testers: Vec<Tester>,
    _open: Vec<Open>,
    _opener: Opener,
}

/// A port in software and what it is for.
struct Software {
    spec: Spec,
    send: Vec<(Stream, Pps)>,
    expect: Vec<Stream>,
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

/// A side of a direction while ports are being opened.
enum Side<T> {
    /// In the kernel.
    Kernel(T),
    /// In software, by its place among these.
    Software(usize),
}

/// Opens what sends and what receives: a pair for each direction.
///
/// # Errors
/// A port that cannot do what it is to do, is taken, or is not there.
pub fn open(ways: &[(Sending, Spec)], cpus: &[usize]) -> Result<TestPorts, Box<dyn Error>> {
    let mut software = Vec::new();
    // What counts comes first: a veth takes live frames only if its peer runs a program.
    let receivers = ways
        .iter()
        .map(|(sending, rx)| receiver(rx, &sending.streams, &mut software))
        .collect::<Result<Vec<_>, _>>()?;
    let sendings: Vec<&Sending> = ways.iter().map(|(sending, _)| sending).collect();
    let (transmitters, mut bench, sender) = senders(&sendings, software, cpus)?;
    let receivers = receivers.into_iter().map(|side| bench.receiver(side));
    let paths = transmitters
        .into_iter()
        .zip(receivers)
        .map(|(tx, rx)| Path { tx, rx })
        .collect();
    Ok(bench.finish(paths, sender))
}

/// Opens what sends only.
///
/// # Errors
/// As [`open`].
pub fn open_sender(
    sending: &Sending,
    cpus: &[usize],
) -> Result<(Box<dyn Transmitter>, TestPorts), Box<dyn Error>> {
    let (mut transmitters, bench, sender) = senders(&[sending], Vec::new(), cpus)?;
    let transmitter = transmitters.pop().ok_or("nothing to send by")?;
    Ok((transmitter, bench.finish(Vec::new(), sender)))
}

type Senders = (Vec<Box<dyn Transmitter>>, Served, Sender);

fn senders(
    sendings: &[&Sending],
    mut software: Vec<Software>,
    cpus: &[usize],
) -> Result<Senders, Box<dyn Error>> {
    let mut generators = live_generators(sendings, cpus.first().copied())?.into_iter();
    let mut sides = Vec::new();
    let mut sender = None;
    for sending in sendings {
        let live = matches!(sending.tx, Spec::Live(_));
        if let Some(generator) = live.then(|| generators.next()).flatten() {
            sides.push(Side::Kernel(generator));
            sender = sending.tx.sender();
        } else {
            let spec = in_software(&sending.tx)?;
            sides.push(Side::Software(take(&spec, sending, &mut software)?));
            sender = spec.sender();
        }
    }
    let mut served = serve(software, cpus)?;
    let transmitters = sides.into_iter().map(|side| served.transmitter(side));
    let transmitters = transmitters.collect::<Result<_, _>>()?;
    Ok((transmitters, served, sender.ok_or("nothing to send by")?))
}

fn receiver(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
) -> Result<Side<live::Counter>, Box<dyn Error>> {
    let unknown = |stream: &Stream| {
        format!(
            "stream `{}` is not IPv4 without options: nobody could tell its packets from others when they come back; send it by `parshall send`",
            stream.name
        )
    };
    let matches = streams
        .iter()
        .map(|(stream, _)| Match::of(stream).ok_or_else(|| unknown(stream)))
        .collect::<Result<Vec<_>, _>>()?;
    match rx {
        Spec::Sink(name) => {
            let interface = Interface::open(name)?;
            Ok(Side::Kernel(live::Counter::open(
                interface.index(),
                &matches,
            )?))
        }
        Spec::Live(name) => Err(format!(
            "live:{name} only sends; to receive use sink:{name} or af_xdp:{name} ({FORMS})"
        )
        .into()),
        Spec::AfXdp(_) | Spec::Memif { .. } => {
            let place = place(rx, software);
            let expect = &mut software[place].expect;
            if !expect.is_empty() {
                return Err(
                    format!("{rx} is given for two directions; each needs its own --rx").into(),
                );
            }
            expect.extend(streams.iter().map(|(stream, _)| stream.clone()));
            Ok(Side::Software(place))
        }
    }
}

/// One generator for everything that is to be sent by live frames, in its order; none if it cannot
/// do it all.
fn live_generators(
    sendings: &[&Sending],
    cpu: Option<usize>,
) -> Result<Vec<live::Generator>, Box<dyn Error>> {
    let (mut ways, mut names) = (Vec::new(), Vec::new());
    for sending in sendings {
        if let Spec::Live(name) = &sending.tx {
            ways.push((Interface::open(name)?.index(), sending.streams.as_slice()));
            names.push(sending.tx.to_string());
        }
    }
    if ways.is_empty() {
        return Ok(Vec::new());
    }
    let names = names.join(", ");
    match live::Generator::open(&ways, cpu) {
        Ok(generators) => Ok(generators),
        Err(e @ LiveError::DoesNotFit { .. }) => {
            crate::output::tell(&format!(
                "parshall: {names}: {e}; AF_XDP is used instead, which is slower\n"
            ));
            Ok(Vec::new())
        }
        Err(e) => Err(format!("{names}: {e}").into()),
    }
}

/// The port in software that is sent by where `tx` is asked for.
fn in_software(tx: &Spec) -> Result<Spec, Box<dyn Error>> {
    match tx {
        Spec::Sink(name) => Err(format!(
            "sink:{name} only receives; to send use live:{name} or af_xdp:{name} ({FORMS})"
        )
        .into()),
        Spec::Live(name) => Ok(Spec::AfXdp(name.clone())),
        other => Ok(other.clone()),
    }
}

/// Gives a port in software something to send; returns its place.
fn take(
    spec: &Spec,
    sending: &Sending,
    software: &mut Vec<Software>,
) -> Result<usize, Box<dyn Error>> {
    let place = place(spec, software);
    if !software[place].send.is_empty() {
        return Err(format!("{spec} is given for two directions; each needs its own --tx").into());
    }
    software[place].send = sending.streams.clone();
    Ok(place)
}

/// Where a port is among those in software; the same one for the same specification.
fn place(spec: &Spec, software: &mut Vec<Software>) -> usize {
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
struct Served {
    /// By place; the transmitter until it is handed out.
    controls: Vec<(Option<Generator>, Vec<Counters>)>,
    testers: Vec<Tester>,
    open: Vec<Open>,
    opener: Opener,
    sockets: Vec<String>,
}

impl Served {
    fn transmitter(
        &mut self,
        side: Side<live::Generator>,
    ) -> Result<Box<dyn Transmitter>, Box<dyn Error>> {
        match side {
            Side::Kernel(generator) => Ok(Box::new(generator)),
            Side::Software(place) => {
                let generator = self.controls.get_mut(place).and_then(|(tx, _)| tx.take());
                Ok(Box::new(generator.ok_or("a port without a sender")?))
            }
        }
    }

    fn receiver(&mut self, side: Side<live::Counter>) -> Box<dyn Receiver> {
        match side {
            Side::Kernel(counter) => Box::new(counter),
            Side::Software(place) => Box::new(Queues(mem::take(&mut self.controls[place].1))),
        }
    }

    fn finish(self, paths: Vec<Path>, sender: Sender) -> TestPorts {
        TestPorts {
            paths,
            sender,
            sockets: self.sockets,
            _testers: self.testers,
            _open: self.open,
            _opener: self.opener,
        }
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

    fn other(&self) -> Count {
        self.0.iter().map(Receiver::other).sum()
    }
}

/// Opens the ports in software and starts the threads that serve them: one, or with two processors
/// one that sends (and receives by the ports it sends by) and one that only receives.
fn serve(software: Vec<Software>, cpus: &[usize]) -> Result<Served, Box<dyn Error>> {
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
