//! The sFlow agent: what a collector hears, and what `show sflow` says.

use std::net::UdpSocket;

use router::sflow::Counted;

use super::shown::ask;
use super::*;

/// A collector of the test's.
fn collector() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let port = socket.local_addr().expect("bound").port();
    (socket, port)
}

fn config(port: u16, more: &str, interfaces: &str) -> Config {
    let text = format!(
        "sflow: {{ collector: '127.0.0.1:{port}'{more} }}\n\
         interfaces: {{ e0: {{ sflow: true, addresses: [ 10.0.0.9/24, 10.0.0.10/24 ] }}{interfaces} }}"
    );
    Config::parse("test.yaml", &text).expect("valid")
}

/// Words of a datagram.
fn words(socket: &UdpSocket) -> Vec<u32> {
    let mut bytes = [0; 2048];
    let n = socket.recv(&mut bytes).expect("a datagram");
    let words = bytes[..n].as_chunks().0.iter();
    words.map(|word| u32::from_be_bytes(*word)).collect()
}

/// Lets the agent send what it has: the counters of each interval.
fn pass(lab: &mut Lab, seconds: u64) {
    lab.now += Duration::from_secs(seconds);
    lab.daemon.look_after_samples(lab.now);
    lab.now += Duration::from_secs(1);
    lab.daemon.look_after_samples(lab.now);
}

/// The start of every counter sample: its type, length, number, source, records, and the record's.
fn counters(datagram: &[u32]) -> Vec<[u32; 4]> {
    let samples = datagram[7..].chunks(2 + 27);
    samples
        .map(|sample| {
            assert_eq!(sample[0], 2, "counters_sample");
            assert_eq!(sample[1], 4 * 27);
            assert_eq!(sample[4..7], [1, 1, 88]);
            // ifIndex and ifType; ifStatus.
            assert_eq!((sample[7], sample[8]), (sample[3], 6));
            [sample[2], sample[3], sample[12], sample.len() as u32]
        })
        .collect()
}

#[test]
fn counters_are_sent_at_each_interval_from_the_lowest_address() {
    let (socket, port) = collector();
    let mut lab = Lab::start(&["e0", "e1"], config(port, ", polling-interval: 30", ""));
    pass(&mut lab, 0);
    let first = words(&socket);
    let [version, family, agent, sub_agent, sequence, _, samples] = first[..7] else {
        panic!("{first:?}");
    };
    assert_eq!(
        (version, family, sub_agent, sequence, samples),
        (5, 1, 0, 0, 1)
    );
    assert_eq!(agent, u32::from_be_bytes([10, 0, 0, 9]));
    let link = lab.daemon.links()["e0"];
    assert_eq!(counters(&first), [[1, link, 3, 29]], "up, and the first");

    // Another address, another interface, in place. The numbers go on.
    let two = config(
        port,
        ", polling-interval: 30, agent: 192.0.2.7, sampling-rate: 400",
        ", e1: { sflow: true }",
    );
    lab.become_this(&two).expect("it can be done");
    let second = words(&socket);
    pass(&mut lab, 30);
    let mut last = second;
    while last[2] != u32::from_be_bytes([192, 0, 2, 7]) || last[6] != 2 {
        last = words(&socket);
    }
    let of = |name: &str| lab.daemon.links()[name];
    let told = counters(&last);
    let (e0, e1) = (told[0], told[1]);
    assert_eq!((e0[1], e1[1]), (of("e0"), of("e1")));
    assert!(e0[0] > e1[0] && e1[0] >= 1, "{told:?}");

    let shown = ask(&mut lab, "show sflow");
    for line in [
        &format!("collector        127.0.0.1:{port}"),
        "agent            192.0.2.7",
        "sampling-rate    1 in 400",
        "polling-interval 30 s",
        " 0 failed",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let rows: Vec<_> = shown.lines().skip(7).collect();
    assert_eq!(rows.len(), 2, "{shown}");
    let none = Counted::default();
    assert_eq!(lab.daemon.routing.router.counted(1).lost, none.lost);
}

#[test]
fn nothing_is_sent_without_a_section_or_a_socket() {
    let mut lab = Lab::start(
        &["e0"],
        Config::parse("x", "interfaces: { e0: {} }").expect("valid"),
    );
    pass(&mut lab, 100);
    assert_eq!(ask(&mut lab, "show sflow"), "no packets are sampled\n");
    // Nobody listens there: the kernel says so, at the next datagram or the one after, or not at all.
    let (socket, port) = collector();
    drop(socket);
    lab.become_this(&config(port, "", ""))
        .expect("it can be done");
    pass(&mut lab, 20);
    assert!(ask(&mut lab, "show sflow").contains("1 in 10000"));
    let none = Config::parse("x", "interfaces: { e0: {} }").expect("valid");
    lab.become_this(&none).expect("it can be done");
    assert_eq!(ask(&mut lab, "show sflow"), "no packets are sampled\n");
}
