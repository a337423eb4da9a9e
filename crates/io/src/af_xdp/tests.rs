//! Over veth pairs, with the program that redirects everything to the sockets.

use std::time::{Duration, Instant};

use ::testbed::{alone, patience, root, until};
use graph::{Buffers, Frame};
use kernel::event::{poll, pollfd};

use super::*;
use crate::testbed::{bytes_of, frame_of, in_namespace, run};

/// One end of a veth pair with its program and ports.
struct End {
    ports: Vec<Queue>,
    interface: Interface,
    program: xdp::Receiver,
    bufs: Buffers,
}

impl End {
    fn new(name: &str, pool: &Arc<Pool>, mode: Mode) -> Self {
        // The kernel lets go of an earlier socket a moment after its end.
        let mut opened = Interface::open(name, None, mode, pool);
        until(patience(Duration::from_secs(10)), || {
            let busy = matches!(opened, Err(Error::Busy { .. }));
            if busy {
                opened = Interface::open(name, None, mode, pool);
            }
            !busy
        });
        let (interface, ports) = opened.expect("AF_XDP");
        let attach = if mode == Mode::Generic {
            xdp::Mode::Generic
        } else {
            xdp::Mode::Native
        };
        let index = netdev::index(name).expect("the interface");
        let program = xdp::Receiver::attach(index, &[attach]).expect("the program");
        let mut end = Self {
            ports,
            interface,
            program,
            bufs: Buffers::new(pool.clone()),
        };
        // The first call to receive gives the kernel its buffers: before anything comes, the
        // kernel's own packets too.
        assert!(end.receive().is_empty());
        let program = &end.program;
        end.interface
            .each_socket(|queue, fd| program.register(queue, fd))
            .expect("sockets in the map");
        end
    }

    fn send(&mut self, queue: usize, packets: &[Vec<u8>]) {
        let mut frame = frame_of(&mut self.bufs, packets);
        let sent = frame.send(&mut self.ports[queue], &mut self.bufs);
        assert_eq!(sent, packets.len());
        self.ports[queue].flush(&mut self.bufs);
    }

    /// Receives what waits on any queue.
    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut frame = Frame::default();
        for port in &mut self.ports {
            port.rx(&mut self.bufs, &mut frame);
            packets.extend(bytes_of(&mut self.bufs, &mut frame));
        }
        // The kernel's own (ND, MLD) are none of ours.
        packets.retain(|p| p[12..14] == [0x88, 0xb5]);
        packets
    }

    fn receive_all(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (mut got, start) = (Vec::new(), Instant::now());
        while got.len() < count {
            got.extend(self.receive());
            assert!(
                start.elapsed() < patience(Duration::from_secs(20)),
                "{} of {count} packets",
                got.len()
            );
        }
        got
    }

    fn close(mut self) {
        for port in &mut self.ports {
            port.drain(&mut self.bufs);
        }
    }
}

/// A packet for local experiments (ethertype 0x88b5).
fn packet(number: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![number; len];
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    bytes
}

/// In a new namespace, and alone on the machine: programs are attached.
fn isolated(name: &str, test: impl FnOnce() + Send + 'static) {
    if root(name) {
        let _alone = alone();
        in_namespace(name, test);
    }
}

fn veth(options: &str) {
    run(&format!(
        "ip link add va {options} type veth peer name vb {options}"
    ));
    for name in ["va", "vb"] {
        run(&format!("ip link set {name} up"));
    }
}

/// Both ends of the pair, and the pool that they use.
fn ends(mode: Mode) -> (Arc<Pool>, [End; 2]) {
    let pool = Pool::new(65536, 2048).expect("pool");
    let ends = ["va", "vb"].map(|name| End::new(name, &pool, mode));
    (pool, ends)
}

/// Packets go through a pair both ways, and every buffer comes back.
fn through(mode: Mode, lengths: &[usize]) {
    let (pool, [mut a, mut b]) = ends(mode);
    assert!(!a.interface.zero_copy(), "veth copies");
    let lacks = a.interface.lacks();
    let zero_copy = lacks.iter().any(|what| what.starts_with("zero-copy: "));
    // Only what was tried can be refused.
    assert_eq!(zero_copy, mode == Mode::Auto, "{lacks:?}");
    for round in 0..300usize {
        let (from, to) = if round % 2 == 0 {
            (&mut a, &mut b)
        } else {
            (&mut b, &mut a)
        };
        let sent: Vec<Vec<u8>> = lengths
            .iter()
            .map(|&len| packet(round as u8, len))
            .collect();
        let queue = round / 2 % from.ports.len();
        from.send(queue, &sent);
        let got = to.receive_all(sent.len());
        assert!(got == sent, "round {round}");
    }
    a.interface.refresh();
    let bad = |c: &(&str, u64)| c.1 != 0;
    assert!(
        !a.ports[0].counters().iter().any(|c| bad(&c)),
        "{:?}",
        a.ports[0].counters()
    );
    // The last ones sent are still to be reaped.
    a.ports.iter_mut().for_each(|p| p.flush(&mut a.bufs));
    a.close();
    b.close();
    assert_eq!(pool.available(), pool.count());
}

/// Linux gives a pair as many as there are processors, and uses one.
#[test]
fn a_veth_has_with_a_program_the_queues_that_it_has_without() {
    const NAME: &str = "a_veth_has_with_a_program_the_queues_that_it_has_without";
    if root(NAME) {
        in_namespace(NAME, || {
            run("ip link add va type veth peer name vb");
            assert_eq!(queues("va"), Some(1));
            assert_eq!(queues_with_program("va", 8), Some(1));
            assert_eq!(queues_with_program("vc", 8), None);
        });
    }
}

#[test]
fn packets_go_through_a_veth_pair() {
    isolated("packets_go_through_a_veth_pair", || {
        veth("");
        through(Mode::Auto, &[60, 61, 64, 100, 590, 1514]);
    });
}

/// A frame takes 256 of them: the others come with the next ones, and no buffer is lost.
#[test]
fn more_packets_wait_than_a_frame_holds() {
    isolated("more_packets_wait_than_a_frame_holds", || {
        veth("");
        let (pool, [mut a, mut b]) = ends(Mode::Auto);
        let burst: Vec<Vec<u8>> = (0..250).map(|number| packet(number, 60)).collect();
        for half in burst.chunks(125).cycle().take(8) {
            a.send(0, half);
            // The kernel delivers in its own time, drops what its ring of 256 has no room for, and
            // takes more from ours once it is asked again.
            for _ in 0..5 {
                std::thread::sleep(patience(Duration::from_millis(5)));
                a.ports[0].flush(&mut a.bufs);
            }
        }
        let got = b.receive_all(4 * burst.len());
        assert!(got.chunks(burst.len()).all(|got| got == burst));
        a.ports.iter_mut().for_each(|p| p.flush(&mut a.bufs));
        a.close();
        b.close();
        assert_eq!(pool.available(), pool.count());
    });
}

#[test]
fn generic_mode_works_too() {
    isolated("generic_mode_works_too", || {
        veth("");
        through(Mode::Generic, &[60, 61, 64, 100, 590, 1514]);
    });
}

#[test]
fn all_queues_are_served() {
    isolated("all_queues_are_served", || {
        veth("numrxqueues 4 numtxqueues 4");
        let pool = Pool::new(65536, 2048).expect("pool");
        let (interface, ports) = Interface::open("va", None, Mode::Copy, &pool).expect("AF_XDP");
        let mut queues = Vec::new();
        let each = interface.each_socket(|queue, _| {
            queues.push(queue);
            Ok::<(), ()>(())
        });
        assert!(each.is_ok());
        assert_eq!((ports.len(), queues), (4, vec![0, 1, 2, 3]));
        drop((interface, ports));
        through(Mode::Copy, &[60, 1514]);
    });
}

#[test]
fn long_packets_use_several_buffers() {
    isolated("long_packets_use_several_buffers", || {
        veth("mtu 9000");
        let pool = Pool::new(16384, 2048).expect("pool");
        let long = Interface::open("va", None, Mode::Auto, &pool)
            .expect("AF_XDP")
            .0
            .long_packets();
        assert_eq!(long, has_long_packets());
        if !long {
            println!(
                "SKIP long_packets_use_several_buffers: this kernel has no multi-buffer AF_XDP"
            );
            return;
        }
        through(Mode::Auto, &[60, 1792, 1793, 3000, 5000, 9014]);
    });
}

#[test]
fn what_cannot_be_is_said() {
    isolated("what_cannot_be_is_said", || {
        veth("");
        let pool = Pool::new(16384, 2048).expect("pool");
        let open = |name, mode| Interface::open(name, None, mode, &pool);
        assert!(matches!(
            open("nope", Mode::Auto),
            Err(Error::NoInterface(_))
        ));
        let forced = open("va", Mode::ZeroCopy);
        assert!(
            matches!(forced, Err(Error::Unavailable { .. })),
            "{forced:?}"
        );
        let first = open("va", Mode::Auto);
        assert!(first.is_ok());
        let second = open("va", Mode::Auto);
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        let odd = Pool::new(64, 2112).expect("pool");
        assert!(matches!(
            Interface::open("vb", None, Mode::Auto, &odd),
            Err(Error::Stride(2112))
        ));
    });
}

#[test]
fn an_interface_that_vanishes_is_noticed() {
    isolated("an_interface_that_vanishes_is_noticed", || {
        veth("");
        let pool = Pool::new(16384, 2048).expect("pool");
        let mut a = End::new("va", &pool, Mode::Auto);
        run("ip link set va down");
        a.send(0, &[packet(1, 60)]);
        assert!(!a.interface.gone(), "down is not away");
        run("ip link del va");
        a.send(0, &[packet(1, 60)]);
        a.ports[0].arm();
        assert!(a.interface.gone());
        a.send(0, &[packet(1, 60), packet(2, 60)]);
        let fd = a.ports[0].fd().expect("a descriptor");
        let mut wait = [pollfd(&fd, libc::POLLIN)];
        assert!(
            !poll(&mut wait, Some(Duration::from_millis(1))),
            "a dead port wakes nobody"
        );
        a.close();
        assert_eq!(pool.available(), pool.count());
    });
}

#[test]
fn what_is_sent_while_it_is_down_is_dropped() {
    isolated("what_is_sent_while_it_is_down_is_dropped", || {
        veth("");
        let (pool, [mut a, mut b]) = ends(Mode::Auto);
        run("ip link set va down");
        for number in 1..=20 {
            a.send(0, &vec![packet(number, 60); 5]);
        }
        let dropped = a.ports[0].counters();
        assert!(dropped.iter().any(|c| c == ("tx-down", 19 * 5)));
        run("ip link set va up");
        a.send(0, &[packet(99, 60)]);
        // The batch that found it down was with the kernel by then.
        let mut expected = vec![packet(1, 60); 5];
        expected.push(packet(99, 60));
        assert_eq!(b.receive_all(6), expected);
        a.close();
        b.close();
        assert_eq!(pool.available(), pool.count());
    });
}

#[test]
fn a_sleeping_worker_is_woken() {
    isolated("a_sleeping_worker_is_woken", || {
        veth("");
        let (_, [mut a, mut b]) = ends(Mode::Auto);
        let armed = until(patience(Duration::from_secs(20)), || {
            let armed = b.ports[0].arm();
            if !armed {
                b.receive();
            }
            armed
        });
        assert!(armed, "there is always something");
        let fd = b.ports[0].fd().expect("a descriptor");
        a.send(0, &[packet(1, 60)]);
        let mut wait = [pollfd(&fd, libc::POLLIN)];
        assert!(poll(&mut wait, Some(patience(Duration::from_secs(10)))));
        b.ports[0].disarm();
        assert_eq!(b.receive_all(1), [packet(1, 60)]);
        a.close();
        b.close();
    });
}

/// The kernel takes the call and sends nothing: it is counted.
#[test]
fn a_queue_that_only_receives_says_so() {
    isolated("a_queue_that_only_receives_says_so", || {
        veth("numrxqueues 2 numtxqueues 1");
        let (_, [mut a, mut b]) = ends(Mode::Auto);
        let unsent = |end: &End, queue: usize| {
            let counters = end.ports[queue].counters();
            counters
                .iter()
                .find(|(name, _)| *name == "tx-no-queue")
                .map(|(_, n)| n)
        };
        a.send(1, &[packet(1, 60)]);
        assert!(unsent(&a, 1) > Some(0));
        a.send(0, &[packet(2, 60)]);
        assert_eq!(unsent(&a, 0), Some(0));
        assert_eq!(b.receive_all(1), [packet(2, 60)]);
        a.close();
        b.close();
    });
}

#[test]
fn who_may_not_is_told_who_may() {
    let said = |errno| {
        let error = Error::Os {
            interface: "eth1".into(),
            doing: "opening an AF_XDP socket",
            source: io::Error::from_raw_os_error(errno),
        };
        error.to_string()
    };
    assert!(said(libc::EPERM).contains("run as root"));
    assert!(!said(libc::ENODEV).contains("root"));
}
