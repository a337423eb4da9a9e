//! Connections of a simple TCP, whose every packet must pass; and an attacker's, of which none may.

use std::collections::VecDeque;

use tables::random::Random;
use wire::tcp::{ACK, FIN, PSH, RST, SYN};

use crate::flow::state::{Direction, State};
use crate::flow::tcp::{Invalid, Midstream, Segment, Session, Verdict};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Listen,
    SynSent,
    SynRecv,
    Open,
}

/// One end: go-back-N, without options but the window scale.
#[derive(Debug)]
struct End {
    phase: Phase,
    /// Its first number; the first that is not acknowledged; the next one; behind the last one that
    /// was ever sent.
    first: u32,
    una: u32,
    next: u32,
    top: u32,
    /// Its FIN's number, behind all data.
    fin: u32,
    /// Behind the last one that the other end allows.
    edge: u32,
    /// The number that it expects.
    expected: u32,
    has_fin: bool,
    room: u32,
    unread: u32,
    scale: Option<u8>,
    others_scale: Option<u8>,
}

fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

fn later(a: u32, b: u32) -> u32 {
    if after(b, a) { b } else { a }
}

impl End {
    fn new(random: &mut Random, phase: Phase) -> Self {
        // Near the end of the numbers, mostly.
        let first = 0u32
            .wrapping_sub(random.below(100_000))
            .wrapping_add(random.below(2) << 17);
        let scale = (random.below(4) != 0).then(|| random.below(5) as u8);
        let most = 65_535 << scale.unwrap_or_default();
        let room = 1 + random.below(most);
        End {
            phase,
            first,
            una: first,
            next: first.wrapping_add(1),
            top: first.wrapping_add(1),
            fin: first.wrapping_add(1 + random.below(20 * room).min(200_000)),
            edge: first,
            expected: 0,
            has_fin: false,
            room,
            unread: 0,
            scale,
            others_scale: None,
        }
    }

    fn emit(&self, flags: u8, seq: u32, len: u32) -> Segment {
        let both = self.scale.is_some() && self.others_scale.is_some();
        let is_syn = flags & SYN != 0;
        let shift = if both && !is_syn {
            self.scale.unwrap_or_default()
        } else {
            0
        };
        let offers = is_syn && (flags & ACK == 0 || self.others_scale.is_some());
        Segment {
            seq,
            ack: if flags & ACK == 0 { 0 } else { self.expected },
            len,
            window: ((self.room - self.unread) >> shift).min(65_535) as u16,
            flags,
            scale: if offers { self.scale } else { None },
        }
    }

    fn acknowledge(&self) -> Segment {
        self.emit(ACK, self.top, 0)
    }

    /// Data or the FIN from the next number on, as far as the window goes.
    fn send(&mut self, random: &mut Random) -> Option<Segment> {
        let (seq, left) = (self.next, self.fin.wrapping_sub(self.next) as i32);
        let room = self.edge.wrapping_sub(seq) as i32;
        if left < 0 {
            return None;
        }
        let probes = room <= 0 && self.una == self.next && random.below(4) == 0;
        let room = if probes { 1 } else { room.max(0) as u32 };
        if room == 0 {
            return None;
        }
        let len = (left as u32).min(room).min(1 + random.below(1460));
        let is_last = len == left as u32 && len < room;
        self.next = seq.wrapping_add(len + u32::from(is_last));
        self.top = later(self.top, self.next);
        let flags = if is_last { FIN | ACK } else { PSH | ACK };
        (len > 0 || is_last).then(|| self.emit(flags, seq, len))
    }

    fn act(&mut self, random: &mut Random) -> Option<Segment> {
        match self.phase {
            Phase::Listen => return None,
            Phase::SynSent => return (random.below(8) == 0).then(|| self.emit(SYN, self.first, 0)),
            Phase::SynRecv => {
                let again = random.below(8) == 0;
                return again.then(|| self.emit(SYN | ACK, self.first, 0));
            }
            Phase::Open => {}
        }
        match random.below(20) {
            0 => {
                // Nothing has come back for a while.
                self.next = self.una;
                self.send(random)
            }
            1 => Some(self.acknowledge()),
            2 if self.una == self.top => Some(self.emit(ACK, self.top.wrapping_sub(1), 0)),
            3..6 => {
                self.unread -= random.below(self.unread + 1);
                Some(self.acknowledge())
            }
            _ => self.send(random),
        }
    }

    /// Takes what is for it; true if it is to be acknowledged.
    fn receive(&mut self, segment: &Segment) -> bool {
        let has = |flag: u8| segment.flags & flag != 0;
        let answers = has(ACK) && segment.ack == self.first.wrapping_add(1);
        match self.phase {
            Phase::Listen | Phase::SynSent if has(SYN) && (!has(ACK) || answers) => {
                self.expected = segment.seq.wrapping_add(1);
                self.others_scale = segment.scale;
                self.phase = if answers { Phase::Open } else { Phase::SynRecv };
            }
            Phase::Listen | Phase::SynSent => return false,
            Phase::SynRecv if answers || has(ACK) && after(segment.ack, self.first) => {
                self.phase = Phase::Open;
            }
            _ => {}
        }
        if has(ACK) && !after(segment.ack, self.top) && !after(self.una, segment.ack) {
            self.una = segment.ack;
            self.next = later(self.next, self.una);
            let both = self.scale.is_some() && self.others_scale.is_some();
            let shift = if both && !has(SYN) {
                self.others_scale.unwrap_or_default()
            } else {
                0
            };
            let edge = segment.ack.wrapping_add(u32::from(segment.window) << shift);
            self.edge = later(self.edge, edge);
        }
        let end = segment.seq.wrapping_add(segment.len);
        let is_next = !has(SYN) && !after(segment.seq, self.expected);
        if is_next && after(end, self.expected) {
            let taken = end.wrapping_sub(self.expected).min(self.room - self.unread);
            self.unread += taken;
            self.expected = self.expected.wrapping_add(taken);
        }
        if is_next && has(FIN) && end == self.expected && !self.has_fin {
            self.has_fin = true;
            self.expected = self.expected.wrapping_add(1);
        }
        has(SYN) || segment.len > 0 || has(FIN)
    }

    fn is_done(&self) -> bool {
        self.has_fin && self.una == self.fin.wrapping_add(1)
    }
}

/// Segments on a way at which its end waits.
const QUEUE: usize = 16;

/// A way that loses, repeats and reorders: what stands near the front may come first.
#[derive(Default)]
struct Way(VecDeque<Segment>);

impl Way {
    fn put(&mut self, segment: Segment, random: &mut Random) {
        let copies = match random.below(50) {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        (0..copies).for_each(|_| self.0.push_back(segment));
    }

    fn take(&mut self, random: &mut Random) -> Option<Segment> {
        let near = if random.below(10) == 0 { 4 } else { 1 };
        let at = random.below(near) as usize % self.0.len().max(1);
        self.0.remove(at)
    }
}

/// What stands between the ends, and what it has judged.
struct Between {
    session: Session,
    state: State,
    /// The end that the original direction comes from.
    original: usize,
    /// The highest acknowledgment of each end that came by.
    acknowledged: [u32; 2],
    passed: u32,
    old: u32,
    attacks: u32,
}

impl Between {
    fn direction(&self, from: usize) -> Direction {
        if from == self.original {
            Direction::Original
        } else {
            Direction::Reply
        }
    }

    /// True if the segment goes on.
    fn judge(&mut self, from: usize, segment: &Segment) -> bool {
        if self.state == State::None {
            self.original = from;
            self.state = self
                .session
                .open(segment, Midstream::Refused)
                .expect("it is a SYN");
            return true;
        }
        let direction = self.direction(from);
        match self.session.follow(self.state, direction, segment) {
            Ok(Verdict::Pass(state)) => {
                self.state = state;
                self.passed += 1;
                if segment.flags & ACK != 0 {
                    let acknowledged = &mut self.acknowledged[from];
                    *acknowledged = if *acknowledged == 0 {
                        segment.ack
                    } else {
                        later(*acknowledged, segment.ack)
                    };
                }
                true
            }
            // It came too late: the other end has it from another copy, and says so.
            Err(Invalid::Behind) => {
                let end = segment.seq.wrapping_add(segment.len);
                let acknowledged = self.acknowledged[1 - from];
                assert!(
                    !after(end, acknowledged),
                    "{segment:?} is not old: {:?}",
                    self.session
                );
                self.old += 1;
                false
            }
            other => panic!(
                "{other:?} in {:?}, {direction:?} {segment:?}, {:?}",
                self.state, self.session
            ),
        }
    }

    /// Segments of somebody who knows ports, but not the numbers: at least one is outside of what
    /// the ends could ever have sent.
    fn attack(&mut self, ends: &[End; 2], random: &mut Random) {
        let from = random.below(2) as usize;
        let (sender, receiver) = (&ends[from], &ends[1 - from]);
        let is_open = ends.iter().all(|end| end.phase == Phase::Open);
        if !is_open || self.state < State::Established || self.state == State::SynSent2 {
            return;
        }
        let most = ends
            .iter()
            .map(|end| end.room)
            .max()
            .unwrap_or_default()
            .max(66_000);
        let far = |random: &mut Random, of: u32| {
            let distance = if random.below(2) == 0 {
                2 * most + random.below(most)
            } else {
                2 * most + random.below(u32::MAX - 4 * most)
            };
            of.wrapping_add(if random.below(2) == 0 {
                distance
            } else {
                distance.wrapping_neg()
            })
        };
        let is_far = |number: u32, of: u32| {
            let distance = number.wrapping_sub(of);
            distance.min(distance.wrapping_neg()) >= 2 * most
        };
        let (seq, ack) = (far(random, sender.una), far(random, receiver.una));
        let flags = [ACK, PSH | ACK, RST, RST | ACK, FIN | ACK, SYN, SYN | ACK];
        let flags = flags[random.below(7) as usize];
        let good_ack = random.below(3) == 0 || flags & ACK == 0;
        let segment = Segment {
            seq: if !good_ack && random.below(3) == 0 {
                sender.next
            } else {
                seq
            },
            ack: if good_ack { sender.expected } else { ack },
            len: random.below(1460),
            window: random.word() as u16,
            flags,
            scale: None,
        };
        if !is_far(segment.seq, sender.una) && (good_ack || !is_far(segment.ack, receiver.una)) {
            return;
        }
        let mut session = self.session;
        let verdict = session.follow(self.state, self.direction(from), &segment);
        let passes = matches!(verdict, Ok(Verdict::Pass(_)));
        assert!(
            !passes,
            "{segment:?} passes in {:?}: {:?}",
            self.state, self.session
        );
        self.attacks += 1;
    }
}

/// A connection to its end: `None` if it does not come to one.
fn connection(seed: u64) -> Option<Between> {
    let random = &mut Random::new(seed);
    let both_open = random.below(5) == 0;
    let second = if both_open {
        Phase::SynSent
    } else {
        Phase::Listen
    };
    let mut ends = [End::new(random, Phase::SynSent), End::new(random, second)];
    let aborts = random.below(4) == 0;
    // From each end to the middle, and from there to the other one.
    let mut near: [Way; 2] = Default::default();
    let mut behind: [Way; 2] = Default::default();
    let mut between = Between {
        session: Session::default(),
        state: State::None,
        original: 0,
        acknowledged: [0; 2],
        passed: 0,
        old: 0,
        attacks: 0,
    };
    for _ in 0..400_000 {
        let from = random.below(2) as usize;
        match random.below(4) {
            0 => {
                if near[from].0.len() < QUEUE
                    && let Some(segment) = ends[from].act(random)
                {
                    near[from].put(segment, random);
                }
            }
            1 => {
                let segment = near[from].take(random);
                if let Some(segment) = segment.filter(|segment| between.judge(from, segment)) {
                    behind[from].put(segment, random);
                }
            }
            2 => {
                if let Some(segment) = behind[from].take(random)
                    && ends[1 - from].receive(&segment)
                    && random.below(4) != 0
                    && ends[1 - from].phase == Phase::Open
                {
                    near[1 - from].put(ends[1 - from].acknowledge(), random);
                }
            }
            _ => between.attack(&ends, random),
        }
        let is_open = ends.iter().all(|end| end.phase == Phase::Open);
        if aborts && is_open && between.state == State::Established && random.below(500) == 0 {
            let end = &ends[from];
            assert!(between.judge(from, &end.emit(RST | ACK, end.top, 0)));
            assert_eq!(between.state, State::Close);
            return Some(between);
        }
        if ends.iter().all(End::is_done) {
            let is_over = matches!(between.state, State::LastAck | State::TimeWait);
            assert!(is_over, "{:?}", between.state);
            return Some(between);
        }
    }
    None
}

#[test]
fn what_the_ends_send_passes_and_nothing_else() {
    let (mut passed, mut old, mut attacks) = (0, 0, 0);
    for seed in 0..400 {
        let between = connection(seed).unwrap_or_else(|| panic!("connection {seed} hangs"));
        passed += between.passed;
        old += between.old;
        attacks += between.attacks;
    }
    println!(
        "{passed} segments passed, {old} came too late, {attacks} of an attacker did not pass"
    );
    assert!(passed > 100_000 && attacks > 100_000);
    assert!(old < passed / 1000);
}
