//! XDP live frames as a generator, and the counting XDP program as a receiver.
//!
//! The live program sends up to four inc, dec or random variables of at most four bytes a stream. What a profile asks
//! for beyond that is told as [`LiveError::DoesNotFit`], and another way of sending is taken.

use loadgen::device::{Count, Failure, Receiver, Transmitter};
use loadgen::field::Fields;
use loadgen::generate::BACKLOG;
use loadgen::receive;
use loadgen::stream::{Op, Step, Stream};
use loadgen::units::{FCS, Pps};
use xdp::{Live, LiveError, LivePlan, LiveStream, MAX_ROUND, Rate, Sink, StreamCount, Var};

/// Sends out of one interface by live frames.
pub struct Generator(Live);

impl Generator {
    /// Readies one generator for all these interfaces; it sends nothing yet. The streams of each are addressed and have
    /// their rates at multiplier 1.
    ///
    /// # Errors
    /// [`LiveError::DoesNotFit`]: another generator may do it. Otherwise what the kernel refuses.
    pub fn open(
        ways: &[(u32, &[(Stream, Pps)])],
        cpu: Option<usize>,
    ) -> Result<Vec<Generator>, LiveError> {
        let plans = ways
            .iter()
            .map(|(ifindex, streams)| plan(*ifindex, streams));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let generators = Live::open(&plans, cpu)?;
        Ok(generators.into_iter().map(Generator).collect())
    }
}

fn plan(ifindex: u32, streams: &[(Stream, Pps)]) -> Result<LivePlan, LiveError> {
    let rates: Vec<f64> = streams.iter().map(|(_, rate)| rate.0).collect();
    let streams = streams
        .iter()
        .zip(weights(&rates)?)
        .map(|((stream, _), weight)| live_stream(stream, weight));
    Ok(LivePlan {
        ifindex,
        streams: streams.collect::<Result<_, _>>()?,
        burst: BACKLOG,
    })
}

impl Transmitter for Generator {
    fn start(&mut self, rate: Pps) -> Result<(), Failure> {
        Ok(self.0.start(whole(rate))?)
    }

    fn set_rate(&mut self, rate: Pps) {
        self.0.set_rate(whole(rate));
    }

    fn due(&self) -> u64 {
        self.0.due()
    }

    fn sent(&self) -> Vec<Count> {
        self.0.sent().into_iter().map(with_fcs).collect()
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.0.stop()?;
        Ok(())
    }
}

/// The program's rate is a whole number of packets a second, and at least one unless it is to rest.
fn whole(rate: Pps) -> Rate {
    if !rate.is_limited() {
        Rate::Unpaced
    } else if rate.0 > 0.0 {
        Rate::Pps(rate.0.round().clamp(1.0, 1e8) as u32)
    } else {
        Rate::Pps(0)
    }
}

fn with_fcs(count: StreamCount) -> Count {
    Count {
        packets: count.packets,
        bytes: count.bytes + FCS as u64 * count.packets,
    }
}

fn does_not_fit(why: impl Into<String>) -> LiveError {
    LiveError::DoesNotFit { why: why.into() }
}

/// The smallest whole numbers in the proportion of `rates`, if they are small enough for the program.
///
/// A rate is taken for a whole number of parts if it is one but for 10^-9 of itself: more than the rounding of f64 that
/// went into it, and less than two different proportions of numbers up to [`MAX_ROUND`] are apart (1 / 4096^2).
fn weights(rates: &[f64]) -> Result<Vec<u32>, LiveError> {
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    if !(least > 0.0 && least.is_finite()) {
        return Err(does_not_fit("a stream without a rate"));
    }
    let largest = MAX_ROUND as f64;
    let whole = |parts: usize| {
        let scaled = rates.iter().map(move |rate| rate / least * parts as f64);
        scaled
            .map(|v| (v <= largest && (v - v.round()).abs() < 1e-9 * v).then(|| v.round() as u32))
            .collect::<Option<Vec<u32>>>()
    };
    let weights = (1..=MAX_ROUND).find_map(whole);
    weights.ok_or_else(|| {
        let why = format!(
            "rates of streams whose proportion repeats only after more than {MAX_ROUND} packets"
        );
        does_not_fit(why)
    })
}

fn live_stream(stream: &Stream, weight: u32) -> Result<LiveStream, LiveError> {
    if stream.cache > 0 {
        return Err(does_not_fit("a cache of packets"));
    }
    let random = stream
        .variables
        .iter()
        .filter(|v| v.op == Op::Random)
        .count();
    if random > 1 {
        return Err(does_not_fit("several random variables in a stream"));
    }
    // The first packet: what does not vary in it is what the program keeps.
    let mut frame = vec![0; stream.frame_len()];
    Fields::new(stream, ENTROPY).write(&mut frame);
    let (mut vars, mut ip4_checksum_at) = (Vec::new(), None);
    for step in stream.steps.iter().filter(|step| stream.contains(step)) {
        match (*step, ip4_checksum_at) {
            (Step::Write { .. }, Some(_)) => {
                return Err(does_not_fit("a write after the checksum"));
            }
            (Step::Write { .. }, None) => vars.push(variable(stream, step)?),
            (Step::Checksum4 { offset }, None) => {
                ip4_checksum_at =
                    Some(u16::try_from(offset).map_err(|_| does_not_fit("a header far behind"))?);
            }
            (Step::Checksum4 { .. }, Some(_)) => return Err(does_not_fit("two checksums")),
        }
    }
    let writes = |variable: usize| {
        stream
            .steps
            .iter()
            .filter(move |step| matches!(step, Step::Write { variable: v, .. } if *v == variable))
    };
    if (0..stream.variables.len()).any(|variable| writes(variable).count() > 1) {
        return Err(does_not_fit("a variable that is written twice"));
    }
    Ok(LiveStream {
        frame,
        weight,
        vars,
        ip4_checksum_at,
    })
}

/// Seeds random variables whose profile leaves the sequence open; any number does.
const ENTROPY: u32 = 1;

fn variable(stream: &Stream, step: &Step) -> Result<Var, LiveError> {
    let Step::Write {
        variable,
        offset,
        add,
        big_endian,
    } = *step
    else {
        return Err(does_not_fit("a step that writes nothing"));
    };
    let v = &stream.variables[variable];
    if !big_endian && v.size > 1 {
        return Err(does_not_fit("a little-endian variable"));
    }
    let fitting = |value: u64| {
        let sum = i128::from(value) + i128::from(add);
        u32::try_from(sum).map_err(|_| does_not_fit("a variable of more than 32 bits"))
    };
    if v.op == Op::Random && add != 0 {
        return Err(does_not_fit("a random variable with a constant added"));
    }
    let seed = match stream.random_seed {
        0 => ENTROPY,
        seed => seed.wrapping_mul(514_229),
    };
    let count = (v.max - v.min).saturating_add(1);
    Ok(Var {
        at: u16::try_from(offset).map_err(|_| does_not_fit("a variable far behind"))?,
        width: v.size,
        op: match v.op {
            Op::Inc => xdp::Op::Inc,
            Op::Dec => xdp::Op::Dec,
            Op::Random => xdp::Op::Random(seed),
        },
        init: fitting(v.init.clamp(v.min, v.max))?,
        min: fitting(v.min)?,
        max: fitting(v.max)?,
        step: u32::try_from((v.step.max(1) - 1) % count + 1)
            .map_err(|_| does_not_fit("a step of more than 32 bits"))?,
    })
}

/// Counts in the XDP program of an interface.
pub struct Counter(Sink);

impl Counter {
    /// Puts the program on an interface. What belongs to none of `streams` is left to the kernel.
    ///
    /// # Errors
    /// Another program is there, too many streams, or what the kernel refuses.
    pub fn open(ifindex: u32, streams: &[receive::Match]) -> Result<Counter, xdp::Error> {
        let matches: Vec<xdp::Match> = streams
            .iter()
            .map(|m| xdp::Match {
                length: m.total_length,
                protocol: m.protocol,
                src: m.source,
                dst: m.destination,
                sport: m.ports.map_or(0, |ports| (ports >> 16) as u16),
                dport: m.ports.map_or(0, |ports| ports as u16),
            })
            .collect();
        Sink::attach(ifindex, &matches).map(Counter)
    }
}

impl Receiver for Counter {
    fn counts(&self) -> Vec<Count> {
        // The map is ours and its rows exist: reading them does not fail.
        let counts = self.0.counts().unwrap_or_default();
        counts.into_iter().map(with_fcs).collect()
    }

    fn other(&self) -> Count {
        Count {
            packets: self.0.other().unwrap_or_default(),
            bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::profile::{self, Tunables, Way};

    fn streams(name: &str, tunables: &str) -> Vec<Stream> {
        profile::open(name, Way::Out, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    #[test]
    fn bench_fits() {
        let streams = streams("bench", "size=64,vm=var2");
        let live = live_stream(&streams[0], 1).unwrap();
        assert_eq!(live.frame.len(), 60);
        assert_eq!(live.ip4_checksum_at, Some(14));
        let at: Vec<_> = live.vars.iter().map(|v| (v.at, v.width, v.step)).collect();
        assert_eq!(at, [(26, 4, 1), (30, 4, 1)]);
        assert_eq!(
            (live.vars[0].min, live.vars[0].max),
            (0x1000_0004, 0x1000_00fe)
        );
    }

    #[test]
    fn weights_are_whole() {
        assert_eq!(weights(&[28.0, 16.0, 4.0]).unwrap(), [7, 4, 1]);
        assert_eq!(weights(&[1.5, 1.0]).unwrap(), [3, 2]);
        assert_eq!(weights(&[7.0]).unwrap(), [1]);
        assert_eq!(weights(&[1e-3 / 3.0, 0.1]).unwrap(), [1, 300]);
        // The least has more parts than a thousand.
        assert_eq!(weights(&[1999.0, 2003.0]).unwrap(), [1999, 2003]);
        assert_eq!(weights(&[133.7, 199.9, 40.1]).unwrap(), [1337, 1999, 401]);
        assert!(weights(&[std::f64::consts::PI, 1.0]).is_err());
        assert!(weights(&[1.0, 1e10]).is_err());
        assert!(weights(&[1e-308, 1e308]).is_err());
        assert!(weights(&[f64::NAN, 1.0]).is_err());
        assert!(weights(&[0.0]).is_err());
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let cached = streams("bench", "vm=cached");
        assert!(matches!(
            live_stream(&cached[0], 1),
            Err(LiveError::DoesNotFit { .. })
        ));
        let mut little = streams("bench", "vm=var1").remove(0);
        for step in &mut little.steps {
            if let Step::Write { big_endian, .. } = step {
                *big_endian = false;
            }
        }
        assert!(matches!(
            live_stream(&little, 1),
            Err(LiveError::DoesNotFit { .. })
        ));
    }

    #[test]
    fn a_step_of_the_whole_range_stays() {
        let mut stream = streams("bench", "vm=var1").remove(0);
        stream.variables[0].step = 2 * 251;
        assert_eq!(live_stream(&stream, 1).unwrap().vars[0].step, 251);
        stream.variables[0].step = 252;
        assert_eq!(live_stream(&stream, 1).unwrap().vars[0].step, 1);
    }

    #[test]
    fn rates_are_whole() {
        assert_eq!(whole(Pps(0.2)), Rate::Pps(1));
        assert_eq!(whole(Pps(0.0)), Rate::Pps(0));
        assert_eq!(whole(Pps(1.5e6)), Rate::Pps(1_500_000));
        assert_eq!(whole(Pps::UNLIMITED), Rate::Unpaced);
    }
}
