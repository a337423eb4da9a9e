//! Opens the ports of a load test: what sends, and what counts.

use std::error::Error;
use std::{fmt, mem};

use loadgen::device::{Path, Sender, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Match;
use serde::Serialize;
use xdp::LiveError;

use super::interface::Interface;
use super::live;
use super::software::{Served, Software, Threads, place, serve};
use super::spec::{FORMS, Spec};
use super::traffic::Sending;

/// The open ports of a load test. Generators stop before what they send through goes away.
pub struct TestPorts {
    /// The directions of a load test, in order.
    pub paths: Vec<Path>,
    /// How packets are made.
    pub sender: Sender,
    /// Why live frames were asked for and are not sent, if so.
    pub fallback: Option<Fallback>,
    /// Sockets that exist because of us.
    pub sockets: Vec<String>,
    _served: Served,
}

/// What sends instead of the ports that were asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Fallback {
    /// The ports that were asked for.
    pub asked: Vec<String>,
    /// The ports that send.
    pub used: Vec<String>,
    /// What the first ones cannot do.
    pub why: String,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, used) = (self.asked.join(", "), self.used.join(", "));
        write!(
            f,
            "{used} sends instead of {asked}, which is slower: {}",
            self.why
        )
    }
}

impl TestPorts {
    fn new(
        paths: Vec<Path>,
        (sender, fallback): (Sender, Option<Fallback>),
        mut served: Served,
    ) -> Self {
        Self {
            paths,
            sender,
            fallback,
            sockets: mem::take(&mut served.sockets),
            _served: served,
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
pub fn open(ways: &[(Sending, Spec)], threads: Threads<'_>) -> Result<TestPorts, Box<dyn Error>> {
    let mut software = Vec::new();
    // What counts comes first: a veth takes live frames only if its peer runs a program.
    let receivers = ways
        .iter()
        .map(|(sending, rx)| receiver(rx, &sending.streams, &mut software))
        .collect::<Result<Vec<_>, _>>()?;
    let sendings: Vec<&Sending> = ways.iter().map(|(sending, _)| sending).collect();
    let (transmitters, mut served, sender) = senders(&sendings, software, threads)?;
    let receivers = receivers.into_iter().map(|side| match side {
        Side::Kernel(counter) => Box::new(counter),
        Side::Software(place) => served.receiver(place),
    });
    let paths = transmitters
        .into_iter()
        .zip(receivers)
        .map(|(tx, rx)| Path { tx, rx })
        .collect();
    Ok(TestPorts::new(paths, sender, served))
}

/// Opens what sends only.
///
/// # Errors
/// As [`open`].
pub fn open_sender(
    sending: &Sending,
    threads: Threads<'_>,
) -> Result<(Box<dyn Transmitter>, TestPorts), Box<dyn Error>> {
    let (mut transmitters, served, sender) = senders(&[sending], Vec::new(), threads)?;
    let transmitter = transmitters.pop().ok_or("nothing to send by")?;
    Ok((transmitter, TestPorts::new(Vec::new(), sender, served)))
}

type Senders = (
    Vec<Box<dyn Transmitter>>,
    Served,
    (Sender, Option<Fallback>),
);

fn senders(
    sendings: &[&Sending],
    mut software: Vec<Software>,
    threads: Threads<'_>,
) -> Result<Senders, Box<dyn Error>> {
    let (generators, fallback) = live_generators(sendings, threads)?;
    let mut generators = generators.into_iter();
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
    let mut served = serve(software, threads)?;
    let transmitters = sides.into_iter().map(|side| match side {
        Side::Kernel(generator) => Ok(Box::new(generator) as Box<dyn Transmitter>),
        Side::Software(place) => served.transmitter(place),
    });
    let transmitters = transmitters.collect::<Result<_, _>>()?;
    let sender = sender.ok_or("nothing to send by")?;
    Ok((transmitters, served, (sender, fallback)))
}

fn receiver(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
) -> Result<Side<live::Counter>, Box<dyn Error>> {
    let unknown = |stream: &Stream| {
        format!(
            "stream `{}` is neither IPv4 without options nor IPv6, or its lengths vary: nobody could tell its packets from others when they come back; send it by `parshall send`",
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
        Spec::AfXdp(_) | Spec::Memif { .. } | Spec::Pcap(_) => {
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

/// One generator for everything that is to be sent by live frames, in its order; none, and why, if
/// it cannot do it all.
fn live_generators(
    sendings: &[&Sending],
    threads: Threads<'_>,
) -> Result<(Vec<live::Generator>, Option<Fallback>), Box<dyn Error>> {
    let (mut ways, mut names) = (Vec::new(), Vec::new());
    for sending in sendings {
        if let Spec::Live(name) = &sending.tx {
            ways.push((Interface::open(name)?.index(), sending.streams.as_slice()));
            names.push(name.as_str());
        }
    }
    if ways.is_empty() {
        return Ok((Vec::new(), None));
    }
    let all = |kind: &str| -> Vec<String> {
        let names = names.iter();
        names.map(|name| format!("{kind}:{name}")).collect()
    };
    let generators = match threads.cores {
        1 => live::Generator::open(&ways, threads.cpus.first().copied()),
        cores => Err(LiveError::DoesNotFit {
            why: format!("{cores} cores; one sends live frames"),
        }),
    };
    match generators {
        Ok(generators) => Ok((generators, None)),
        Err(LiveError::DoesNotFit { why }) => {
            let fallback = Fallback {
                asked: all("live"),
                used: all("af_xdp"),
                why: format!("live frames cannot do this: {why}"),
            };
            crate::output::tell(&format!("parshall: {fallback}\n"));
            Ok((Vec::new(), Some(fallback)))
        }
        Err(e) => Err(format!("{}: {e}", all("live").join(", ")).into()),
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
