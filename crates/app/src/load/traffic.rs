//! Streams, ports and addresses to send: the options that all generators share.

use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use loadgen::model::load::Load;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::rate::{Rate, RateError};
use loadgen::model::stream::{self, Macs, Stream};
use loadgen::model::units::{Bits, Pps};
use loadgen::source::mark;
use session::interface::{Interface, Line};
use session::{Spec, Threads};
use wire::eth::Mac;

use super::dry::Unbound;
use super::interface::{mac, neighbor};

/// The packets, and where they go.
#[derive(Args, Debug, Clone)]
pub struct Traffic {
    /// Traffic profile: bench, imix, imix_ipv6, udp_1pkt_simple; a file with a compiled one (.json,
    /// .yaml), a capture (.pcap) or a program for T-Rex's library (.py)
    #[arg(long, short = 'f', default_value = "bench", value_name = "NAME|FILE")]
    pub profile: String,
    /// A setting of the profile, such as size=64 or vm=var2; may be repeated, or given several
    /// separated by commas that no quotes enclose
    #[arg(long = "tunable", short = 't', value_name = "KEY=VALUE")]
    tunables: Vec<String>,
    /// Send one more stream in each direction that measures latency, at this rate: UDP packets as
    /// the first stream's, with another source port
    #[arg(long, value_name = "PPS", value_parser = latency_rate)]
    latency_rate: Option<Pps>,
    /// Directory of T-Rex, whose library compiles a profile that is a Python program [default: on
    /// PYTHONPATH]
    #[arg(long, value_name = "DIR")]
    trex: Option<PathBuf>,
    /// Identification (IPv4) or flow label (IPv6) of the first group of flow statistics; those of
    /// the others follow
    #[arg(long, value_name = "N", default_value = "0xfc00", value_parser = flow_id)]
    flow_id_base: u16,
    /// Source Ethernet address, once for each port to send by [default: the interface's, in a dry
    /// run the profile's]
    #[arg(long, value_name = "MAC")]
    src_mac: Vec<Mac>,
    /// Destination Ethernet address, once for each port to send by [default: the neighbor's, if
    /// there is only one, in a dry run the profile's]
    #[arg(long, value_name = "MAC")]
    dst_mac: Vec<Mac>,
    /// Line rate on layer 1 in bits a second, for rates in % [default: the link's speed]
    #[arg(long, value_name = "RATE", value_parser = line_rate)]
    line_rate: Option<Bits>,
    /// Threads that send; the packets of each stream are divided among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cores: u32,
    /// Processors of the sending threads, and of the receiving one if it is to have its own
    #[arg(long, value_name = "N[,M]", value_delimiter = ',', num_args = 1)]
    pub cpu: Vec<usize>,
}

/// A rate, or no limit.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// As fast as the port takes packets.
    Max,
    /// This rate.
    At(Rate),
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pace::Max => f.write_str("max"),
            Pace::At(rate) => rate.fmt(f),
        }
    }
}

/// Reads a rate or `max`.
pub fn pace(text: &str) -> Result<Pace, String> {
    let rate = text.parse().map_err(|e: RateError| e.to_string())?;
    Ok(match rate {
        Rate::Max => Pace::Max,
        rate => Pace::At(rate),
    })
}

/// A rate in packets a second.
fn latency_rate(text: &str) -> Result<Pps, String> {
    match text.parse() {
        Ok(Rate::Packets(pps)) if pps.0 > 0.0 => Ok(pps),
        _ => Err("expected packets a second, such as 1kpps".to_owned()),
    }
}

/// One direction, ready to be sent.
pub struct Sending {
    /// Port to send by.
    pub tx: Spec,
    /// Streams with their Ethernet addresses, each with its rate at multiplier 1.
    pub streams: Vec<(Stream, Pps)>,
    /// The load that the profile offers at multiplier 1.
    pub load: Load,
    /// Line rate of the port, if it has one.
    pub line: Option<Line>,
    /// Streams that are not sent with the given addresses, if there are any.
    pub address_note: Option<String>,
}

impl Sending {
    /// The rate of this port. The line rate of a virtual device only matters for percentages.
    ///
    /// # Errors
    /// The rate is a share of an unknown line rate, is more than the line carries, or cannot be
    /// applied to the profile.
    pub fn rate(&self, rate: Rate) -> Result<Pps, Box<dyn Error>> {
        self.resolve(rate).map_err(|e| self.refuse(&e))
    }

    /// The rate of a warm-up, which measures nothing: where the profile cannot be sent at it, the
    /// nearest that it can.
    ///
    /// # Errors
    /// As [`Self::rate`], for other reasons.
    pub fn warmup_rate(&self, rate: Rate) -> Result<Pps, Box<dyn Error>> {
        match self.resolve(rate) {
            Err(RateError::NotScalable(_)) => Ok(self.load.base),
            Err(RateError::BelowFixed { fixed, .. }) => Ok(fixed),
            other => other.map_err(|e| self.refuse(&e)),
        }
    }

    fn resolve(&self, rate: Rate) -> Result<Pps, RateError> {
        let counts = |line: &Line| !line.nominal || matches!(rate, Rate::Percent(_));
        let line = self.line.filter(counts).map(|line| line.rate);
        rate.resolve(&self.load, line)
    }

    fn refuse(&self, error: &RateError) -> Box<dyn Error> {
        format!("{}: {}", self.tx, with_advice(error)).into()
    }

    /// In what the packets do not follow the rate of the port, if in anything. Flat out, the port
    /// has no rate.
    pub fn rate_note(&self, flat_out: bool) -> Option<String> {
        let latency = self.streams.iter().any(|(stream, _)| stream.is_fixed());
        let bursts = self.streams.iter().any(|(stream, _)| !stream.is_steady());
        let fixed = self.load.fixed;
        match (flat_out, self.load.is_scalable, latency, bursts) {
            (_, _, false, false) => None,
            (true, ..) => Some(
                "flat out there are no gaps: streams keep their order, and those that measure \
                 latency do not keep their rate"
                    .to_owned(),
            ),
            (false, false, true, false) => Some(format!(
                "streams that measure latency keep their own rate: {fixed:.3}"
            )),
            (false, false, ..) => Some(
                "the profile is sent as it is: a rate does not change the gaps between single \
                 packets"
                    .to_owned(),
            ),
            (false, true, _, true) => Some(
                "the rate is that of packets within bursts; the gaps between bursts and streams \
                 come on top, and a rate does not change them"
                    .to_owned(),
            ),
            (false, true, true, false) => Some(format!(
                "streams that measure latency keep their own rate: {fixed:.3}; the others make up \
                 the rest"
            )),
        }
    }

    /// The traffic of the port, for its opener.
    pub fn to_open(&self) -> session::Sending<'_> {
        session::Sending {
            tx: &self.tx,
            streams: &self.streams,
        }
    }

    /// The highest rate worth trying: that of a real line.
    pub fn limit(&self) -> Pps {
        match self.line {
            Some(line) if !line.nominal => self.load.l1_pps(line.rate),
            _ => Pps::UNLIMITED,
        }
    }
}

impl Traffic {
    /// The profile's streams for one direction, not yet addressed. Call this before touching any
    /// port.
    ///
    /// # Errors
    /// There is no such profile or setting, or no room for its marks.
    pub fn streams(&self, way: Way) -> Result<Vec<Stream>, Box<dyn Error>> {
        let mut tunables = Tunables::default();
        for text in &self.tunables {
            tunables = tunables.and(Tunables::parse(text)?);
        }
        let library = self.trex.as_deref();
        let mut streams = profile::open_with(&self.profile, way, &tunables, library)?;
        let (name, base) = (&self.profile, self.flow_id_base);
        if let Some(rate) = self.latency_rate {
            streams = profile::with_latency(streams, rate)
                .map_err(|why| format!("profile {name}: {why} (--latency-rate)"))?;
        }
        mark::begin_at(base, &mut streams)
            .map_err(|why| format!("profile {name}: {why} (--flow-id-base {base:#06x})"))?;
        Ok(streams)
    }

    /// The traffic of each of the ports `tx`: the first one sends the profile's streams of the way
    /// out, the second one those of the way back.
    ///
    /// # Errors
    /// There is no such profile or interface, or an address or line rate is not known.
    pub fn sendings(&self, tx: &[Spec]) -> Result<Vec<Sending>, Box<dyn Error>> {
        self.check_processors()?;
        self.check_addresses(tx.len())?;
        let ways = [Way::Out, Way::Back];
        let streams = tx
            .iter()
            .zip(ways)
            .map(|(_, way)| self.streams(way))
            .collect::<Result<Vec<_>, _>>()?;
        tx.iter()
            .zip(streams)
            .enumerate()
            .map(|(index, (spec, streams))| self.sending(index, spec, streams))
            .collect()
    }

    /// The traffic of a port that does not exist. Addresses that are not given stay the profile's.
    ///
    /// # Errors
    /// There is no such profile, or the line rate is needed but not given.
    pub fn unbound(&self, rate: Rate) -> Result<Unbound, Box<dyn Error>> {
        self.check_addresses(1)?;
        let mut streams = self.streams(Way::Out)?;
        let address_note = self.address_note(0, &streams);
        for stream in &mut streams {
            let (src, dst) = (self.src_mac.first(), self.dst_mac.first());
            stream.macs.keep_source |= src.is_none();
            stream.macs.keep_destination |= dst.is_none();
            let or_any = |mac: Option<&Mac>| mac.copied().unwrap_or_default().0;
            stream.address(or_any(src), or_any(dst));
        }
        let unknown = || format!("profile {}: a rate in % needs --line-rate", self.profile);
        let rates = stream::base_rates(&streams, self.line_rate).ok_or_else(unknown)?;
        let streams: Vec<(Stream, Pps)> = streams.into_iter().zip(rates).collect();
        let load = self.load(&streams)?;
        let rate = rate.resolve(&load, self.line_rate);
        Ok(Unbound {
            streams,
            rate: rate.map_err(|e| with_advice(&e))?,
            address_note,
        })
    }

    /// The file of the profile, if it is one and no built-in.
    pub fn file(&self) -> Option<&Path> {
        Some(Path::new(&self.profile)).filter(|file| file.exists())
    }

    /// The threads that serve ports in software.
    pub fn threads(&self) -> Threads<'_> {
        Threads {
            cores: self.cores,
            cpus: &self.cpu,
        }
    }

    fn load(&self, streams: &[(Stream, Pps)]) -> Result<Load, Box<dyn Error>> {
        let nothing = || format!("profile {}: it has nothing to send", self.profile).into();
        Load::of(streams).ok_or_else(nothing)
    }

    fn check_processors(&self) -> Result<(), Box<dyn Error>> {
        let most = self.cores as usize + 1;
        if self.cpu.len() > most {
            return Err(format!(
                "--cpu takes {most} processors at most: one for each of --cores and the receiver's"
            )
            .into());
        }
        let usable = kernel::cpu::usable();
        match self.cpu.iter().find(|cpu| !usable.contains(cpu)) {
            Some(cpu) => Err(format!("--cpu {cpu}: only {usable:?} can be used here").into()),
            None => Ok(()),
        }
    }

    /// Refuses addresses of directions that there are not.
    fn check_addresses(&self, ways: usize) -> Result<(), String> {
        let given = [("--src-mac", &self.src_mac), ("--dst-mac", &self.dst_mac)];
        match given.iter().find(|(_, given)| given.len() > ways) {
            Some((option, given)) => Err(format!(
                "{} {option}, but {ways} to send through: give one for each port",
                given.len()
            )),
            None => Ok(()),
        }
    }

    /// Notes the streams of a direction that do not get the addresses that were given for it: a
    /// profile may keep a stream's own.
    fn address_note(&self, index: usize, streams: &[Stream]) -> Option<String> {
        let note = |option: &str, given: &[Mac], at: Range<usize>, keeps: fn(&Macs) -> bool| {
            let mac = given.get(index)?;
            let has_own = |s: &&Stream| keeps(&s.macs) && s.packet.get(at.clone()) != Some(&mac.0);
            let kept = streams.iter().filter(has_own);
            let kept: Vec<String> = kept.map(|s| format!("`{}`", s.name)).collect();
            (!kept.is_empty()).then(|| {
                let names = kept.join(", ");
                format!(
                    "{option} {mac} is not in the packets of {names}: the profile keeps their own"
                )
            })
        };
        let destination = note("--dst-mac", &self.dst_mac, 0..6, |m| m.keep_destination);
        let source = note("--src-mac", &self.src_mac, 6..12, |m| m.keep_source);
        let notes: Vec<String> = destination.into_iter().chain(source).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    fn sending(
        &self,
        index: usize,
        tx: &Spec,
        mut streams: Vec<Stream>,
    ) -> Result<Sending, Box<dyn Error>> {
        let interface = tx.interface().map(Interface::open).transpose()?;
        let (source, destination) = self.addresses(index, tx, interface.as_ref(), &streams)?;
        let address_note = self.address_note(index, &streams);
        if let Some(note) = &address_note {
            crate::output::tell(&format!("parshall: {tx}: {note}\n"));
        }
        for stream in &mut streams {
            stream.address(source.0, destination.0);
        }
        let given = self.line_rate.map(|rate| Line {
            rate,
            nominal: false,
        });
        let line = given.or_else(|| interface.as_ref().and_then(Interface::line));
        let bits = line.map(|line| line.rate);
        let unknown = || {
            format!(
                "profile {}: a stream's rate is a share of the line rate, but {tx} has no known speed; give --line-rate",
                self.profile
            )
        };
        let rates = stream::base_rates(&streams, bits).ok_or_else(unknown)?;
        let streams: Vec<(Stream, Pps)> = streams.into_iter().zip(rates).collect();
        let load = self.load(&streams)?;
        Ok(Sending {
            tx: tx.clone(),
            streams,
            load,
            line,
            address_note,
        })
    }

    /// Source and destination of the frames of one direction.
    fn addresses(
        &self,
        index: usize,
        tx: &Spec,
        interface: Option<&Interface>,
        streams: &[Stream],
    ) -> Result<(Mac, Mac), Box<dyn Error>> {
        let source = match (self.src_mac.get(index), interface) {
            (Some(mac), _) => *mac,
            (None, Some(interface)) => mac(interface)?,
            // For a port without a device, any locally administered address will do.
            (None, None) => Mac([0x02, 0x70, 0x73, 0, 0xff, index as u8]),
        };
        let destination = match (self.dst_mac.get(index), interface) {
            (Some(mac), _) => *mac,
            _ if streams.iter().all(|s| s.macs.keep_destination) => Mac::default(),
            (None, Some(interface)) => neighbor(interface)?,
            (None, None) => {
                return Err(
                    format!("{tx}: the destination address is not known; give --dst-mac").into(),
                );
            }
        };
        Ok((source, destination))
    }
}

/// The error, and what to do where another line rate would help.
fn with_advice(error: &RateError) -> String {
    match error {
        RateError::NoLine(_) | RateError::AboveLine { .. } => {
            format!("{error} (or give --line-rate)")
        }
        _ => error.to_string(),
    }
}

/// A line rate such as `10gbps`.
pub fn line_rate(text: &str) -> Result<Bits, String> {
    match text.parse::<Rate>() {
        Ok(Rate::L1(bits) | Rate::L2(bits)) => Ok(bits),
        _ => Err("expected bits a second, for example 10gbps".to_owned()),
    }
}

/// A number of 16 bits, decimal or as in `0xfc00`.
fn flow_id(text: &str) -> Result<u16, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number of 16 bits, for example 0xfc00 or 64512".to_owned())
}

/// A time such as `10s`, `250ms`, `5m` or `1h`; a number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.parse::<f64>().unwrap_or(f64::NAN) * scale;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "expected a time such as 10, 10s, 250ms, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use loadgen::model::stream::{Mark, Mode, StreamRate};

    use super::*;

    #[test]
    fn times() {
        assert_eq!(duration("12000ms"), Ok(Duration::from_secs(12)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for text in ["", "s", "-1", "1d", "1e400h", "1..2", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn line_rates() {
        assert_eq!(line_rate("10gbps"), Ok(Bits(1e10)));
        assert!(line_rate("10mpps").is_err());
    }

    #[test]
    fn flow_ids() {
        for text in ["0xff00", "0xFF00", "65280"] {
            assert_eq!(flow_id(text), Ok(0xff00), "{text}");
        }
        for text in ["", "0x", "0x10000", "65536", "-1", "ff00"] {
            assert!(flow_id(text).is_err(), "{text}");
        }
    }

    /// A stream of a frame of 64 bytes at 1000 pps, which measures latency or not.
    fn stream(latency: bool, mode: Mode) -> (Stream, Pps) {
        let pps = Pps(1000.0);
        let stream = Stream {
            mode,
            mark: latency.then_some(Mark { group: 1, latency }),
            ..Stream::new("s", vec![0; 60], StreamRate::Packets(pps))
        };
        (stream, pps)
    }

    fn sending(streams: Vec<(Stream, Pps)>) -> Sending {
        Sending {
            tx: Spec::Pcap("x".into()),
            load: Load::of(&streams).unwrap(),
            streams,
            line: None,
            address_note: None,
        }
    }

    #[test]
    fn a_warm_up_has_the_nearest_rate_that_there_is() {
        let [plain, fixed] = [false, true].map(|latency| stream(latency, Mode::Continuous));
        for (streams, rates) in [
            (vec![plain.clone()], [200.0, 5000.0, 500.0]),
            (vec![fixed.clone()], [1000.0, 1000.0, 1000.0]),
            (vec![plain, fixed], [1000.0, 5000.0, 1500.0]),
        ] {
            let sending = sending(streams);
            let warmup = |text: &str| sending.warmup_rate(text.parse().unwrap()).unwrap();
            assert_eq!(["200pps", "5kpps", "0.5"].map(|text| warmup(text).0), rates);
            assert!(sending.warmup_rate("1%".parse().unwrap()).is_err());
        }
    }

    #[test]
    fn what_does_not_follow_the_rate_is_said() {
        let continuous = |latency| stream(latency, Mode::Continuous);
        let burst = |packets| stream(false, Mode::SingleBurst { packets });
        for (streams, at_a_rate, flat_out) in [
            (vec![continuous(false)], "", ""),
            (
                vec![continuous(true)],
                "their own rate: 1.000 kpps",
                "flat out",
            ),
            (
                vec![continuous(true), continuous(false)],
                "the others make up",
                "flat out",
            ),
            (vec![burst(1)], "sent as it is", "flat out"),
            (vec![burst(2)], "within bursts", "flat out"),
        ] {
            let sending = sending(streams);
            let note = |flat_out| sending.rate_note(flat_out).unwrap_or_default();
            assert!(note(false).contains(at_a_rate) && note(true).contains(flat_out));
            assert_eq!(
                [note(false).is_empty(), note(true).is_empty()],
                [at_a_rate.is_empty(); 2]
            );
        }
    }
}
