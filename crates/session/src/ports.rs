//! Opens the ports of a load test: what sends, and what counts.

use loadgen::device::{Path, Sender, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Match;
use xdp::LiveError;

use crate::caller::{Caller, Fallback, Notice};
use crate::interface::Interface;
use crate::live;
use crate::software::{Served, Software, Threads, place, serve};
use crate::{Error, Spec};

/// Port that is to send, with its streams.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// The port.
    pub tx: &'a Spec,
    /// Streams with their Ethernet addresses, each with its rate at multiplier 1.
    pub streams: &'a [(Stream, Pps)],
}

/// One direction of a test: what is sent, and the port that it is to come back by.
pub type Way<'a> = (Sending<'a>, &'a Spec);

/// The open ports of a load test. Generators stop before what they send through goes away.
pub struct TestPorts {
    /// The directions of a load test, in order.
    pub paths: Vec<Path>,
    /// Way in which packets are made.
    pub sender: Sender,
    /// Ports that other ones stand in for, and the reason, if so.
    pub fallback: Option<Fallback>,
    _served: Served,
}

impl TestPorts {
    fn new(paths: Vec<Path>, sender: Sender, fallback: Option<Fallback>, served: Served) -> Self {
        Self {
            paths,
            sender,
            fallback,
            _served: served,
        }
    }

    /// True if another port stands in for this one.
    pub fn is_replaced(&self, port: &Spec) -> bool {
        let asked = self.fallback.iter().flat_map(|fallback| &fallback.asked);
        asked.into_iter().any(|asked| *asked == port.to_string())
    }
}

/// A side of a direction while ports are being opened.
enum Side<T> {
    /// In the kernel.
    Kernel(T),
    /// In software, by its place among these.
    Software(usize),
}

/// Opens what sends and what receives: a pair for each direction. `rates` are those of each, as far
/// as known.
///
/// # Errors
/// A port that cannot do what it is to do, is taken, or is not there.
pub fn open(
    ways: &[Way<'_>],
    rates: &[Pps],
    threads: Threads<'_>,
    caller: &dyn Caller,
) -> Result<TestPorts, Error> {
    let (mut software, mut fallback) = (Vec::new(), None);
    // What counts comes first: a veth takes live frames only if its peer runs a program.
    let receivers = ways
        .iter()
        .map(|(sending, rx)| {
            receiver(
                rx,
                sending.streams,
                &mut software,
                &mut (&mut fallback, caller),
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let sendings: Vec<Sending<'_>> = ways.iter().map(|(sending, _)| *sending).collect();
    let (transmitters, mut served, sender) = senders(
        &sendings,
        rates,
        software,
        threads,
        &mut (&mut fallback, caller),
    )?;
    let receivers = receivers.into_iter().map(|side| match side {
        Side::Kernel(counter) => Box::new(counter),
        Side::Software(place) => served.receiver(place),
    });
    let paths = transmitters
        .into_iter()
        .zip(receivers)
        .map(|(tx, rx)| Path { tx, rx })
        .collect();
    Ok(TestPorts::new(paths, sender, fallback, served))
}

/// Opens what sends only, at `rate`.
///
/// # Errors
/// As [`open`].
pub fn open_sender(
    sending: Sending<'_>,
    rate: Pps,
    threads: Threads<'_>,
    caller: &dyn Caller,
) -> Result<(Box<dyn Transmitter>, TestPorts), Error> {
    let mut fallback = None;
    let told = &mut (&mut fallback, caller);
    let (mut transmitters, served, sender) =
        senders(&[sending], &[rate], Vec::new(), threads, told)?;
    let transmitter = transmitters.pop().ok_or(Error::NoSender)?;
    let ports = TestPorts::new(Vec::new(), sender, fallback, served);
    Ok((transmitter, ports))
}

/// Fallbacks so far, and the caller that is told.
type Told<'a> = (&'a mut Option<Fallback>, &'a dyn Caller);

type Senders = (Vec<Box<dyn Transmitter>>, Served, Sender);

fn senders(
    sendings: &[Sending<'_>],
    rates: &[Pps],
    mut software: Vec<Software>,
    threads: Threads<'_>,
    told: &mut Told<'_>,
) -> Result<Senders, Error> {
    let mut generators = live_generators(sendings, rates, threads, told)?.into_iter();
    let mut sides = Vec::new();
    let mut sender = None;
    for sending in sendings {
        let live = matches!(sending.tx, Spec::Live(_));
        if let Some(generator) = live.then(|| generators.next()).flatten() {
            sides.push(Side::Kernel(generator));
            sender = sending.tx.sender();
        } else {
            let spec = in_software(sending.tx)?;
            sides.push(Side::Software(take(&spec, sending, &mut software)?));
            sender = spec.sender();
        }
    }
    let mut served = serve(software, threads, told.1)?;
    let transmitters = sides.into_iter().map(|side| match side {
        Side::Kernel(generator) => Ok(Box::new(generator) as Box<dyn Transmitter>),
        Side::Software(place) => served.transmitter(place),
    });
    let transmitters = transmitters.collect::<Result<_, _>>()?;
    let sender = sender.ok_or(Error::NoSender)?;
    Ok((transmitters, served, sender))
}

fn receiver(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
    told: &mut Told<'_>,
) -> Result<Side<live::Counter>, Error> {
    match rx {
        Spec::Sink(name) => {
            let matches = streams
                .iter()
                .map(|(stream, _)| Ok((known(rx, stream)?, stream.is_fixed())))
                .collect::<Result<Vec<_>, Error>>()?;
            let interface = Interface::open(name)?;
            match live::Counter::open(interface.index, &matches) {
                Ok(counter) => Ok(Side::Kernel(counter)),
                Err(e @ xdp::Error::Verifier { .. }) => {
                    Fallback::to_af_xdp(vec![rx], &e).add_to(told.0, told.1);
                    expect(&Spec::AfXdp(name.clone()), streams, software)
                }
                Err(e) => Err(e.into()),
            }
        }
        Spec::Live(name) => Err(Error::OnlySends(name.clone())),
        Spec::AfXdp(_) | Spec::Memif { .. } | Spec::Pcap(_) => {
            let mut unmarked = streams.iter().filter(|(stream, _)| stream.mark.is_none());
            unmarked.try_for_each(|(stream, _)| known(rx, stream).map(drop))?;
            expect(rx, streams, software)
        }
    }
}

/// Match that tells the packets of a stream by their headers; `rx` is for the message.
fn known(rx: &Spec, stream: &Stream) -> Result<Match, Error> {
    Match::of(stream).ok_or_else(|| Error::Unrecognizable {
        stream: stream.name.clone(),
        port: rx.clone(),
        marked: stream.mark.is_some(),
    })
}

/// Lets a port in software expect these streams.
fn expect<T>(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
) -> Result<Side<T>, Error> {
    let place = place(rx, software);
    let expect = &mut software[place].expect;
    if expect.is_some() {
        return Err(Error::Twice {
            port: rx.clone(),
            option: "--rx",
        });
    }
    *expect = Some(streams.iter().map(|(stream, _)| stream.clone()).collect());
    Ok(Side::Software(place))
}

/// One generator for everything that is to be sent by live frames, in its order; none if it cannot
/// do it all.
fn live_generators(
    sendings: &[Sending<'_>],
    rates: &[Pps],
    threads: Threads<'_>,
    told: &mut Told<'_>,
) -> Result<Vec<live::Generator>, Error> {
    let (mut ways, mut asked) = (Vec::new(), Vec::new());
    for sending in sendings {
        if let Spec::Live(name) = sending.tx {
            ways.push((Interface::open(name)?.index, sending.streams));
            asked.push(sending.tx);
        }
    }
    if ways.is_empty() {
        return Ok(Vec::new());
    }
    let generators = match threads.cores {
        1 => live::Generator::open(&ways, rates, threads.cpus.first().copied()),
        cores => Err(LiveError::DoesNotFit {
            why: format!("{cores} cores; one sends live frames"),
        }),
    };
    if let Ok(generators) = &generators
        && !generators.iter().all(live::Generator::is_registered)
    {
        told.1.notice(&Notice::Unregistered);
    }
    generators.or_else(|source| {
        let instead = Fallback::to_af_xdp(asked, &source);
        if !is_replaceable(&source) {
            let ports = instead.asked.join(", ");
            return Err(Error::Live { ports, source });
        }
        instead.add_to(told.0, told.1);
        Ok(Vec::new())
    })
}

/// True if AF_XDP may do what live frames do not: the plan is beyond them, or this kernel refuses
/// their program.
fn is_replaceable(error: &LiveError) -> bool {
    matches!(
        error,
        LiveError::DoesNotFit { .. } | LiveError::Xdp(xdp::Error::Verifier { .. })
    )
}

/// The port in software that is sent by where `tx` is asked for.
fn in_software(tx: &Spec) -> Result<Spec, Error> {
    match tx {
        Spec::Sink(name) => Err(Error::OnlyReceives(name.clone())),
        Spec::Live(name) => Ok(Spec::AfXdp(name.clone())),
        other => Ok(other.clone()),
    }
}

/// Gives a port in software something to send; returns its place.
fn take(spec: &Spec, sending: &Sending<'_>, software: &mut Vec<Software>) -> Result<usize, Error> {
    let place = place(spec, software);
    if software[place].send.is_some() {
        return Err(Error::Twice {
            port: spec.clone(),
            option: "--tx",
        });
    }
    software[place].send = Some(sending.streams.to_vec());
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicBool;

    use loadgen::model::profile::{self, Tunables, Way};

    use super::*;

    fn refused() -> xdp::Error {
        xdp::Error::Verifier {
            program: "parshall_live",
            source: io::Error::from_raw_os_error(libc::EACCES),
            log: "R7 unbounded memory access".into(),
        }
    }

    #[test]
    fn af_xdp_does_what_the_kernel_refuses() {
        let beyond = LiveError::DoesNotFit {
            why: "bursts".into(),
        };
        assert!(is_replaceable(&beyond));
        assert!(is_replaceable(&LiveError::Xdp(refused())));
        // AF_XDP would fail of these too.
        assert!(!is_replaceable(&LiveError::Xdp(xdp::Error::Permission)));
        assert!(!is_replaceable(&LiveError::Xdp(xdp::Error::NoInterface(7))));
    }

    /// Marks tell packets whose headers do not; without marks somebody has to say so.
    #[test]
    fn headers_matter_only_without_marks() {
        let expected = |settings: &str| {
            let settings = Tunables::parse(settings).expect("settings");
            let streams = profile::open("bench", Way::Out, &settings).expect("built in");
            let streams: Vec<_> = streams.into_iter().map(|s| (s, Pps(1.0))).collect();
            let rx = Spec::Pcap("rx.pcap".into());
            let mut told = (&mut None, &AtomicBool::default() as &dyn Caller);
            receiver(&rx, &streams, &mut Vec::new(), &mut told).map(drop)
        };
        for flow in ["fs", "fsl"] {
            expected(&format!("vm=size,flow={flow}")).expect("marks tell");
        }
        let why = expected("vm=size").expect_err("nothing tells").to_string();
        assert!(why.contains("give it flow statistics"), "{why}");
    }
}
