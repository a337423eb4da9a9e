use std::sync::Arc;
use std::time::{Duration, Instant};

use graph::{Pool, Port, pool};
use io::ring::Ring;
use loadgen::model::units::Bits;
use session::{Member, Session};
use trex::{Local, PortFacts};
use wire::eth::Mac;

use super::act::{Act, Next};
use super::prompt::Words;
use super::refused;
use super::split::split;

/// A console of two ports at the ends of a wire of 1 Gbit/s.
fn console() -> (Act, Arc<Pool>) {
    console_on(Some(Bits(1e9)))
}

/// A console of two ports at the ends of a wire whose rate is known or not.
fn console_on(line: Option<Bits>) -> (Act, Arc<Pool>) {
    let pool = Pool::new(1 << 14, pool::STRIDE).expect("packet memory");
    let (one, other) = Ring::pair(["a", "b"], 1 << 12).expect("a wire");
    let members = [one, other].into_iter().enumerate();
    let members = members.map(|(number, end)| Member {
        port: Box::new(end) as Box<dyn Port>,
        receiver: number ^ 1,
        line,
    });
    let session = Session::of(members.collect(), &pool).expect("a thread");
    let facts = [0, 1].map(|number| PortFacts {
        driver: "ring".into(),
        description: format!("wire {number}"),
        receiver: usize::from(number ^ 1),
        line,
        mac: Mac([2, 0, 0, 0, 0, number]),
        destination: Mac([2, 0, 0, 0, 0, number ^ 1]),
        takes_all: true,
        link: None,
    });
    let tester = Local::start(session, facts.to_vec()).expect("a thread");
    (Act::new(tester).expect("nobody has the ports"), pool)
}

fn does(act: &mut Act, line: &str) -> String {
    match act.line(line) {
        Ok(Next::Said(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(act: &mut Act, line: &str) -> String {
    act.line(line).expect_err(line)
}

/// The numbers of a port's row, from a column on.
fn numbers(text: &str, port: &str, from: usize) -> Vec<u64> {
    let row = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(port));
    let row = row.unwrap_or_else(|| panic!("no {port} in {text}"));
    let words = row.split_whitespace().skip(from);
    words.map(|word| word.parse().expect("a number")).collect()
}

fn until(mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_counts_what_it_sends() {
    let (mut act, _pool) = console();
    let line = "start -f udp_1pkt_simple -m 2kpps -p 0 -d 0.5";
    assert_eq!(does(&mut act, line), "started: port 0\n");
    assert!(act.runs() && act.runs_for_a_time());
    until(|| !act.runs());
    let all_came = |act: &mut Act| {
        let stats = does(act, "stats");
        let (sent, came) = (numbers(&stats, "0", 6), numbers(&stats, "1", 6));
        (sent[0] == came[1] && sent[2] == came[3]).then_some(sent[0])
    };
    let mut sent = None;
    until(|| {
        sent = all_came(&mut act);
        sent.is_some()
    });
    // The first one is due at once; what a busy machine is late with is given up.
    assert!((1..=1001).contains(&sent.expect("they came")), "{sent:?}");
    does(&mut act, "clear");
    assert_eq!(numbers(&does(&mut act, "stats -p"), "0", 6), [0; 4]);

    assert_eq!(
        does(&mut act, "start -f bench -t size=64,vm=var2 -m 1kpps"),
        "started: port 0, 1\n"
    );
    assert!(does(&mut act, "ports").contains("TX       console   wire 1"));
    assert!(does(&mut act, "streams -p 1").contains("Continuous"));
    let why = refused(&mut act, "start -f bench -m 5kpps");
    assert!(why.contains("port 0") && act.runs(), "{why}");
    does(&mut act, "start -f bench -m 5kpps --force");
    does(&mut act, "update -m 10%");
    does(&mut act, "update -m 1kpps+ -p 1");
    does(&mut act, "pause -p 0");
    assert!(does(&mut act, "ports").contains("PAUSE"));
    does(&mut act, "resume -p 0");
    does(&mut act, "quiet on");
    assert_eq!(does(&mut act, "stop"), "");
    assert!(!act.runs());
    until(|| all_came(&mut act).is_some());
    does(&mut act, "quiet off");
    assert_eq!(does(&mut act, "reset"), "reset: port 0, 1\n");
    assert!(does(&mut act, "ports").contains("IDLE"));
    assert!(does(&mut act, "history").contains("   4  "));
    assert_eq!(act.line("quit"), Ok(Next::Leave));
}

#[test]
fn packet_groups_and_latency_are_counted() {
    let (mut act, _pool) = console();
    let directory = std::env::temp_dir().join(format!("console-{}.json", std::process::id()));
    let stream = r#"[{"mode": {"type": "single_burst", "total_pkts": 50,
        "rate": {"type": "pps", "value": 1000}},
        "packet": {"binary": "AgAAAAAiAgAAAAARCABFAABCAAEAAEARjnTAAAIBxjNkAQu5AAkALgAAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHA="},
        "flow_stats": {"enabled": true, "stream_id": 9, "rule_type": "latency"}}]"#;
    std::fs::write(&directory, stream).expect("there is room");
    does(
        &mut act,
        &format!("start -f '{}' -p 0", directory.display()),
    );
    let _ = std::fs::remove_file(&directory);
    until(|| numbers(&does(&mut act, "stats -s"), "9", 1)[..2] == [50, 50]);
    let latency = does(&mut act, "stats -l");
    let row = latency.lines().nth(1).expect("a row");
    assert!(
        row.starts_with("9 ") && row.ends_with("0           0           0"),
        "{latency}"
    );
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let (mut act, _pool) = console();
    for word in refused::all() {
        let why = refused(&mut act, word);
        assert!(why.starts_with(&format!("`{word}`: ")), "{why}");
        assert_eq!(refused(&mut act, &format!("help {word}")), why);
    }
    for (line, why) in [
        ("fly", "unrecognized subcommand 'fly'"),
        ("start", "-f <FILE>"),
        ("start -f nowhere", "no such profile"),
        ("start -f bench -m fast", "-m: rate `fast`"),
        ("start -f bench -m 1kpps+", "not a change"),
        ("start -f bench -t hue=7", "hue"),
        ("start -f bench -d 0", "seconds"),
        ("start -f bench -p 2", "there is no port 2: there are 2"),
        ("start -f bench -m 200%", "port 0"),
        ("start -f bench --loud", "--loud"),
        ("start -f 'bench", "quote"),
        ("update -m 5%", "no port sends"),
        ("update -m -5%", "above 0"),
        ("start -f bench -m -5%", "above 0"),
        ("pause", "no port sends"),
        ("resume", "no port pauses"),
        ("stop", "no port sends or pauses"),
        ("stats -x", "ethtool"),
        ("stats -p -l", "cannot be used with"),
        ("quiet maybe", "maybe"),
        ("help fly", "no word `fly`"),
    ] {
        let said = refused(&mut act, line);
        assert!(said.contains(why), "{line}: {said}");
    }
    does(&mut act, "release -p 0");
    assert!(
        refused(&mut act, "stop -p 0").contains("acquire"),
        "it is nobody's"
    );
    does(&mut act, "release");
    assert!(refused(&mut act, "start -f bench").contains("no port is acquired"));
    does(&mut act, "acquire");
    assert!(does(&mut act, "portattr").contains("02:00:00:00:00:01"));
    does(&mut act, "portattr --prom on");
    for empty in ["", "  ", "# a comment"] {
        assert_eq!(does(&mut act, empty), "");
    }
    assert!(does(&mut act, "help").contains("portattr"));
    assert!(does(&mut act, "help start").contains("KEY=VALUE"));
}

#[test]
fn words_options_and_files_are_completed() {
    assert_eq!(Words::of("sta"), ["start", "stats"]);
    assert!(Words::of("start -").contains(&"--force".to_owned()));
    assert_eq!(Words::of("help por"), ["ports", "portattr"]);
    assert!(Words::of("start -f im").contains(&"imix".to_owned()));
    assert_eq!(Words::of("start -f src/li"), ["src/lib.rs"]);
    assert!(Words::of("fly ").is_empty());
}

#[test]
fn lines_are_split_as_a_shell_does() {
    let words = |line| split(line).expect("closed");
    assert_eq!(words(" a  'b c' d\"e f\"g # h"), ["a", "b c", "de fg"]);
    assert_eq!(words("a '' b#c"), ["a", "", "b#c"]);
    assert!(split("a 'b").is_err());
}

/// The highest rate is what the port takes, or what its line carries.
#[test]
fn max_is_a_rate_of_start_and_update() {
    for line in [None, Some(Bits(1e9))] {
        let (mut act, _pool) = console_on(line);
        does(&mut act, "start -f bench -m max");
        let why = refused(&mut act, "update -m max+");
        assert!(why.contains("not a change"), "{why}");
        if line.is_none() {
            let why = refused(&mut act, "update -m 1kpps+");
            assert!(why.contains("as fast as it can"), "{why}");
            assert!(does(&mut act, "stats").contains("TX"), "{line:?}");
        }
        let sent = |act: &mut Act| {
            let sent = numbers(&does(act, "stats -p"), "0", 6)[0];
            (sent > 0).then_some(sent)
        };
        until(|| sent(&mut act).is_some());
        does(&mut act, "update -m 1kpps");
        does(&mut act, "update -m 1kpps+");
        does(&mut act, "update -m max");
        does(&mut act, "pause");
        does(&mut act, "resume");
        does(&mut act, "stop");
    }
}

#[test]
fn without_ports_those_are_meant_that_it_is_about() {
    let (mut act, _pool) = console();
    does(&mut act, "start -f bench -m 1kpps -p 1");
    assert_eq!(does(&mut act, "update -m 2kpps"), "updated: port 1\n");
    assert_eq!(does(&mut act, "pause"), "paused: port 1\n");
    assert!(refused(&mut act, "update -m 1kpps").contains("no port sends"));
    does(&mut act, "start -f bench -m 1kpps -p 0");
    let why = refused(&mut act, "pause -p 0 1");
    assert_eq!(why, "port 1 is not sending; start it first");
    assert_eq!(act.state(0), "TX", "nothing is half done");
    assert_eq!(does(&mut act, "resume"), "resumed: port 1\n");
    assert_eq!(does(&mut act, "stop -p 0"), "stopped: port 0\n");
    assert_eq!(does(&mut act, "stop"), "stopped: port 1\n");
}
