//! Opens the ports of a load test: what sends, and what counts.

use std::error::Error;
use std::fmt;

use loadgen::device::{Path, Sender, Transmitter};
use loadgen::model::stream::Stream;
use loadgen::model::units::Pps;
use loadgen::receive::Match;
use serde::Serialize;
use xdp::LiveError;

use super::interface::Interface;
use super::interrupt::Interrupt;
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
    /// Which ports other ones stand in for, and why, if so.
    pub fallback: Option<Fallback>,
    _served: Served,
}

/// What sends or receives instead of the ports that were asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Fallback {
    /// The ports that were asked for.
    pub asked: Vec<String>,
    /// The ports in their places.
    pub used: Vec<String>,
    /// What the first ones cannot do.
    pub why: String,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, used) = (self.asked.join(", "), self.used.join(", "));
        write!(
            f,
            "{used} in place of {asked}, which is slower: {}",
            self.why
        )
    }
}

impl Fallback {
    /// AF_XDP in place of ports whose work XDP programs do.
    fn to_af_xdp(asked: Vec<&Spec>, why: &impl fmt::Display) -> Self {
        let names = asked.iter().filter_map(|spec| spec.interface());
        Self {
            used: names.map(|name| format!("af_xdp:{name}")).collect(),
            asked: asked.iter().map(ToString::to_string).collect(),
            why: why.to_string(),
        }
    }

    /// Says it, and adds it to what there was before.
    fn add_to(self, all: &mut Option<Self>) {
        crate::output::tell(&format!("parshall: {self}\n"));
        match all {
            Some(all) => {
                all.asked.extend(self.asked);
                all.used.extend(self.used);
                all.why = format!("{}; {}", all.why, self.why);
            }
            None => *all = Some(self),
        }
    }
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

    /// Whether another port stands in for this one.
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
    ways: &[(Sending, Spec)],
    rates: &[Pps],
    threads: Threads<'_>,
    interrupt: &Interrupt,
) -> Result<TestPorts, Box<dyn Error>> {
    let (mut software, mut fallback) = (Vec::new(), None);
    // What counts comes first: a veth takes live frames only if its peer runs a program.
    let receivers = ways
        .iter()
        .map(|(sending, rx)| receiver(rx, &sending.streams, &mut software, &mut fallback))
        .collect::<Result<Vec<_>, _>>()?;
    let sendings: Vec<&Sending> = ways.iter().map(|(sending, _)| sending).collect();
    let (transmitters, mut served, sender) = senders(
        &sendings,
        rates,
        software,
        (threads, interrupt),
        &mut fallback,
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
    sending: &Sending,
    rate: Pps,
    threads: Threads<'_>,
    interrupt: &Interrupt,
) -> Result<(Box<dyn Transmitter>, TestPorts), Box<dyn Error>> {
    let mut fallback = None;
    let with = (threads, interrupt);
    let (mut transmitters, served, sender) =
        senders(&[sending], &[rate], Vec::new(), with, &mut fallback)?;
    let transmitter = transmitters.pop().ok_or("nothing to send by")?;
    let ports = TestPorts::new(Vec::new(), sender, fallback, served);
    Ok((transmitter, ports))
}

type Senders = (Vec<Box<dyn Transmitter>>, Served, Sender);

fn senders(
    sendings: &[&Sending],
    rates: &[Pps],
    mut software: Vec<Software>,
    (threads, interrupt): (Threads<'_>, &Interrupt),
    fallback: &mut Option<Fallback>,
) -> Result<Senders, Box<dyn Error>> {
    let mut generators = live_generators(sendings, rates, threads, fallback)?.into_iter();
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
    let mut served = serve(software, threads, interrupt)?;
    let transmitters = sides.into_iter().map(|side| match side {
        Side::Kernel(generator) => Ok(Box::new(generator) as Box<dyn Transmitter>),
        Side::Software(place) => served.transmitter(place),
    });
    let transmitters = transmitters.collect::<Result<_, _>>()?;
    let sender = sender.ok_or("nothing to send by")?;
    Ok((transmitters, served, sender))
}

fn receiver(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
    fallback: &mut Option<Fallback>,
) -> Result<Side<live::Counter>, Box<dyn Error>> {
    match rx {
        Spec::Sink(name) => {
            let matches = streams.iter().map(|(stream, _)| known(rx, stream));
            let matches = matches.collect::<Result<Vec<_>, _>>()?;
            let interface = Interface::open(name)?;
            match live::Counter::open(interface.index(), &matches) {
                Ok(counter) => Ok(Side::Kernel(counter)),
                Err(e @ xdp::Error::Verifier { .. }) => {
                    Fallback::to_af_xdp(vec![rx], &e).add_to(fallback);
                    expect(&Spec::AfXdp(name.clone()), streams, software)
                }
                Err(e) => Err(e.into()),
            }
        }
        Spec::Live(name) => Err(format!(
            "live:{name} only sends; to receive use sink:{name} or af_xdp:{name} ({FORMS})"
        )
        .into()),
        Spec::AfXdp(_) | Spec::Memif { .. } | Spec::Pcap(_) => {
            let mut unmarked = streams.iter().filter(|(stream, _)| stream.mark.is_none());
            unmarked.try_for_each(|(stream, _)| known(rx, stream).map(drop))?;
            expect(rx, streams, software)
        }
    }
}

/// What tells the packets of a stream by their headers; `rx` is for the message.
fn known(rx: &Spec, stream: &Stream) -> Result<Match, String> {
    let help = match (rx, stream.mark) {
        (Spec::Sink(name), Some(_)) => format!("af_xdp:{name} knows them by their marks"),
        _ => "send it by `parshall send`, or give it flow statistics".to_owned(),
    };
    Match::of(stream).ok_or_else(|| {
        format!(
            "stream `{}` is neither IPv4 without options nor IPv6, or its lengths vary: {rx} could not tell its packets from others when they come back; {help}",
            stream.name
        )
    })
}

/// Lets a port in software expect these streams.
fn expect<T>(
    rx: &Spec,
    streams: &[(Stream, Pps)],
    software: &mut Vec<Software>,
) -> Result<Side<T>, Box<dyn Error>> {
    let place = place(rx, software);
    let expect = &mut software[place].expect;
    if !expect.is_empty() {
        return Err(format!("{rx} is given for two directions; each needs its own --rx").into());
    }
    expect.extend(streams.iter().map(|(stream, _)| stream.clone()));
    Ok(Side::Software(place))
}

/// One generator for everything that is to be sent by live frames, in its order; none if it cannot
/// do it all.
fn live_generators(
    sendings: &[&Sending],
    rates: &[Pps],
    threads: Threads<'_>,
    fallback: &mut Option<Fallback>,
) -> Result<Vec<live::Generator>, Box<dyn Error>> {
    let (mut ways, mut asked) = (Vec::new(), Vec::new());
    for sending in sendings {
        if let Spec::Live(name) = &sending.tx {
            ways.push((Interface::open(name)?.index(), sending.streams.as_slice()));
            asked.push(&sending.tx);
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
    generators.or_else(|e| {
        let instead = Fallback::to_af_xdp(asked, &e);
        if !is_replaceable(&e) {
            return Err(format!("{}: {e}", instead.asked.join(", ")).into());
        }
        instead.add_to(fallback);
        Ok(Vec::new())
    })
}

/// Whether AF_XDP may do what live frames do not: the plan is beyond them, or this kernel refuses
/// their program.
fn is_replaceable(error: &LiveError) -> bool {
    matches!(
        error,
        LiveError::DoesNotFit { .. } | LiveError::Xdp(xdp::Error::Verifier { .. })
    )
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

#[cfg(test)]
mod tests {
    use std::io;

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
            receiver(&rx, &streams, &mut Vec::new(), &mut None).map(drop)
        };
        for flow in ["fs", "fsl"] {
            expected(&format!("vm=size,flow={flow}")).expect("marks tell");
        }
        let why = expected("vm=size").expect_err("nothing tells").to_string();
        assert!(why.contains("give it flow statistics"), "{why}");
    }

    #[test]
    fn what_stands_in_for_what_is_said_together() {
        let mut all = None;
        let (tx, rx) = (Spec::Live("a".into()), Spec::Sink("b".into()));
        Fallback::to_af_xdp(vec![&rx], &"first").add_to(&mut all);
        Fallback::to_af_xdp(vec![&tx], &"second").add_to(&mut all);
        let all = all.expect("two");
        assert_eq!(
            all.to_string(),
            "af_xdp:b, af_xdp:a in place of sink:b, live:a, which is slower: first; second"
        );
    }
}
