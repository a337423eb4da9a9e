//! A port that only receives: everything goes to its sockets, and it takes next to no memory. Alone
//! in its program: the memory is the process's.

mod net;

use std::os::fd::AsFd;

use testbed::alone;
use xdp::{Mode, Receiver};

use net::{Listener, Pair, RIGHT_MAC, root, send, udp, xsk};

/// Bytes of kernel memory of the maps that this process has open, as the kernel sums them up.
fn memory_of_maps() -> u64 {
    let open = std::fs::read_dir("/proc/self/fdinfo").expect("lists descriptors");
    // The descriptor of the list itself is gone by now.
    let texts = open.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let maps = texts.filter(|text| text.contains("map_type:"));
    let bytes = maps.filter_map(|text| {
        let line = text.lines().find(|line| line.starts_with("memlock:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    bytes.sum()
}

#[test]
fn a_receiver_needs_sockets_but_no_tables() {
    if !root("a_receiver_needs_sockets_but_no_tables") {
        return;
    }
    let _alone = alone();
    let pair = Pair::new("receiver").expect("root makes it");
    pair.right(|ifindex| {
        let receiver = Receiver::attach(ifindex, &[Mode::Native]).expect("attaches");
        assert_eq!(receiver.attachment().mode(), Mode::Native);
        let bytes = memory_of_maps();
        assert!((1..256 << 10).contains(&bytes), "{bytes} bytes");
        let listener = Listener::new();
        let frame = |last| udp(RIGHT_MAC, [192, 0, 2, 1], [198, 51, 100, last], 60);
        let arrives = |last| {
            pair.left(|left| send(left, &frame(last)));
            listener.next(&RIGHT_MAC)
        };
        // Without a socket the kernel gets what comes.
        assert_eq!(arrives(1), Some(frame(1)));
        let socket = xsk();
        receiver.register(0, socket.as_fd()).expect("registers");
        assert!(receiver.register(256, socket.as_fd()).is_err());
        let other = std::io::stdin();
        assert!(receiver.register(1, other.as_fd()).is_err());
        drop(socket);
        assert_eq!(arrives(2), Some(frame(2)), "a socket that closes lets go");
    });
}
