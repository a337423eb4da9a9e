//! The generator's plan, and whether its program can carry it out.

use std::time::Duration;

use super::LiveError;
use crate::error::Error;

// The limits are those of live.bpf.c, whose memory and loops have fixed sizes.

/// Interfaces that one generator sends out of.
pub const MAX_WAYS: usize = 2;
/// Streams of a plan.
pub const MAX_STREAMS: usize = 16;
/// Variables of a stream.
pub const MAX_VARS: usize = 4;
/// Longest round of a plan's streams, each as often as its weight (reduced) says, packets.
pub const MAX_ROUND: usize = 4096;
/// Longest frame, bytes without FCS. A live frame is one page shared with the kernel's own headers;
/// with pages of 4 KiB Linux 6.18 leaves 3,408 bytes, and some room is kept for kernels whose
/// headers are larger.
pub const MAX_FRAME: usize = 3200;

/// Least Ethernet frame without FCS; shorter ones are padded with zeros.
pub(super) const MIN_FRAME: usize = 60;
/// Bytes at the beginning of each frame that the program writes anew: the fewer if those suffice.
/// Ethernet, IPv4 and UDP headers take 42 bytes.
pub(super) const NARROW: usize = 60;
pub(super) const WIDE: usize = 124;
const IP4_LEN: usize = 20;
const MARK: usize = 16;

/// Rate to send at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// As fast as it goes; nothing is ever short.
    Unpaced,
    /// Packets per second over all streams; more than 100 million count as that.
    Pps(u32),
}

/// Packets to send out of one interface.
#[derive(Clone, Debug)]
pub struct LivePlan {
    /// The interface, in the calling thread's network namespace.
    pub ifindex: u32,
    /// Up to [`MAX_STREAMS`], interleaved evenly by their weights.
    pub streams: Vec<LiveStream>,
    /// Number of packets that a start sends, 1 or more; None: until it is stopped.
    pub packets: Option<u64>,
    /// What [`monotonic`](crate::monotonic) was when the clock was 0 by which marks say the time;
    /// one clock for all plans of a generator.
    pub epoch: u64,
    /// Longest delay of a packet. What the generator could not send for longer than this (it was
    /// not running) is given up and counted as shortfall. At least 64 packets are always allowed.
    pub burst: Duration,
}

/// Frames of one kind.
#[derive(Clone, Debug)]
pub struct LiveStream {
    /// The frame without FCS, from the destination address on; up to [`MAX_FRAME`] bytes. Padded to
    /// 60.
    pub frame: Vec<u8>,
    /// Share of the packets, relative to the other streams; at least 1.
    pub weight: u32,
    /// Up to [`MAX_VARS`] fields that change from frame to frame, applied in this order.
    pub vars: Vec<Var>,
    /// Offset of an IPv4 header without options whose checksum is to be computed after the fields
    /// have changed.
    pub ip4_checksum_at: Option<u16>,
    /// Offset of a mark of 16 bytes, at least 1. Its byte 1 counts the starts from the frame's
    /// value on, bytes 4 to 7 the packets since, and the last 8 are the time of sending in
    /// nanoseconds, both little-endian.
    pub mark_at: Option<u16>,
}

/// A field that changes from frame to frame; big endian.
#[derive(Clone, Debug)]
pub struct Var {
    /// Offset in the frame, bytes.
    pub at: u16,
    /// Bytes: 1, 2 or 4.
    pub width: u8,
    /// Kind of change.
    pub op: Op,
    /// The first frame's value (unless random).
    pub init: u32,
    /// Least value.
    pub min: u32,
    /// Greatest value.
    pub max: u32,
    /// Size of a step, 1 to max - min + 1; past the end it goes on from the other end.
    pub step: u32,
}

/// Kind of change of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Up by the step.
    Inc,
    /// Down by the step.
    Dec,
    /// min + r mod (max - min + 1); r is 15 bits (widths 1 and 2) or 30 (width 4) of the generator
    /// s = 214013 s + 2531011 mod 2^32, started with this seed.
    Random(u32),
}

fn wrong(why: String) -> LiveError {
    LiveError::Xdp(Error::Parameter(why))
}

fn does_not_fit(why: String) -> LiveError {
    LiveError::DoesNotFit { why }
}

/// Checks the plans of one generator; says how much of each frame must be written anew.
pub(super) fn check(plans: &[LivePlan]) -> Result<usize, LiveError> {
    if plans.is_empty() || plans.iter().any(|plan| plan.streams.is_empty()) {
        return Err(wrong("a plan needs a stream".to_owned()));
    }
    if plans.len() > MAX_WAYS {
        return Err(does_not_fit(format!(
            "{} interfaces; it takes {MAX_WAYS}",
            plans.len()
        )));
    }
    if let Some(plan) = plans.iter().find(|plan| plan.streams.len() > MAX_STREAMS) {
        return Err(does_not_fit(format!(
            "{} streams; it takes {MAX_STREAMS}",
            plan.streams.len()
        )));
    }
    let streams = || plans.iter().flat_map(|plan| &plan.streams);
    streams().try_for_each(check_stream)?;
    let longest = longest(plans);
    let fits = |head: usize| streams().all(|stream| changes_end(stream, longest) <= head);
    match [NARROW, WIDE].into_iter().find(|head| fits(*head)) {
        Some(head) => Ok(head),
        None => Err(does_not_fit(format!(
            "frames that differ behind byte {WIDE}"
        ))),
    }
}

/// The longest frame of all.
pub(super) fn longest(plans: &[LivePlan]) -> &[u8] {
    plans
        .iter()
        .flat_map(|plan| &plan.streams)
        .map(|stream| stream.frame.as_slice())
        .max_by_key(|frame| frame.len())
        .unwrap_or_default()
}

/// End of the bytes in which this stream's frames differ from one another and from the longest
/// frame.
fn changes_end(stream: &LiveStream, longest: &[u8]) -> usize {
    let vars = stream
        .vars
        .iter()
        .map(|var| usize::from(var.at) + usize::from(var.width));
    let checksum = stream.ip4_checksum_at.map(|at| usize::from(at) + IP4_LEN);
    // The padding up to the least frame is zero, whatever the longest has there.
    let byte = |i: usize| stream.frame.get(i).copied().unwrap_or(0);
    let len = stream.frame.len().max(MIN_FRAME).min(longest.len());
    let differs = (0..len)
        .rev()
        .find(|i| byte(*i) != longest[*i])
        .map(|i| i + 1);
    let mark = stream.mark_at.map(|at| usize::from(at) + MARK);
    vars.chain(checksum)
        .chain(mark)
        .chain(differs)
        .max()
        .unwrap_or(0)
}

fn check_stream(stream: &LiveStream) -> Result<(), LiveError> {
    if stream.frame.len() < 14 {
        return Err(wrong(format!(
            "a frame of {} bytes has no Ethernet header",
            stream.frame.len()
        )));
    }
    if stream.frame.len() > MAX_FRAME {
        let len = stream.frame.len();
        return Err(does_not_fit(format!(
            "a frame of {len} bytes; a live frame holds {MAX_FRAME}"
        )));
    }
    if stream.weight == 0 {
        return Err(wrong("a stream of weight 0".to_owned()));
    }
    if stream.vars.len() > MAX_VARS {
        return Err(does_not_fit(format!(
            "{} variables in a stream; it takes {MAX_VARS}",
            stream.vars.len()
        )));
    }
    let len = stream.frame.len().max(MIN_FRAME);
    if let Some(at) = stream.ip4_checksum_at {
        check_header(stream, usize::from(at), len)?;
    }
    if let Some(at) = stream.mark_at
        && (at == 0 || usize::from(at) + MARK > stream.frame.len())
    {
        return Err(wrong("the mark lies outside the frame".to_owned()));
    }
    stream.vars.iter().try_for_each(|var| check_var(var, len))
}

/// The program sums an IPv4 header of 20 bytes at `at`.
fn check_header(stream: &LiveStream, at: usize, len: usize) -> Result<(), LiveError> {
    if at == 0 || at + IP4_LEN > len {
        return Err(wrong("the IPv4 header lies outside the frame".to_owned()));
    }
    let covers = |var: &Var| {
        let first = usize::from(var.at);
        (first..first + usize::from(var.width)).contains(&at)
    };
    if stream.vars.iter().any(covers) {
        return Err(does_not_fit(
            "a variable in an IPv4 header's length".to_owned(),
        ));
    }
    match stream.frame.get(at) {
        Some(first) if usize::from(first & 15) * 4 > IP4_LEN => {
            Err(does_not_fit("an IPv4 header with options".to_owned()))
        }
        _ => Ok(()),
    }
}

fn check_var(var: &Var, len: usize) -> Result<(), LiveError> {
    let limit = match var.width {
        1 => u32::from(u8::MAX),
        2 => u32::from(u16::MAX),
        4 => u32::MAX,
        width => {
            return Err(does_not_fit(format!(
                "a variable of {width} bytes; it takes 1, 2 and 4"
            )));
        }
    };
    if usize::from(var.at) + usize::from(var.width) > len {
        return Err(wrong(format!(
            "a variable at byte {} lies outside its frame of {len}",
            var.at
        )));
    }
    let Var {
        min,
        max,
        init,
        step,
        ..
    } = *var;
    if min > max || max > limit || !(min..=max).contains(&init) {
        return Err(wrong(format!(
            "a variable from {min} to {max}, first {init}, of {} bytes",
            var.width
        )));
    }
    if step == 0 || step - 1 > max - min {
        return Err(wrong(format!(
            "a variable from {min} to {max} with step {step}"
        )));
    }
    Ok(())
}

/// One round of the streams, each as often as its weight (reduced) says and as evenly as can be:
/// the stream that is furthest behind its share comes next.
pub(super) fn order(streams: &[LiveStream]) -> Result<Vec<u8>, LiveError> {
    let gcd = streams
        .iter()
        .fold(0, |gcd, stream| greatest_common_divisor(gcd, stream.weight))
        .max(1);
    let weights: Vec<i64> = streams
        .iter()
        .map(|stream| (stream.weight / gcd).into())
        .collect();
    let total: i64 = weights.iter().sum();
    if total > MAX_ROUND as i64 {
        return Err(does_not_fit(format!(
            "weights that repeat after {total} packets; it takes {MAX_ROUND}"
        )));
    }
    let mut behind = vec![0; weights.len()];
    let mut next = || {
        for (behind, weight) in behind.iter_mut().zip(&weights) {
            *behind += weight;
        }
        // The first of the greatest: max_by_key would take the last.
        let (stream, most) = behind
            .iter_mut()
            .enumerate()
            .rev()
            .max_by_key(|(_, behind)| **behind)?;
        *most -= total;
        u8::try_from(stream).ok()
    };
    Ok((0..total).map_while(|_| next()).collect())
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(len: usize, weight: u32) -> LiveStream {
        LiveStream {
            frame: vec![7; len],
            weight,
            vars: Vec::new(),
            ip4_checksum_at: None,
            mark_at: None,
        }
    }

    fn plan(streams: Vec<LiveStream>) -> LivePlan {
        LivePlan {
            ifindex: 1,
            streams,
            packets: None,
            epoch: 0,
            burst: Duration::from_millis(1),
        }
    }

    fn var(at: u16, width: u8) -> Var {
        Var {
            at,
            width,
            op: Op::Inc,
            init: 1,
            min: 1,
            max: 9,
            step: 1,
        }
    }

    #[test]
    fn order_is_exact_and_even() {
        let order = order(&[stream(60, 28), stream(60, 16), stream(60, 4)]).expect("fits");
        assert_eq!(order, [0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0]);
        assert!(matches!(
            super::order(&[stream(60, 4096), stream(60, 1)]),
            Err(LiveError::DoesNotFit { .. })
        ));
    }

    #[test]
    fn written_part_is_as_small_as_the_changes_allow() {
        let mut one = stream(1514, 1);
        one.vars = vec![var(26, 4)];
        assert_eq!(check(&[plan(vec![one.clone()])]).expect("fits"), NARROW);
        one.vars.push(var(120, 4));
        assert_eq!(check(&[plan(vec![one.clone()])]).expect("fits"), WIDE);
        one.vars.push(var(121, 4));
        assert!(matches!(
            check(&[plan(vec![one])]),
            Err(LiveError::DoesNotFit { .. })
        ));
    }

    #[test]
    fn streams_may_differ_only_where_they_are_written() {
        let mut other = stream(600, 1);
        other.frame[123] = 8;
        assert_eq!(
            check(&[plan(vec![stream(700, 1), other.clone()])]).expect("fits"),
            WIDE
        );
        other.frame[124] = 8;
        let refused = check(&[plan(vec![stream(700, 1), other])]);
        assert!(matches!(refused, Err(LiveError::DoesNotFit { .. })));
    }

    #[test]
    fn headers_with_options_do_not_fit() {
        let with = |first: u8, vars: Vec<Var>| {
            let mut stream = stream(60, 1);
            stream.frame[14] = first;
            stream.ip4_checksum_at = Some(14);
            stream.vars = vars;
            check(&[plan(vec![stream])])
        };
        assert!(with(0x45, vec![var(13, 1), var(15, 1)]).is_ok());
        let refused = [
            with(0x46, Vec::new()),
            with(0x45, vec![var(13, 2)]),
            with(0x45, vec![var(14, 1)]),
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(LiveError::DoesNotFit { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn wrong_plans_are_refused() {
        let mut long = stream(60, 1);
        long.frame = vec![0; MAX_FRAME + 1];
        assert!(matches!(
            check(&[plan(vec![long])]),
            Err(LiveError::DoesNotFit { .. })
        ));
        assert!(matches!(check(&[plan(Vec::new())]), Err(LiveError::Xdp(_))));
        assert!(matches!(
            check(&[plan(vec![stream(60, 0)])]),
            Err(LiveError::Xdp(_))
        ));
        let bad = [
            Var {
                width: 3,
                ..var(20, 1)
            },
            Var {
                max: 256,
                ..var(20, 1)
            },
            Var {
                init: 0,
                ..var(20, 1)
            },
            Var {
                step: 0,
                ..var(20, 1)
            },
            Var {
                step: 10,
                ..var(20, 1)
            },
            var(59, 2),
        ];
        for var in bad {
            let stream = LiveStream {
                vars: vec![var.clone()],
                ..stream(60, 1)
            };
            assert!(check(&[plan(vec![stream])]).is_err(), "{var:?}");
        }
    }
}
