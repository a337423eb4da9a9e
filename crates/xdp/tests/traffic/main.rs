//! The generator against the sink: what one sends, the other counts.

#[path = "../net/mod.rs"]
mod net;
mod pace;

use std::process::Command;
use std::time::Duration;

use testbed::veth::{self, End};
use testbed::{Alone, Netns, only, patience, until};
use wire::craft::Packet;
use wire::eth::Mac;
use xdp::{
    Live, LiveError, LivePlan, LiveStream, MAX_FRAME, Match, Op, Rate, Sink, StreamCount, Var,
};

use net::{Pair, RIGHT_MAC, udp};

const SRC: u32 = u32::from_be_bytes([16, 0, 0, 4]);
const DST: u32 = u32::from_be_bytes([48, 0, 0, 4]);
const ANY: (u128, u128) = (0, u128::MAX);

/// Longer than anything here takes.
fn limit() -> Duration {
    patience(Duration::from_secs(10))
}

/// Two namespaces with a veth pair, and the machine to ourselves; None where the test cannot run.
fn alone_with_pair(test: &str) -> Option<(Alone, Pair)> {
    if !testbed::root(test) {
        return None;
    }
    let alone = testbed::alone();
    Some((alone, Pair::new(test)?))
}

fn stream(len: usize, weight: u32) -> LiveStream {
    let frame = udp(RIGHT_MAC, SRC.to_be_bytes(), DST.to_be_bytes(), len);
    LiveStream {
        frame,
        weight,
        vars: Vec::new(),
        ip4_checksum_at: None,
        mark_at: None,
    }
}

fn plan(ifindex: u32, streams: Vec<LiveStream>) -> LivePlan {
    LivePlan {
        ifindex,
        streams,
        packets: None,
        epoch: 0,
        burst: Duration::from_millis(1),
    }
}

/// A generator of one interface.
fn generator(plan: LivePlan, cpu: Option<usize>) -> Live {
    let mut generators = Live::open(&[plan], cpu).expect("opens");
    generators.pop().expect("one")
}

fn of_length(len: usize) -> Match {
    Match {
        version: 4,
        length: (len - 14) as u16,
        protocol: 17,
        src: ANY,
        dst: ANY,
        sport: 1025,
        dport: 12,
        latency: false,
    }
}

fn address(at: u16, op: Op, min: u32, max: u32, step: u32) -> Var {
    Var {
        at,
        width: 4,
        op,
        init: if op == Op::Dec { max } else { min },
        min,
        max,
        step,
    }
}

/// Counts of the sink once it has as many packets as were sent, or does not get them.
fn settled(sink: &Sink, sent: u64) -> Vec<StreamCount> {
    let counts = || sink.counts().expect("counts");
    until(limit(), || {
        let packets: u64 = counts().iter().map(|count| count.packets).sum();
        packets + sink.other().expect("counts") >= sent
    });
    counts()
}

/// Waits until a generator has done something.
fn wait(live: &Live, what: &str, done: impl Fn(&Live) -> bool) {
    let done = until(limit(), || {
        live.check().expect("runs");
        done(live)
    });
    assert!(done, "{what}: due {}, sent {:?}", live.due(), live.sent());
}

/// Sends from the left end at a rate, lower where all is slow, until the schedule has asked for
/// `packets`.
fn send(pair: &Pair, streams: Vec<LiveStream>, pps: u32, packets: u64) -> xdp::LiveTotals {
    pair.left(|ifindex| {
        let live = generator(plan(ifindex, streams), None);
        let slowness = patience(Duration::from_secs(1)).as_secs() as u32;
        live.start(Rate::Pps(pps / slowness)).expect("starts");
        wait(&live, "the schedule goes on", |live| live.due() >= packets);
        live.stop().expect("stops")
    })
}

fn attach(pair: &Pair, matches: &[Match]) -> Sink {
    pair.right(|ifindex| Sink::attach(ifindex, matches, 0).expect("attaches"))
}

#[test]
fn imix_is_exact() {
    let Some((_alone, pair)) = alone_with_pair("imix") else {
        return;
    };
    let lengths = [64, 586, 1510];
    let sink = attach(&pair, &lengths.map(of_length));
    let streams = lengths
        .into_iter()
        .zip([28, 16, 4])
        .map(|(len, weight)| stream(len, weight))
        .collect();
    let totals = send(&pair, streams, 50_000, 50_000);
    let sent: u64 = totals.sent.iter().map(|count| count.packets).sum();
    let counts = settled(&sink, sent);
    assert_eq!(counts, totals.sent);
    for (i, len) in lengths.into_iter().enumerate() {
        assert_eq!(counts[i].bytes, counts[i].packets * len as u64);
    }
    // A round is seven, four and one; the last one may be unfinished.
    let rounds = sent / 12;
    for (count, weight) in counts.iter().zip([7, 4, 1]) {
        assert!(
            (rounds * weight..=(rounds + 1) * weight).contains(&count.packets),
            "{counts:?}"
        );
    }
    assert_eq!(sent + totals.shortfall, totals.due, "{totals:?}");
}

/// Every value of two variables comes equally often, in frames whose checksum the kernel accepts.
#[test]
fn variables_cover_their_range() {
    let Some((_alone, pair)) = alone_with_pair("vars") else {
        return;
    };
    // 20 sources of 25 addresses, so each row of the sink is one of them.
    let row = |i: u32| Match {
        src: ((SRC + i).into(), (SRC + i).into()),
        ..of_length(60)
    };
    let sink = attach(&pair, &(0..20).map(row).collect::<Vec<_>>());
    let mut varied = stream(60, 1);
    varied.vars = vec![
        address(26, Op::Inc, SRC, SRC + 24, 1),
        address(30, Op::Dec, DST, DST + 9, 3),
    ];
    varied.ip4_checksum_at = Some(14);
    let totals = send(&pair, vec![varied], 100_000, 20_000);
    let sent = totals.sent[0].packets;
    let counts = settled(&sink, sent);
    let rounds = sent / 25;
    for (i, count) in counts.iter().enumerate() {
        let extra = u64::from((i as u64) < sent % 25);
        assert_eq!(count.packets, rounds + extra, "source {i}");
    }
    let others: u64 = sent - counts.iter().map(|count| count.packets).sum::<u64>();
    assert_eq!(sink.other().expect("counts"), others);
}

/// IPv6 is counted by all of its addresses, and IPv4 beside it.
#[test]
fn ip6_is_counted() {
    let Some((_alone, pair)) = alone_with_pair("ip6_is_counted") else {
        return;
    };
    const NET: u128 = 0x2001_0db8 << 96;
    let source = NET | 1;
    // 5 rows for the first half of the destinations; a row each for what differs from them in the
    // first bit, in the bit before the second half, and in the version.
    let row = |destination: u128| Match {
        version: 6,
        length: 8 + 18,
        src: (source, source),
        dst: (destination, destination),
        ..of_length(60)
    };
    let mut rows: Vec<Match> = (0..5).map(|i| row(NET + i)).collect();
    rows.extend([row(NET | 1 << 127), row(NET | 1 << 64), of_length(60)]);
    let sink = attach(&pair, &rows);
    let stream6 = |destination: u128| {
        let frame = Packet::udp6((source, 1025), (destination, 12))
            .payload(&[0; 18])
            .macs(Mac([2; 6]), Mac(RIGHT_MAC))
            .frame();
        LiveStream {
            frame,
            ..stream(60, 1)
        }
    };
    let mut varied = stream6(NET);
    varied.vars = vec![address(50, Op::Inc, 0, 9, 1)];
    let streams = vec![
        varied,
        stream6(NET | 1 << 127),
        stream6(NET | 1 << 64),
        stream(60, 1),
    ];
    let totals = send(&pair, streams, 50_000, 20_000);
    let sent: Vec<u64> = totals.sent.iter().map(|count| count.packets).collect();
    let counts = settled(&sink, sent.iter().sum());
    let counts: Vec<u64> = counts.iter().map(|count| count.packets).collect();
    let (half, others) = counts.split_at(5);
    for (i, count) in half.iter().enumerate() {
        let extra = u64::from((i as u64) < sent[0] % 10);
        assert_eq!(*count, sent[0] / 10 + extra, "destination {i}");
    }
    assert_eq!(others, &sent[1..]);
    let rest = sent[0] - half.iter().sum::<u64>();
    assert_eq!(sink.other().expect("counts"), rest);
}

/// Packets behind one and two tags are counted as those without; behind three they are not looked for.
#[test]
fn tagged_packets_are_counted() {
    let Some((_alone, pair)) = alone_with_pair("tagged_packets_are_counted") else {
        return;
    };
    let lengths = [60, 70, 80, 90];
    let sink = attach(&pair, &lengths.map(of_length));
    const TAGS: [[u8; 4]; 3] = [[0x88, 0xa8, 0, 7], [0x81, 0, 0x20, 10], [0x81, 0, 0, 11]];
    let tagged = |(tags, len): (usize, usize)| {
        let mut stream = stream(len, 1);
        stream.frame.splice(12..12, TAGS[..tags].concat());
        stream
    };
    let streams = lengths
        .into_iter()
        .enumerate()
        .map(|(tags, len)| tagged((tags, len)));
    let totals = send(&pair, streams.collect(), 50_000, 20_000);
    let counts = settled(&sink, totals.sent.iter().map(|count| count.packets).sum());
    assert_eq!(counts[..3], totals.sent[..3]);
    assert_eq!(counts[3], StreamCount::default());
    assert_eq!(sink.other().expect("counts"), totals.sent[3].packets);
}

/// The frames as a host receives them: checksum right, fields in their ranges, the rest untouched.
#[test]
fn frames_are_right() {
    let Some((_alone, pair)) = alone_with_pair("frames") else {
        return;
    };
    let mut varied = stream(200, 1);
    varied.vars = vec![
        address(26, Op::Inc, SRC, SRC + 250, 7),
        Var {
            at: 36,
            width: 2,
            op: Op::Random(42),
            init: 1000,
            min: 1000,
            max: 1999,
            step: 1,
        },
        Var {
            at: 47,
            width: 1,
            op: Op::Dec,
            init: 3,
            min: 1,
            max: 5,
            step: 2,
        },
    ];
    varied.ip4_checksum_at = Some(14);
    let template = varied.frame.clone();
    let frames = pair.right(|_| net::Listener::new());
    // A sink without streams leaves everything to the kernel.
    let _sink = attach(&pair, &[]);
    send(&pair, vec![varied], 10_000, 1000);
    let mut expected = Expected {
        src: SRC,
        seed: 42,
        last: 3,
    };
    for n in 0..500 {
        let frame = frames
            .next(&RIGHT_MAC)
            .unwrap_or_else(|| panic!("frame {n} does not come"));
        let mut wanted = template.clone();
        expected.write(&mut wanted);
        assert_eq!(net::sum(&frame[14..34]), 0xffff, "checksum of frame {n}");
        assert_eq!(frame[..24], wanted[..24], "frame {n}");
        assert_eq!(frame[26..], wanted[26..], "frame {n}");
    }
}

/// An independent account of the three variables above.
struct Expected {
    src: u32,
    seed: u32,
    last: u8,
}

impl Expected {
    fn write(&mut self, frame: &mut [u8]) {
        frame[26..30].copy_from_slice(&self.src.to_be_bytes());
        self.src = SRC + (self.src - SRC + 7) % 251;
        self.seed = self.seed.wrapping_mul(214_013).wrapping_add(2_531_011);
        let port = 1000 + ((self.seed >> 16 & 0x7fff) % 1000) as u16;
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame[47] = self.last;
        // 3, 1, 4, 2, 5, 3 ...: down by two in a circle of five.
        self.last = 1 + (self.last - 1 + 3) % 5;
    }
}

/// Shows that packets which no stream claims reach the kernel.
#[test]
fn the_rest_passes() {
    let Some((_alone, pair)) = alone_with_pair("rest") else {
        return;
    };
    let sink = attach(&pair, &[of_length(60)]);
    let totals = send(&pair, vec![stream(61, 1)], 20_000, 100);
    let sent = totals.sent[0].packets;
    assert_eq!(settled(&sink, sent), [StreamCount::default()]);
    assert!(sink.other().expect("counts") >= sent);
}

/// A jumbo frame comes in several buffers, and all of them count.
#[test]
fn jumbo_frames_are_counted_whole() {
    let Some((_alone, pair)) = alone_with_pair("jumbo") else {
        return;
    };
    pair.set_mtu(9000);
    let sink = attach(&pair, &[of_length(9014)]);
    let frame = udp(RIGHT_MAC, SRC.to_be_bytes(), DST.to_be_bytes(), 9014);
    pair.left(|ifindex| (0..10).for_each(|_| net::send(ifindex, &frame)));
    let count = StreamCount {
        packets: 10,
        bytes: 90_140,
    };
    assert_eq!(settled(&sink, 10), [count]);
}

/// Fields deep in short and long frames, whose beginnings differ: what one stream writes, the next
/// overwrites.
#[test]
fn wide_and_mixed_frames() {
    let Some((_alone, pair)) = alone_with_pair("wide") else {
        return;
    };
    let mut short = stream(80, 1);
    short.frame[60..].fill(b'y');
    short.vars = vec![Var {
        at: 76,
        width: 4,
        op: Op::Inc,
        init: 9,
        min: 0,
        max: 9,
        step: 1,
    }];
    let mut long = stream(300, 1);
    long.frame[100..124].fill(b'z');
    long.vars = vec![Var {
        at: 122,
        width: 2,
        op: Op::Dec,
        init: 0,
        min: 0,
        max: 65535,
        step: 1,
    }];
    let tiny = stream(42, 1);
    let streams = vec![short, long, tiny];
    let templates = streams
        .iter()
        .map(|stream| stream.frame.clone())
        .collect::<Vec<_>>();
    let frames = pair.right(|_| net::Listener::new());
    let _sink = attach(&pair, &[]);
    send(&pair, streams, 10_000, 600);
    for n in 0..300u32 {
        let frame = frames
            .next(&RIGHT_MAC)
            .unwrap_or_else(|| panic!("frame {n} does not come"));
        let mut wanted = templates[n as usize % 3].clone();
        let turn = n / 3;
        match n % 3 {
            0 => wanted[76..80].copy_from_slice(&((turn + 9) % 10).to_be_bytes()),
            1 => wanted[122..124].copy_from_slice(&(0u16.wrapping_sub(turn as u16)).to_be_bytes()),
            _ => wanted.resize(60, 0),
        }
        assert_eq!(frame, wanted, "frame {n}");
    }
}

#[test]
fn longest_frame() {
    let Some((_alone, pair)) = alone_with_pair("longest") else {
        return;
    };
    pair.set_mtu(MAX_FRAME - 14);
    let sink = attach(&pair, &[of_length(MAX_FRAME)]);
    let totals = send(&pair, vec![stream(MAX_FRAME, 1)], 10_000, 500);
    assert_eq!(settled(&sink, totals.sent[0].packets), totals.sent);
}

/// The kernel knows the program for as long as the generator lives, not only while it sends; the
/// device that sees to that is not in sight.
#[test]
fn the_program_is_registered_from_open_to_drop() {
    let Some((_alone, pair)) = alone_with_pair("registered") else {
        return;
    };
    let _sink = attach(&pair, &[of_length(60)]);
    let links = || xdp::links().expect("lists");
    let ours = || links().into_iter().filter(|link| link.name == NAME);
    let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("is there");
    pair.left(|ifindex| {
        let before = interfaces().lines().count();
        let live = generator(plan(ifindex, vec![stream(60, 1)]), None);
        let link = ours().next().expect("is registered");
        live.start(Rate::Pps(1000)).expect("starts");
        live.stop().expect("stops");
        assert_eq!(ours().collect::<Vec<_>>(), [link]);
        assert_eq!(interfaces().lines().count(), before);
        drop(live);
        assert!(until(limit(), || ours().count() == 0));
    });
}

/// Name of the generator's program in the kernel.
const NAME: &str = "parshall_live";

/// Set for the child that [`nothing_is_left_of_a_killed_process`] kills: the interface to send out
/// of.
const HOLD: &str = "PARSHALL_TEST_HOLD_LIVE";

fn hold(ifindex: u32) -> ! {
    let live = generator(plan(ifindex, vec![stream(60, 1)]), None);
    live.start(Rate::Pps(1000)).expect("starts");
    println!("sending");
    loop {
        std::thread::park();
    }
}

#[test]
fn nothing_is_left_of_a_killed_process() {
    if let Ok(index) = std::env::var(HOLD) {
        hold(index.parse().expect("an index"));
    }
    let Some((_alone, pair)) = alone_with_pair("left") else {
        return;
    };
    let _sink = attach(&pair, &[of_length(60)]);
    let registered = || {
        let links = xdp::links().expect("lists");
        links.iter().any(|link| link.name == NAME)
    };
    pair.left(|ifindex| {
        let child = only("nothing_is_left_of_a_killed_process").env(HOLD, ifindex.to_string());
        let mut child = child.start().expect("starts");
        let sends = until(limit(), || child.log().contains("sending"));
        assert!(sends && registered(), "{}", child.log());
        child.kill();
        assert!(until(limit(), || !registered()));
    });
}

/// One end of a veth pair here, in which the sink counts, and one in a namespace of its own.
fn link(here: &Netns, name: &str) -> Netns {
    let there = Netns::create(name).expect("makes a namespace");
    let end = |netns, name, mac| End {
        netns,
        name,
        mac,
        address: None,
    };
    let ends = [
        end(here, name, "02:00:00:00:00:01"),
        end(&there, "far", "02:00:00:00:00:02"),
    ];
    veth::pair(ends[0], ends[1], 1500).expect("makes a pair");
    there
}

/// A run refers to no interface: its own can be deleted meanwhile, also by the end of the namespace
/// where its peer is, and the kernel goes on deleting other namespaces.
#[test]
fn interfaces_can_be_deleted_while_they_are_sent_to() {
    if !testbed::root("interfaces_can_be_deleted_while_they_are_sent_to") {
        return;
    }
    let _alone = testbed::alone();
    let here = Netns::create("live").expect("makes a namespace");
    let gone = |name: &str| until(limit(), || net::index(name) == 0);
    let sending = |name: &str| {
        let there = link(&here, name);
        let sink = there.inside(|| Sink::attach(net::index("far"), &[of_length(60)], 0));
        let live = here.inside(|| {
            let live = generator(plan(net::index(name), vec![stream(60, 1)]), None);
            live.start(Rate::Pps(1000)).expect("starts");
            live
        });
        (there, sink.expect("attaches"), live)
    };
    let (_there, _sink, live) = sending("one");
    here.inside(|| {
        let mut delete = Command::new("ip")
            .args(["link", "del", "one"])
            .spawn()
            .expect("starts");
        let ended = until(limit(), || delete.try_wait().expect("is ours").is_some());
        // It ends with the run if not before.
        drop(live);
        delete.wait().expect("is ours");
        assert!(ended, "the deletion waits for the run");
    });
    let (there, _sink, live) = sending("two");
    let other = link(&here, "three");
    here.inside(|| {
        drop(there);
        assert!(gone("two"));
        drop(other);
        assert!(gone("three"), "no namespace is deleted any more");
        live.check().expect("runs");
        live.stop().expect("stops");
    });
}

/// A veth whose peer would not take the frames is refused at the start, and so is what is not
/// there.
#[test]
fn refusals() {
    let Some((_alone, pair)) = alone_with_pair("refusals") else {
        return;
    };
    pair.left(|ifindex| {
        let plan = |ifindex| plan(ifindex, vec![stream(60, 1)]);
        assert!(matches!(
            Live::open(&[plan(9999)], None),
            Err(LiveError::Xdp(xdp::Error::NoInterface(9999)))
        ));
        match xdp::features(ifindex).expect("asks") {
            Some(features) if !features.transmit() => {
                assert!(matches!(
                    Live::open(&[plan(ifindex)], None),
                    Err(LiveError::DoesNotFit { .. })
                ));
            }
            _ => println!(
                "SKIP refusals: the kernel does not tell whether a device takes redirected frames"
            ),
        }
    });
    let _sink = attach(&pair, &[]);
    pair.left(|ifindex| {
        let plan = plan(ifindex, vec![stream(60, 1)]);
        assert!(matches!(
            Live::open(&[plan], Some(5000)),
            Err(LiveError::Run(_))
        ));
    });
}
