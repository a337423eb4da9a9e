//! Real TCP through the router, both ways, with the MTU changed while it runs.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::harness::topology::{CONFIGURATION, HOST, HOST6};
use crate::harness::{Hosts, Netns, Router, lacks_multi_buffer, patience, skipped, until};

/// Bytes in each direction, in chunks.
const CHUNK: usize = 64 * 1024;
const CHUNKS: usize = 400;

/// The byte at a place in the stream; not periodic in powers of two, so that a shifted segment is
/// seen.
fn byte(place: usize) -> u8 {
    (place % 251) as u8
}

/// Time limit of a whole transfer; single reads and writes have the usual one.
fn whole() -> Duration {
    4 * patience()
}

fn send(stream: &mut TcpStream, mut at: impl FnMut(usize)) {
    let end = Instant::now() + whole();
    for chunk in 0..CHUNKS {
        assert!(Instant::now() < end, "{chunk} chunks of {CHUNKS} are sent");
        at(chunk);
        let bytes: Vec<u8> = (chunk * CHUNK..(chunk + 1) * CHUNK).map(byte).collect();
        stream.write_all(&bytes).expect("the connection lives");
    }
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("the connection lives");
}

fn receive(stream: &mut TcpStream) -> usize {
    let (mut place, mut buffer) = (0, vec![0; CHUNK]);
    let end = Instant::now() + whole();
    loop {
        assert!(Instant::now() < end, "{place} bytes have come");
        let length = stream.read(&mut buffer).expect("the connection lives");
        if length == 0 {
            return place;
        }
        for (i, got) in buffer[..length].iter().enumerate() {
            assert_eq!(*got, byte(place + i), "byte {} of the stream", place + i);
        }
        place += length;
    }
}

/// The first client that comes.
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("it can");
    let mut client = None;
    until(patience(), || {
        client = listener.accept().ok();
        client.is_some()
    });
    let (stream, _) = client.expect("a client comes in time");
    stream.set_nonblocking(false).expect("it can");
    stream
}

/// One connection from `client` to `server`; both send and receive everything. `at` is called
/// before each chunk.
pub fn exchange(
    server: &Netns,
    address: impl Into<IpAddr>,
    client: &Netns,
    at: impl FnMut(usize) + Send,
) {
    let address = address.into();
    let listener = server.inside(|| TcpListener::bind((address, 5001)).expect("a free port"));
    let both = |mut stream: TcpStream, at: &mut (dyn FnMut(usize) + Send)| {
        for limit in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
            limit(&stream, Some(patience())).expect("a timeout above zero");
        }
        let mut other = stream.try_clone().expect("a descriptor");
        std::thread::scope(|scope| {
            let received = scope.spawn(move || receive(&mut other));
            send(&mut stream, at);
            received.join().expect("what came is what was sent")
        })
    };
    std::thread::scope(|scope| {
        let served = scope.spawn(|| both(accept(&listener), &mut |_| {}));
        let mut at = at;
        let stream = client.inside(|| {
            TcpStream::connect_timeout(&SocketAddr::from((address, 5001)), patience())
                .expect("the server answers")
        });
        assert_eq!(both(stream, &mut at), CHUNK * CHUNKS);
        assert_eq!(served.join().expect("the server's side"), CHUNK * CHUNKS);
    });
}

/// Makes the link on the right narrower. A link drops what is longer than its receiver's MTU, so
/// both its ends change. The left host knows nothing of it: it learns by ICMP.
fn narrow(hosts: &Hosts) {
    for (netns, end) in [(&hosts.right, "h1"), (&hosts.router, "r1")] {
        let to = format!("link set {end} mtu 1300");
        netns.ip(&to).expect("a smaller MTU");
    }
}

#[test]
fn tcp_survives_a_smaller_mtu() {
    if skipped("tcp_survives_a_smaller_mtu", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    let _router = Router::start(&hosts.router, CONFIGURATION);
    exchange(&hosts.right, HOST[1], &hosts.left, |chunk| {
        if chunk == CHUNKS / 2 {
            narrow(&hosts);
        }
    });
    exchange(&hosts.left, HOST[0], &hosts.right, |_| {});
}

#[test]
fn tcp_over_ip6_survives_a_smaller_mtu() {
    if skipped("tcp_over_ip6_survives_a_smaller_mtu", &["ip", "ethtool"]) {
        return;
    }
    let hosts = Hosts::new(1500, true);
    hosts.speak_ip6();
    let router = Router::start(&hosts.router, CONFIGURATION);
    exchange(&hosts.right, HOST6[1], &hosts.left, |chunk| {
        if chunk == CHUNKS / 2 {
            narrow(&hosts);
        }
    });
    exchange(&hosts.left, HOST6[0], &hosts.right, |_| {});
    // The kernel would have done it, too.
    let shown = router.show(&["interface", "r1"]);
    let sent = shown["interfaces"][0]["tx_packets"].as_u64();
    let least = (CHUNK * CHUNKS / 1500) as u64;
    assert!(sent.is_some_and(|sent| sent > least), "{shown}");
}

#[test]
fn tcp_with_jumbo_frames() {
    let name = "tcp_with_jumbo_frames";
    if skipped(name, &["ip", "ethtool"]) || lacks_multi_buffer(name) {
        return;
    }
    let hosts = Hosts::new(9000, true);
    hosts.speak_ip6();
    let _router = Router::start(&hosts.router, CONFIGURATION);
    exchange(&hosts.right, HOST[1], &hosts.left, |_| {});
    exchange(&hosts.right, HOST6[1], &hosts.left, |_| {});
}
