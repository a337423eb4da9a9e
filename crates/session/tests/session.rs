//! A session over ports in this process: its whole life, what it refuses, and what it counts.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use graph::{Pool, Port, pool};
use io::ring::Ring;
use loadgen::device::Count;
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::rate::Rate;
use loadgen::model::stream::Stream;
use loadgen::model::units::{Bits, Pps};
use session::{Error, Member, Session, Spec, State, StreamStatistics, Threads};
use testbed::{Directory, patience, until};

const ANN: &str = "ann";
const BOB: &str = "bob";

const LIMIT: Duration = Duration::from_secs(30);

/// Checks that a server of several clients can keep it in a thread of its own.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Session>();
};

/// Ports 0 and 1 at the ends of a wire, and ports 2 and 3 at those of another.
fn session() -> (Session, Arc<Pool>) {
    let pool = Pool::new(1 << 15, pool::STRIDE).expect("packet memory");
    let pairs = [["a", "b"], ["c", "d"]].map(|names| Ring::pair(names, 1 << 12).expect("a wire"));
    let ends = pairs.into_iter().flat_map(|(one, other)| [one, other]);
    let members = ends.enumerate().map(|(number, end)| Member {
        port: Box::new(end) as Box<dyn Port>,
        receiver: number ^ 1,
        line: Some(Bits(1e9)),
    });
    let session = Session::of(members.collect(), &pool).expect("a thread");
    (session, pool)
}

/// One that Ann has acquired.
fn of_ann() -> (Session, Arc<Pool>) {
    let (mut session, pool) = session();
    for port in 0..4 {
        session.acquire(port, ANN, false).expect("nobody has it");
    }
    (session, pool)
}

fn streams(name: &str, settings: &str) -> Vec<Stream> {
    let settings = Tunables::parse(settings).expect("settings");
    profile::open(name, Way::Out, &settings).expect("built in")
}

fn pps(rate: f64) -> Rate {
    Rate::Packets(Pps(rate))
}

fn sent(session: &Session, port: usize) -> u64 {
    session.statistics().ports[port].sent.packets
}

/// Awaits that a port has sent more.
fn goes_on(session: &Session, port: usize) {
    let before = sent(session, port);
    let more = until(patience(LIMIT), || sent(session, port) > before);
    assert!(more, "{:?}", session.statistics());
}

/// Awaits that all that was sent by `port` has come back; returns its streams.
fn adds_up(session: &Session, port: usize) -> Vec<StreamStatistics> {
    let rows = || {
        let rows = session.statistics().streams.into_iter();
        rows.filter(|row| row.port == port).collect::<Vec<_>>()
    };
    let all = until(patience(LIMIT), || {
        rows().iter().all(|row| row.sent == row.received)
    });
    assert!(all, "{:?}", session.statistics());
    rows()
}

#[test]
fn a_session_lives() {
    let (mut session, pool) = of_ann();
    let state = |session: &Session| session.statistics().ports[0].state;
    assert_eq!(state(&session), State::Idle);
    session
        .set_streams(0, ANN, streams("imix", ""))
        .expect("idle");
    assert_eq!(state(&session), State::Ready);
    session.start(0, ANN, pps(5000.0), None).expect("ready");
    goes_on(&session, 0);
    session
        .update(0, ANN, Rate::Percent(1.0))
        .expect("it sends");
    goes_on(&session, 0);
    session.pause(0, ANN).expect("it sends");
    let paused = sent(&session, 0);
    session.update(0, ANN, pps(20_000.0)).expect("it pauses");
    assert_eq!(
        (state(&session), sent(&session, 0)),
        (State::Paused, paused)
    );
    session.resume(0, ANN).expect("it pauses");
    assert_eq!(state(&session), State::Sending);
    goes_on(&session, 0);
    session.stop(0, ANN).expect("it sends");
    assert_eq!(state(&session), State::Ready);
    let end = sent(&session, 0);
    let rows = adds_up(&session, 0);
    assert_eq!(rows.len(), 3);
    session.release(0, ANN).expect("it is hers");
    let ports = session.statistics().ports;
    assert_eq!((ports[0].sent.packets, &ports[0].owner), (end, &None));
    assert_eq!(ports[1].received, ports[0].sent);
    drop(session);
    assert_eq!(pool.available(), pool.count(), "all packets are back");
}

#[test]
fn a_run_has_its_time_and_then_another() {
    let (mut session, _pool) = of_ann();
    session
        .set_streams(0, ANN, streams("bench", ""))
        .expect("idle");
    for _ in 0..2 {
        let before = sent(&session, 0);
        let time = Some(Duration::from_millis(50));
        session.start(0, ANN, pps(1000.0), time).expect("ready");
        let ready = || session.statistics().ports[0].state == State::Ready;
        assert!(until(patience(LIMIT), ready));
        let sent = sent(&session, 0) - before;
        // A thread that is held up gives packets up, but none comes on top.
        assert!((1..=50).contains(&sent), "{sent}");
    }
    adds_up(&session, 0);
}

/// Those of the far end of the same wire too, which go on counting meanwhile.
#[test]
fn streams_change_while_other_ports_send() {
    let (mut session, _pool) = of_ann();
    for port in [0, 2] {
        session
            .set_streams(port, ANN, streams("bench", "flow=fs"))
            .expect("idle");
        session
            .start(port, ANN, pps(10_000.0), None)
            .expect("ready");
    }
    for settings in ["", "size=imix,flow=fs", "size=128"] {
        for port in [1, 3] {
            session
                .set_streams(port, ANN, streams("bench", settings))
                .expect("ready");
            goes_on(&session, 0);
            session.start(port, ANN, pps(2000.0), None).expect("ready");
            goes_on(&session, port);
            session.stop(port, ANN).expect("it sends");
            adds_up(&session, port);
        }
        goes_on(&session, 2);
    }
    for port in [0, 2] {
        session.stop(port, ANN).expect("it sends");
        let rows = adds_up(&session, port);
        assert!(
            rows[0].sent.packets > 0 && rows[0].group == Some(7),
            "{rows:?}"
        );
    }
    let ports = session.statistics().ports;
    for (one, other) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        // Over all streams that the port ever had.
        assert_eq!(ports[one].sent, ports[other].received);
    }
}

#[test]
fn groups_and_latency_are_counted() {
    let (mut session, _pool) = of_ann();
    for (settings, together) in [("size=imix,flow=fs", 3), ("flow=fsl", 1)] {
        session
            .set_streams(2, ANN, streams("bench", settings))
            .expect("stopped");
        session
            .start(2, ANN, Rate::Multiplier(1.0), None)
            .expect("ready");
        goes_on(&session, 2);
        session.stop(2, ANN).expect("it sends");
        let rows = adds_up(&session, 2);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.names.len(), row.group), (together, Some(7)));
        let measured = row.flow.as_ref().map(|f| (f.latency.measured, f.missing));
        let latency = together == 1;
        assert_eq!(measured, latency.then_some((row.sent.packets, 0)));
    }
    // Set again, they begin at 0; the port goes on.
    let before = session.statistics().ports;
    session
        .set_streams(2, ANN, streams("bench", "flow=fsl"))
        .expect("ready");
    let after = session.statistics();
    assert_eq!(
        (after.ports[2].sent, after.ports[3].received),
        (before[2].sent, before[3].received)
    );
    let row = &after.streams[0];
    assert_eq!(
        (row.sent, row.received),
        (Count::default(), Count::default())
    );
    assert_eq!(row.flow, None, "nothing has been measured yet");
}

#[test]
fn a_port_has_one_owner() {
    let (mut session, _pool) = session();
    session.acquire(0, ANN, false).expect("nobody has it");
    session.acquire(0, ANN, false).expect("it is hers");
    session.acquire(1, BOB, false).expect("nobody has it");
    let refused = session.acquire(0, BOB, false);
    assert!(matches!(refused, Err(Error::Acquired { port: 0, owner }) if owner == ANN));
    session
        .set_streams(0, ANN, streams("bench", ""))
        .expect("idle");
    session.start(0, ANN, pps(1000.0), None).expect("ready");
    for refused in [
        session.set_streams(0, BOB, Vec::new()),
        session.start(0, BOB, pps(1.0), None),
        session.update(0, BOB, pps(1.0)),
        session.pause(0, BOB),
        session.resume(0, BOB),
        session.stop(0, BOB),
        session.release(0, BOB),
    ] {
        let why = refused.expect_err("it is Ann's");
        assert_eq!(why.to_string(), "port 0 is not bob's; acquire it first");
        assert!(matches!(why, Error::NotAcquired { port: 0, .. }));
    }
    session.acquire(0, BOB, true).expect("by force");
    goes_on(&session, 0);
    assert!(matches!(
        session.stop(0, ANN),
        Err(Error::NotAcquired { port: 0, .. })
    ));
    session.stop(0, BOB).expect("it is his");
    session.release(0, BOB).expect("it is his");
    session.acquire(0, ANN, false).expect("nobody has it");
}

#[test]
fn what_comes_at_the_wrong_time_is_refused() {
    let (mut session, _pool) = of_ann();
    let start = |session: &mut Session| session.start(0, ANN, pps(1000.0), None);
    assert!(matches!(start(&mut session), Err(Error::NoStreams(0))));
    session.stop(0, ANN).expect("it does not run");
    session
        .set_streams(0, ANN, streams("bench", ""))
        .expect("idle");
    assert!(matches!(
        session.update(0, ANN, pps(1.0)),
        Err(Error::NotRunning(0))
    ));
    assert!(matches!(session.pause(0, ANN), Err(Error::NotRunning(0))));
    assert!(matches!(session.resume(0, ANN), Err(Error::NotPaused(0))));
    for pauses in [false, true] {
        if pauses {
            session.pause(0, ANN).expect("it sends")
        } else {
            start(&mut session).expect("ready")
        }
        assert!(matches!(start(&mut session), Err(Error::Running(0))));
        let refused = session.set_streams(0, ANN, Vec::new());
        assert!(matches!(refused, Err(Error::Running(0))));
    }
    assert!(matches!(session.pause(0, ANN), Err(Error::NotRunning(0))));
    session.stop(0, ANN).expect("it pauses");
    session.set_streams(0, ANN, Vec::new()).expect("ready");
    assert!(matches!(start(&mut session), Err(Error::NoStreams(0))));
}

#[test]
fn what_cannot_be_is_refused() {
    let (mut session, pool) = of_ann();
    assert!(matches!(
        session.stop(4, ANN),
        Err(Error::NoPort { port: 4, ports: 4 })
    ));
    session
        .set_streams(0, ANN, streams("bench", ""))
        .expect("idle");
    let refused = session.start(0, ANN, Rate::Percent(200.0), None);
    assert!(matches!(refused, Err(Error::Rate { port: 0, .. })));
    assert_eq!(session.statistics().ports[0].state, State::Ready);
    let of = |receivers: [usize; 2]| {
        let (one, other) = Ring::pair(["a", "b"], 16).expect("a wire");
        let members = [one, other]
            .into_iter()
            .zip(receivers)
            .map(|(end, receiver)| Member {
                port: Box::new(end) as Box<dyn Port>,
                receiver,
                line: None,
            });
        Session::of(members.collect(), &pool)
    };
    assert!(matches!(of([1, 1]), Err(Error::OneReceiver(0, 1))));
    assert!(matches!(
        of([2, 0]),
        Err(Error::NoPort { port: 2, ports: 2 })
    ));
    let mut blind = of([1, 0]).expect("no line is known");
    blind.acquire(0, ANN, false).expect("nobody has it");
    let mut share = streams("bench", "");
    share[0].rate = loadgen::model::stream::StreamRate::Percent(10.0);
    assert!(matches!(
        blind.set_streams(0, ANN, share),
        Err(Error::NoLine(0))
    ));
}

/// Ports as they are written, each the receiver of the other.
fn open(specs: [String; 2], cores: u32, interrupted: bool) -> Result<Session, Error> {
    let members = specs.into_iter().enumerate().map(|(number, spec)| Member {
        port: spec.parse::<Spec>().expect("a port"),
        receiver: 1 - number,
        line: None,
    });
    let threads = Threads { cores, cpus: &[] };
    let caller = AtomicBool::new(interrupted);
    Session::open(&members.collect::<Vec<_>>(), threads, &caller)
}

#[test]
fn two_cores_send_by_memif_what_comes_back_whole() {
    let directory = Directory::new();
    let end = |role| format!("memif:{}/s,role={role}", directory.path().display());
    let mut session = open([end("server"), end("client")], 2, false).expect("connected");
    for (port, settings) in [(0, "size=imix,flow=fs"), (1, "vm=var2")] {
        session.acquire(port, ANN, false).expect("nobody has it");
        let streams = streams("bench", settings);
        session.set_streams(port, ANN, streams).expect("idle");
        session.start(port, ANN, pps(5000.0), None).expect("ready");
    }
    for port in [0, 1] {
        goes_on(&session, port);
        session.stop(port, ANN).expect("it sends");
        adds_up(&session, port);
    }
    let ports = session.statistics().ports;
    assert_eq!(
        (ports[0].sent, ports[1].sent),
        (ports[1].received, ports[0].received)
    );
}

#[test]
fn what_cannot_be_opened_is_named() {
    let directory = Directory::new();
    let end = |role| format!("memif:{}/s,role={role}", directory.path().display());
    for (specs, interrupted, what) in [
        (
            ["live:lo".into(), end("client")],
            false,
            "live:lo only sends",
        ),
        (
            ["sink:lo".into(), end("client")],
            false,
            "sink:lo only receives",
        ),
        (
            ["af_xdp:none".into(), end("client")],
            false,
            "there is no network device none",
        ),
        ([end("client"), end("client")], false, "is given twice"),
        (
            ["pcap:/nowhere/x".into(), end("client")],
            false,
            "/nowhere/x",
        ),
        (
            [end("server"), "pcap:/dev/null".into()],
            true,
            "interrupted",
        ),
    ] {
        let refused = open(specs, 1, interrupted).map(drop);
        let why = refused.expect_err("refused").to_string();
        assert!(why.contains(what), "{what}: {why}");
    }
}
