//! The windows of a TCP connection, as they are seen from between its ends (Guido van Rooij, "Real
//! Stateful TCP Packet Filtering in IP Filter", 2001; RFC 9293, RFC 7323).
//!
//! An end may send what the other one's last acknowledgment and window allow, and acknowledge what
//! the other one has sent. Who does not see a connection's packets cannot guess numbers that are
//! within both. Numbers wrap: they are compared by their difference.

use tables::flow::Annex;
use wire::tcp::{ACK, FIN, Header, RST, SYN};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::state::{Direction, State, Step, stays, step};

/// What a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of its first byte.
    pub seq: u32,
    /// The number that it acknowledges, if its flags say so.
    pub ack: u32,
    /// Bytes of data.
    pub len: u32,
    /// Window before scaling.
    pub window: u16,
    /// As in the header.
    pub flags: u8,
    /// In a SYN: bits that the windows of the sender are shifted by, 14 at most.
    pub scale: Option<u8>,
}

/// Most bits of a window scale (RFC 7323 section 2.3).
const MOST_SCALE: u8 = 14;

impl Segment {
    /// Reads a segment from its header on; `None` if it ends within its header, or that is too
    /// short.
    #[inline(always)]
    pub fn read(content: &[u8]) -> Option<Segment> {
        let (header, _) = Header::parse(content)?;
        let options = content.get(wire::tcp::LEN..header.header_len())?;
        let is_syn = header.flags & SYN != 0;
        Some(Segment {
            seq: header.seq(),
            ack: header.ack(),
            len: (content.len() - header.header_len()) as u32,
            window: header.window(),
            flags: header.flags,
            scale: if is_syn { scale(options) } else { None },
        })
    }

    /// As [`Segment::read`], of what may be no TCP at all: that is read as nothing but zeros. Its
    /// header is followed by `len - 20` bytes, options among them. Without a branch, and without the
    /// options, which only a SYN needs. The second value: it does not end within its header.
    #[inline(always)]
    pub fn skim(header: &Header, len: u32, is_tcp: bool) -> (Segment, bool) {
        let mask = u32::from(is_tcp).wrapping_neg();
        let header_len = header.header_len() as u32;
        let is_whole = (header_len >= wire::tcp::LEN as u32) & (header_len <= len);
        let segment = Segment {
            seq: header.seq() & mask,
            ack: header.ack() & mask,
            len: len.wrapping_sub(header_len) & mask,
            window: header.window() & mask as u16,
            flags: header.flags & mask as u8,
            scale: None,
        };
        (segment, is_whole | !is_tcp)
    }

    const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The number behind its last one: SYN and FIN have one each.
    #[inline(always)]
    fn end(&self) -> u32 {
        let flags = u32::from(self.flags);
        let numbers = self
            .len
            .wrapping_add(flags >> 1 & 1)
            .wrapping_add(flags & 1);
        self.seq.wrapping_add(numbers)
    }
}

/// The window scale option.
fn scale(mut options: &[u8]) -> Option<u8> {
    loop {
        options = match options {
            [3, 3, shift, ..] => return Some((*shift).min(MOST_SCALE)),
            [1, rest @ ..] => rest,
            [2..=255, length @ 2..=255, ..] => options.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct End {
    /// Behind the last number that it has sent.
    sent: u32,
    /// Behind the last one that it may send. While its SYN has not been acknowledged, in
    /// [`State::SynSent`]: behind that.
    may_send: u32,
    /// The largest window that it has offered, scaled; 0: it has sent nothing.
    window: u32,
    /// [`SCALES`] and its scale.
    scale: u8,
    unused: [u8; 3],
}

/// The end's SYN had a scale.
const SCALES: u8 = 1 << 7;

/// Acknowledgments may lag behind by this in any case: van Rooij's 66000 is a little more than the
/// largest window without scaling.
const LEAST_LAG: u32 = 66_000;

/// What is kept of a connection in its [`Annex`]: windows of TCP, and counters of any protocol.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Session {
    /// By [`Direction`] that they send in.
    ends: [End; 2],
    /// Packets, by [`Direction`].
    pub packets: [u64; 2],
    /// Bytes from the IP header on, by [`Direction`].
    pub bytes: [u64; 2],
}

const _: () = assert!(size_of::<Session>() == size_of::<Annex>());

/// What a segment that may pass does to its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The connection is in this state now.
    Pass(State),
    /// The segment opens another connection; this one is over. It is to be judged as a first one.
    New,
}

/// Why a segment may not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invalid {
    /// Flags that no segment has together.
    Flags,
    /// It does not belong to a connection in its state.
    State,
    /// Data behind what the other end has allowed.
    Ahead,
    /// Data that was acknowledged long ago.
    Behind,
    /// It acknowledges what was not sent.
    AckAhead,
    /// It acknowledges what was acknowledged long ago; or, in answer to a SYN, not this one.
    AckBehind,
}

/// What to do with a connection whose beginning was not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Midstream {
    /// Its packets do not pass.
    #[default]
    Refused,
    /// An acknowledgment in any direction picks it up. Scales are not known: windows are taken to
    /// be as large as can be.
    PickedUp,
}

/// True if `a` is before `b` or the same.
#[inline(always)]
const fn is_upto(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) as i32 >= 0
}

/// The later one.
#[inline(always)]
const fn later(a: u32, b: u32) -> u32 {
    if is_upto(a, b) { b } else { a }
}

impl Session {
    /// That in an annex, where a new flow has zeros.
    #[inline(always)]
    pub fn of(annex: &Annex) -> &Session {
        zerocopy::transmute_ref!(&annex.0)
    }

    /// The same, to be changed.
    #[inline(always)]
    pub fn of_mut(annex: &mut Annex) -> &mut Session {
        zerocopy::transmute_mut!(&mut annex.0)
    }

    /// Counts a packet of so many bytes.
    #[inline(always)]
    pub fn count(&mut self, direction: Direction, bytes: u32) {
        self.packets[direction as usize] += 1;
        self.bytes[direction as usize] += u64::from(bytes);
    }

    /// The first segment of a connection, of which nothing is known: it gives the original
    /// direction. The windows begin with it, whatever was there.
    ///
    /// # Errors
    /// [`Invalid::Flags`] and [`Invalid::State`].
    pub fn open(&mut self, segment: &Segment, midstream: Midstream) -> Result<State, Invalid> {
        let state = match step(State::None, Direction::Original, segment.flags) {
            Step::To(state) => state,
            Step::BadFlags => return Err(Invalid::Flags),
            Step::New | Step::OutOfState => return Err(Invalid::State),
        };
        if state == State::SynSent {
            self.ends = [first(segment), End::default()];
            return Ok(state);
        }
        if midstream == Midstream::Refused {
            return Err(Invalid::State);
        }
        let largest = u32::from(u16::MAX) << MOST_SCALE;
        let end = |sent: u32| End {
            sent,
            may_send: sent.wrapping_add(largest),
            window: largest,
            scale: SCALES | MOST_SCALE,
            unused: [0; 3],
        };
        self.ends = [end(segment.end()), end(segment.ack)];
        Ok(state)
    }

    /// True if [`Session::follow`] would let a segment pass and its connection be in the same state,
    /// for those that most are: acknowledgments, with data or without, when both ends have
    /// acknowledged each other. Also true of what is no TCP, as [`Segment::skim`] reads it, and
    /// leaves its flow in its state. No branch depends on the packet.
    #[inline(always)]
    pub fn goes_on(&self, state: State, direction: Direction, segment: &Segment) -> bool {
        let from = &self.ends[direction as usize];
        let to = &self.ends[direction.other() as usize];
        let lowest_ack = to.sent.wrapping_sub(from.window.max(LEAST_LAG));
        let oldest = from.sent.wrapping_sub(to.window.wrapping_add(1));
        let plain = u8::from(state.is_tcp()) * ACK;
        // Of what is no TCP, all numbers are 0.
        (segment.flags & (SYN | ACK | RST | FIN) == plain)
            & stays(state, direction, segment.flags)
            & !state.is_opening()
            & ((from.window != 0) | !state.is_tcp())
            & is_upto(segment.ack, to.sent)
            & is_upto(lowest_ack, segment.ack)
            & is_upto(segment.end(), from.may_send)
            & is_upto(oldest, segment.seq)
    }

    /// A segment of which [`Session::goes_on`] says so has passed.
    #[inline(always)]
    pub fn go_on(&mut self, direction: Direction, segment: &Segment) {
        let mut from = self.ends[direction as usize];
        let mut to = self.ends[direction.other() as usize];
        from.pass(segment, &mut to);
        self.ends[direction as usize] = from;
        self.ends[direction.other() as usize] = to;
    }

    /// A further segment of a connection in this state. What may not pass changes nothing.
    ///
    /// # Errors
    /// Why it may not pass.
    #[inline(always)]
    pub fn follow(
        &mut self,
        state: State,
        direction: Direction,
        segment: &Segment,
    ) -> Result<Verdict, Invalid> {
        let next = match step(state, direction, segment.flags) {
            Step::To(next) => next,
            Step::New => return Ok(Verdict::New),
            Step::BadFlags => return Err(Invalid::Flags),
            Step::OutOfState => return Err(Invalid::State),
        };
        let mut from = self.ends[direction as usize];
        let mut to = self.ends[direction.other() as usize];
        if segment.has(SYN) && direction == Direction::Original && state == State::SynSent {
            // The same SYN again, or another one: the first has come to nothing.
            let is_same = segment.seq.wrapping_add(1) == from.may_send;
            return Ok(if is_same {
                Verdict::Pass(state)
            } else {
                Verdict::New
            });
        }
        let is_first = from.window == 0;
        if is_first && segment.has(SYN) {
            from = first(segment);
            // Before its SYN is acknowledged, it may send what the other one's had room for.
            from.may_send = from.may_send.wrapping_add(to.window);
        }
        check(state, direction, segment, &from, &to)?;
        from.pass(segment, &mut to);
        self.ends[direction as usize] = from;
        self.ends[direction.other() as usize] = to;
        Ok(Verdict::Pass(next))
    }
}

/// An end that has sent its SYN.
fn first(syn: &Segment) -> End {
    End {
        sent: syn.end(),
        may_send: syn.seq.wrapping_add(1),
        window: u32::from(syn.window).max(1),
        scale: syn.scale.map_or(0, |scale| SCALES | scale),
        unused: [0; 3],
    }
}

/// The four bounds of a segment.
#[inline(always)]
fn check(
    state: State,
    direction: Direction,
    segment: &Segment,
    from: &End,
    to: &End,
) -> Result<(), Invalid> {
    if segment.has(ACK) {
        let is_opening = matches!(state, State::SynSent | State::SynSent2 | State::SynRecv);
        let lowest = match (state, direction) {
            _ if !is_opening => to.sent.wrapping_sub(from.window.max(LEAST_LAG)),
            // Only a SYN, and what came with it: the numbers that answer it are few.
            (_, Direction::Original) => to.may_send.wrapping_sub(from.window),
            (State::SynRecv, Direction::Reply) => to.sent.wrapping_sub(LEAST_LAG),
            (_, Direction::Reply) => to.may_send,
        };
        if !is_upto(segment.ack, to.sent) {
            return Err(Invalid::AckAhead);
        }
        if !is_upto(lowest, segment.ack) {
            return Err(Invalid::AckBehind);
        }
    }
    if from.window == 0 {
        // It answers a SYN by a RST: what that acknowledges is all there is to see.
        let is_answer = segment.has(ACK);
        return if is_answer {
            Ok(())
        } else {
            Err(Invalid::AckBehind)
        };
    }
    if !is_upto(segment.end(), from.may_send) {
        return Err(Invalid::Ahead);
    }
    // With a whole window on the way, the number before it keeps alive, or asks for more.
    let oldest = from.sent.wrapping_sub(to.window.wrapping_add(1));
    if !is_upto(oldest, segment.seq) {
        return Err(Invalid::Behind);
    }
    Ok(())
}

impl End {
    /// Bits that its windows are shifted by: none if either SYN had no scale.
    #[inline(always)]
    const fn shift(&self, other: &End) -> u32 {
        let both = self.scale & other.scale & SCALES != 0;
        if both {
            (self.scale & !SCALES) as u32
        } else {
            0
        }
    }

    /// It has sent this segment to the other one.
    #[inline(always)]
    fn pass(&mut self, segment: &Segment, to: &mut End) {
        self.sent = later(self.sent, segment.end());
        // The window of a SYN is not scaled.
        let shift = if segment.has(SYN) { 0 } else { self.shift(to) };
        let window = u32::from(segment.window) << shift;
        self.window = self.window.max(window);
        let allowed = later(to.may_send, segment.ack.wrapping_add(window.max(1)));
        to.may_send = if segment.has(ACK) {
            allowed
        } else {
            to.may_send
        };
    }
}
