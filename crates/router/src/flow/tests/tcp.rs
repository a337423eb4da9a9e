use tables::flow::Annex;
use tables::random::Random;
use wire::tcp::{ACK, FIN, Header, PSH, RST, SYN};

use crate::flow::state::{Direction, State, Step, Timeouts, step};
use crate::flow::tcp::{Invalid, Midstream, Segment, Session, Verdict};
use Direction::{Original, Reply};

#[test]
fn states_of_protocols_without_states() {
    for (new, replied) in [
        (State::Udp, State::UdpReplied),
        (State::Icmp, State::IcmpReplied),
        (State::Other, State::OtherReplied),
    ] {
        assert_eq!(step(new, Original, 0), Step::To(new));
        assert_eq!(step(new, Reply, 0), Step::To(replied));
        assert_eq!(step(replied, Original, 0), Step::To(replied));
        assert_eq!(step(replied, Reply, 0), Step::To(replied));
        assert!(replied.is_established() && !new.is_established());
    }
    let mut timeouts = Timeouts::default();
    assert_eq!(timeouts.of(State::Established), 432_000);
    timeouts.set(State::Udp, 5);
    assert_eq!(
        (timeouts.of(State::Udp), timeouts.of(State::UdpReplied)),
        (5, 120)
    );
    assert!(
        State::ALL
            .iter()
            .enumerate()
            .all(|(n, state)| *state as usize == n)
    );
}

/// A connection from between its ends.
struct Between {
    annex: Annex,
    state: State,
}

fn segment(flags: u8, seq: u64, ack: u64) -> Segment {
    Segment {
        seq: seq as u32,
        ack: ack as u32,
        len: 0,
        window: 1000,
        flags,
        scale: None,
    }
}

fn data(seq: u64, ack: u64, len: u32) -> Segment {
    Segment {
        len,
        ..segment(PSH | ACK, seq, ack)
    }
}

/// First numbers, of which 32 bits count: those of the reply wrap early.
const A: u64 = 5000;
const B: u64 = (1 << 32) - 2;
/// The numbers behind the SYNs.
const A1: u64 = A + 1;
const B1: u64 = B + 1;

impl Between {
    fn open(first: Segment) -> Self {
        let mut annex = Annex::default();
        let state = Session::of_mut(&mut annex).open(&first, Midstream::Refused);
        let state = state.expect("it opens a connection");
        Between { annex, state }
    }

    fn judge(&mut self, direction: Direction, segment: Segment) -> Result<Verdict, Invalid> {
        let before = self.annex;
        let verdict = Session::of_mut(&mut self.annex).follow(self.state, direction, &segment);
        match verdict {
            Ok(Verdict::Pass(state)) => self.state = state,
            _ => assert_eq!(self.annex, before, "what may not pass changes nothing"),
        }
        verdict
    }

    fn pass(&mut self, direction: Direction, segment: Segment) -> State {
        match self.judge(direction, segment) {
            Ok(Verdict::Pass(state)) => state,
            other => panic!("{other:?} in {:?}: {direction:?} {segment:?}", self.state),
        }
    }

    fn refuse(&mut self, direction: Direction, segment: Segment) -> Invalid {
        self.judge(direction, segment).expect_err("invalid")
    }

    /// Each end may have 1000 bytes on the way.
    fn established() -> Self {
        let mut all = Between::open(segment(SYN, A, 0));
        assert_eq!(all.state, State::SynSent);
        assert_eq!(all.pass(Reply, segment(SYN | ACK, B, A1)), State::SynRecv);
        assert_eq!(all.pass(Original, segment(ACK, A1, B1)), State::Established);
        all
    }
}

#[test]
fn a_connection_from_its_first_segment_to_its_last() {
    let mut all = Between::established();
    assert_eq!(all.pass(Original, data(A1, B1, 1000)), State::Established);
    assert_eq!(
        all.pass(Reply, data(B1, A1 + 1000, 1000)),
        State::Established
    );
    assert_eq!(
        all.pass(Original, segment(FIN | ACK, A1 + 1000, B1 + 1000)),
        State::FinWait
    );
    assert_eq!(
        all.pass(Reply, segment(ACK, B1 + 1000, A1 + 1001)),
        State::CloseWait
    );
    // The other end goes on for a while.
    assert_eq!(
        all.pass(Reply, data(B1 + 1000, A1 + 1001, 10)),
        State::CloseWait
    );
    assert_eq!(
        all.pass(Original, segment(ACK, A1 + 1001, B1 + 1010)),
        State::CloseWait
    );
    let last = segment(FIN | ACK, B1 + 1010, A1 + 1001);
    assert_eq!(all.pass(Reply, last), State::LastAck);
    assert_eq!(
        all.pass(Original, segment(ACK, A1 + 1001, B1 + 1011)),
        State::TimeWait
    );
    // The last acknowledgment was lost: a late FIN, and it again.
    assert_eq!(all.pass(Reply, last), State::TimeWait);
    assert_eq!(
        all.pass(Original, segment(ACK, A1 + 1001, B1 + 1011)),
        State::TimeWait
    );
    // No FIN of anybody else.
    assert_eq!(
        all.refuse(Reply, segment(FIN | ACK, B1 + 50_000, A1 + 1001)),
        Invalid::Ahead
    );
}

#[test]
fn windows_bound_both_directions() {
    let mut all = Between::established();
    for (direction, seq, ack) in [(Original, A1, B1), (Reply, B1, A1)] {
        assert_eq!(all.refuse(direction, data(seq, ack, 1001)), Invalid::Ahead);
        assert_eq!(
            all.refuse(direction, data(seq + 1000, ack, 1)),
            Invalid::Ahead
        );
        assert_eq!(
            all.refuse(direction, data(seq, ack + 1001, 1)),
            Invalid::AckAhead
        );
        assert_eq!(
            all.refuse(direction, data(seq, ack.wrapping_sub(66_001), 1)),
            Invalid::AckBehind
        );
        let old = seq.wrapping_sub(1002);
        assert_eq!(all.refuse(direction, data(old, ack, 1)), Invalid::Behind);
        assert_eq!(
            all.pass(direction, data(seq, ack, 1000)),
            State::Established
        );
        // Again, and in parts.
        assert_eq!(all.pass(direction, data(seq, ack, 500)), State::Established);
        assert_eq!(
            all.pass(direction, data(seq + 500, ack, 500)),
            State::Established
        );
        // The window has not moved.
        assert_eq!(
            all.refuse(direction, data(seq + 1000, ack, 1)),
            Invalid::Ahead
        );
    }
    all.pass(Reply, segment(ACK, B1 + 1000, A1 + 400));
    all.pass(Original, data(A1 + 1000, B1, 400));
    assert_eq!(all.refuse(Original, data(A1 + 1400, B1, 1)), Invalid::Ahead);
}

#[test]
fn windows_are_scaled_if_both_syns_say_so() {
    let scaled = |flags, seq, ack, shift| Segment {
        scale: shift,
        ..segment(flags, seq, ack)
    };
    // Whether the reply may send this much after an acknowledgment with a window of 1000.
    let room = |original: Option<u8>, reply: Option<u8>| {
        let mut all = Between::open(scaled(SYN, A, 0, original));
        // The window of a SYN is never scaled.
        all.pass(Reply, scaled(SYN | ACK, B, A1, reply));
        assert_eq!(all.refuse(Reply, data(B1, A1, 1001)), Invalid::Ahead);
        all.pass(Original, segment(ACK, A1, B1));
        let fits = |len: &u32| {
            let mut session = *Session::of(&all.annex);
            session
                .follow(all.state, Reply, &data(B1, A1, *len))
                .is_ok()
        };
        [1000, 1001, 8000, 8001]
            .iter()
            .filter(|len| fits(len))
            .count()
    };
    assert_eq!(room(Some(3), Some(0)), 3, "8000 fit");
    assert_eq!(room(Some(0), Some(3)), 1, "1000 fit");
    assert_eq!(
        [room(Some(3), None), room(None, Some(3)), room(None, None)],
        [1; 3]
    );
}

#[test]
fn options_are_read_as_far_as_they_go() {
    let read = |flags: u8, options: &[u8]| {
        let mut bytes = Header::new(1, 2, flags, 7, 8).bytes().to_vec();
        bytes[12] = (5 + options.len() as u8 / 4) << 4;
        bytes.extend_from_slice(options);
        bytes.extend([0; 5]);
        Segment::read(&bytes).expect("a segment")
    };
    let all = [
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    let syn = read(SYN, &all);
    assert_eq!(
        (syn.scale, syn.len, syn.seq, syn.window),
        (Some(7), 5, 7, 65_535)
    );
    assert_eq!(read(ACK, &all).scale, None);
    assert_eq!(read(SYN, &[1, 3, 3, 15]).scale, Some(14));
    for wrong in [
        [0, 3, 3, 7],
        [2, 0, 3, 3],
        [2, 1, 3, 3],
        [5, 90, 3, 3],
        [1, 1, 3, 3],
    ] {
        assert_eq!(read(SYN, &wrong).scale, None, "{wrong:?}");
    }
    let header = Header::new(1, 2, SYN, 7, 8);
    for offset in [0, 4, 6, 15] {
        let mut bytes = *header.bytes();
        bytes[12] = offset << 4;
        assert_eq!(Segment::read(&bytes), None, "{offset} words");
    }
    assert_eq!(Segment::read(&header.bytes()[..19]), None);
}

#[test]
fn a_syn_is_repeated_and_another_one_is_a_new_connection() {
    let mut all = Between::open(segment(SYN, A, 0));
    assert_eq!(all.pass(Original, segment(SYN, A, 0)), State::SynSent);
    assert_eq!(
        all.judge(Original, segment(SYN, A + 9, 0)),
        Ok(Verdict::New)
    );
    all.pass(Reply, segment(SYN | ACK, B, A1));
    // The answer was lost behind here: both again.
    assert_eq!(all.pass(Original, segment(SYN, A, 0)), State::SynRecv);
    assert_eq!(all.pass(Reply, segment(SYN | ACK, B, A1)), State::SynRecv);
    assert_eq!(
        all.refuse(Original, segment(SYN, A + 50_000, 0)),
        Invalid::Ahead
    );
    all.pass(Original, segment(ACK, A1, B1));
    assert_eq!(
        all.pass(Reply, segment(SYN | ACK, B, A1)),
        State::Established
    );
    assert_eq!(
        all.refuse(Original, segment(SYN | ACK, A1, B1)),
        Invalid::State
    );
    assert_eq!(all.refuse(Reply, segment(SYN, B1, 0)), Invalid::State);

    all.state = State::TimeWait;
    assert_eq!(all.judge(Original, segment(SYN, 77, 0)), Ok(Verdict::New));
    assert_eq!(all.judge(Reply, segment(SYN, 77, 0)), Ok(Verdict::New));
}

#[test]
fn a_syn_is_answered_by_who_has_seen_it() {
    let mut all = Between::open(segment(SYN, A, 0));
    assert_eq!(
        all.refuse(Reply, segment(SYN | ACK, B, A)),
        Invalid::AckBehind
    );
    assert_eq!(
        all.refuse(Reply, segment(SYN | ACK, B, A1 + 1)),
        Invalid::AckAhead
    );
    assert_eq!(all.refuse(Reply, segment(ACK, B, A1)), Invalid::State);
    assert_eq!(all.refuse(Original, segment(ACK, A1, B1)), Invalid::State);
    all.pass(Reply, segment(SYN | ACK, B, A1));
    // Who has not seen the answer does not establish the connection.
    assert_eq!(
        all.refuse(Original, segment(ACK, A1, B)),
        Invalid::AckBehind
    );
    assert_eq!(
        all.refuse(Original, segment(ACK, A1, B1 + 1)),
        Invalid::AckAhead
    );
    assert_eq!(all.pass(Original, segment(ACK, A1, B1)), State::Established);

    // With data (RFC 7413): all of it is acknowledged, or only the SYN.
    for (ack, valid) in [
        (A1 - 1, false),
        (A1, true),
        (A1 + 100, true),
        (A1 + 101, false),
    ] {
        let mut all = Between::open(Segment {
            len: 100,
            ..segment(SYN, A, 0)
        });
        assert_eq!(
            all.judge(Reply, segment(SYN | ACK, B, ack)).is_ok(),
            valid,
            "{ack}"
        );
        if valid {
            assert_eq!(all.pass(Original, data(A1, B1, 100)), State::Established);
        }
    }
}

#[test]
fn both_ends_may_open_at_once() {
    let mut all = Between::open(segment(SYN, A, 0));
    assert_eq!(all.pass(Reply, segment(SYN, B, 0)), State::SynSent2);
    assert_eq!(all.pass(Original, segment(SYN, A, 0)), State::SynSent2);
    assert_eq!(
        all.refuse(Original, segment(SYN | ACK, A, B)),
        Invalid::AckBehind
    );
    assert_eq!(
        all.refuse(Reply, segment(SYN | ACK, B, A)),
        Invalid::AckBehind
    );
    assert_eq!(
        all.pass(Original, segment(SYN | ACK, A, B1)),
        State::SynRecv
    );
    assert_eq!(all.pass(Reply, segment(SYN | ACK, B, A1)), State::SynRecv);
    assert_eq!(all.pass(Reply, data(B1, A1, 1000)), State::SynRecv);
    assert_eq!(all.pass(Original, data(A1, B1, 1000)), State::Established);
}

#[test]
fn a_reset_has_numbers_too() {
    let mut all = Between::open(segment(SYN, A, 0));
    assert_eq!(all.refuse(Reply, segment(RST, 0, 0)), Invalid::AckBehind);
    assert_eq!(
        all.refuse(Reply, segment(RST | ACK, 0, A)),
        Invalid::AckBehind
    );
    assert_eq!(
        all.refuse(Reply, segment(RST | ACK, 0, A1 + 1)),
        Invalid::AckAhead
    );
    assert_eq!(all.pass(Reply, segment(RST | ACK, 0, A1)), State::Close);
    assert_eq!(
        all.judge(Original, segment(SYN, A + 7, 0)),
        Ok(Verdict::New)
    );

    let mut all = Between::open(segment(SYN, A, 0));
    assert_eq!(all.pass(Original, segment(RST, A1, 0)), State::Close);

    for direction in [Original, Reply] {
        let mut all = Between::established();
        let seq = if direction == Original { A1 } else { B1 };
        assert_eq!(
            all.refuse(direction, segment(RST, seq + 1001, 0)),
            Invalid::Ahead
        );
        assert_eq!(
            all.refuse(direction, segment(RST, seq.wrapping_sub(1002), 0)),
            Invalid::Behind
        );
        assert_eq!(all.pass(direction, segment(RST, seq, 0)), State::Close);
    }
}

#[test]
fn an_end_without_room_is_asked_for_more() {
    let mut all = Between::established();
    all.pass(Original, data(A1, B1, 1000));
    let none = Segment {
        window: 0,
        ..segment(ACK, B1, A1 + 1000)
    };
    all.pass(Reply, none);
    // A byte that asks for more; and before, one that keeps alive, with data or without.
    assert_eq!(all.refuse(Original, data(A1 + 1000, B1, 2)), Invalid::Ahead);
    all.pass(Original, data(A1 + 1000, B1, 1));
    all.pass(Reply, none);
    all.pass(Original, segment(ACK, A1 + 999, B1));
    all.pass(Original, data(A1 + 999, B1, 1));
    // Room again.
    all.pass(Reply, segment(ACK, B1, A1 + 1000));
    all.pass(Original, data(A1 + 1000, B1, 1000));

    // Who never had any.
    let mut all = Between::open(Segment {
        window: 0,
        ..segment(SYN, A, 0)
    });
    all.pass(Reply, segment(SYN | ACK, B, A1));
    all.pass(
        Original,
        Segment {
            window: 0,
            ..segment(ACK, A1, B1)
        },
    );
    assert_eq!(all.refuse(Reply, data(B1, A1, 2)), Invalid::Ahead);
    all.pass(Reply, data(B1, A1, 1));
    all.pass(Reply, segment(ACK, B, A1));
}

#[test]
fn flags_that_no_segment_has_are_refused_in_every_state() {
    let bad = [
        0,
        PSH,
        FIN,
        FIN | PSH,
        SYN | FIN,
        SYN | RST,
        SYN | FIN | ACK,
        RST | FIN,
        0x1f,
    ];
    for state in State::ALL.into_iter().filter(|state| *state < State::Udp) {
        for direction in [Original, Reply] {
            for flags in bad {
                assert_eq!(
                    step(state, direction, flags),
                    Step::BadFlags,
                    "{state:?} {flags:x}"
                );
            }
            // Congestion notification and urgent data are of no matter.
            assert_eq!(
                step(state, direction, ACK | 0xe0),
                step(state, direction, ACK)
            );
        }
    }
    let mut all = Between::established();
    assert_eq!(
        all.refuse(Original, segment(SYN | FIN, A1, B1)),
        Invalid::Flags
    );
}

#[test]
fn a_connection_is_picked_up_only_where_that_is_wanted() {
    let mut annex = Annex::default();
    let session = Session::of_mut(&mut annex);
    for (flags, why) in [
        (ACK, Invalid::State),
        (SYN | ACK, Invalid::State),
        (RST, Invalid::State),
        (FIN | ACK, Invalid::State),
        (SYN | FIN, Invalid::Flags),
    ] {
        assert_eq!(
            session.open(&segment(flags, A, B), Midstream::Refused),
            Err(why)
        );
    }
    assert_eq!(
        session.open(&segment(SYN | ACK, A, B), Midstream::PickedUp),
        Err(Invalid::State)
    );
    let state = session
        .open(&data(A1, B1, 100), Midstream::PickedUp)
        .unwrap();
    assert_eq!(state, State::Established);
    let mut all = Between { annex, state };
    all.pass(Reply, data(B1, A1 + 100, 100_000));
    all.pass(Original, data(A1 + 100, B1 + 100_000, 100_000));
    assert_eq!(
        all.refuse(Reply, data(B1 + (1 << 30) + 200_000, A1, 1)),
        Invalid::Ahead
    );
    assert_eq!(
        all.refuse(Reply, data(B1, A1 + 100_101, 1)),
        Invalid::AckAhead
    );
}

#[test]
fn packets_and_bytes_are_counted_beside_the_windows() {
    let mut all = Between::established();
    let session = Session::of_mut(&mut all.annex);
    session.count(Original, 60);
    session.count(Reply, 1500);
    session.count(Reply, 40);
    assert_eq!((session.packets, session.bytes), ([1, 2], [60, 1540]));
    assert_eq!(all.pass(Original, data(A1, B1, 1000)), State::Established);
    assert_eq!(Session::of(&Annex::default()).packets, [0, 0]);
}

/// A number near another one, or at the edge of a window from it.
fn near(random: &mut Random, of: u32, window: u32) -> u32 {
    let edges = [
        0,
        window,
        window.wrapping_neg(),
        66_000,
        66_000u32.wrapping_neg(),
    ];
    let edge = edges[random.below(5) as usize];
    let by = random.below(5).wrapping_sub(2);
    of.wrapping_add(edge).wrapping_add(by)
}

/// Two ends that have sent something, or one that has not, as words of an annex.
fn random_annex(random: &mut Random) -> Annex {
    let mut annex = Annex::default();
    for end in 0..2 {
        let sent = [random.word(), 5, 0u32.wrapping_sub(5)][random.below(3) as usize];
        let window = [0, 1, 1000, 66_000, 70_000, 1 << 30][random.below(6) as usize];
        let may_send = near(random, sent, window);
        let scale = [0, 1 << 7, 1 << 7 | 3, 1 << 7 | 14][random.below(4) as usize];
        annex.0[2 * end] = u64::from(may_send) << 32 | u64::from(sent);
        annex.0[2 * end + 1] = scale << 32 | u64::from(window);
    }
    annex
}

#[test]
fn the_short_way_is_that_of_the_rules() {
    let mut random = Random::new(1);
    let (mut short, mut refused) = (0, 0);
    for n in 0..2_000_000u32 {
        let tcp = State::ALL
            .map(|state| state.is_tcp())
            .iter()
            .filter(|is| **is)
            .count() as u32;
        let state = State::ALL[random.below(tcp) as usize];
        let direction = [Original, Reply][n as usize % 2];
        let annex = random_annex(&mut random);
        let [from, to] = [direction, direction.other()].map(|end| annex.0[2 * end as usize]);
        let window = |of: Direction| annex.0[2 * of as usize + 1] as u32;
        let flags = match random.below(3) {
            0 => random.word() as u8,
            1 => ACK,
            _ => PSH | ACK,
        };
        let len = [0, 0, 1, 1000][random.below(4) as usize];
        let base = [from as u32, (from >> 32) as u32][random.below(2) as usize];
        let segment = Segment {
            seq: near(&mut random, base, window(direction.other())).wrapping_sub(len),
            ack: near(&mut random, to as u32, window(direction)),
            len,
            window: [0, 1, 500, u16::MAX][random.below(4) as usize],
            flags,
            scale: None,
        };
        let mut by_rules = annex;
        let rules = Session::of_mut(&mut by_rules).follow(state, direction, &segment);
        let stays = rules == Ok(Verdict::Pass(state));
        let goes_on = Session::of(&annex).goes_on(state, direction, &segment);
        let what = format!("{state:?}, {direction:?}, {segment:?}, {annex:x?}: {rules:?}");
        if goes_on {
            let mut shortly = annex;
            Session::of_mut(&mut shortly).go_on(direction, &segment);
            assert!(stays && shortly == by_rules, "{what}");
            short += 1;
        }
        // What it leaves to the rules has other flags, or is at an end of the connection.
        let is_plain = flags & (SYN | ACK | RST | FIN) == ACK && window(direction) != 0;
        if is_plain && state != State::None && !state.is_opening() {
            assert_eq!(goes_on, stays, "{what}");
            refused += u32::from(!stays);
        }
    }
    assert!(short > 30_000 && refused > 100_000, "{short}, {refused}");
}

#[test]
fn the_short_way_changes_no_windows_of_other_protocols() {
    let segment = Segment::skim(&Header::new(1, 2, ACK, 3, 4), 8, false);
    let zeros = Segment {
        window: 0,
        ..self::segment(0, 0, 0)
    };
    assert_eq!(segment, (zeros, true));
    for state in State::ALL.into_iter().filter(|state| !state.is_tcp()) {
        for direction in [Original, Reply] {
            let mut annex = Annex::default();
            let session = Session::of_mut(&mut annex);
            let stays = step(state, direction, 0) == Step::To(state);
            assert_eq!(session.goes_on(state, direction, &zeros), stays);
            session.go_on(direction, &zeros);
            assert_eq!(annex, Annex::default());
        }
    }
}

#[test]
fn a_segment_that_is_skimmed_is_the_one_that_is_read() {
    let mut random = Random::new(1);
    let mut whole = 0;
    for _ in 0..100_000 {
        let bytes: Vec<u8> = (0..80).map(|_| random.word() as u8).collect();
        let len = random.below(81) as usize;
        let (header, _) = Header::parse(&bytes).expect("it is long enough");
        let (segment, is_whole) = Segment::skim(header, len as u32, true);
        let read = Segment::read(&bytes[..len]);
        assert_eq!(read.is_some(), is_whole);
        if let Some(read) = read {
            assert_eq!(
                segment,
                Segment {
                    scale: None,
                    ..read
                }
            );
            whole += 1;
        }
    }
    assert!(whole > 10_000, "{whole}");
}
