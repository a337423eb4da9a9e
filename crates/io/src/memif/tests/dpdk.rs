//! DPDK's net_memif as the peer: testpmd swaps the addresses of what we send and sends it back.

use ::testbed::{Process, Spawn, cleanup, root_with};

use super::*;

const TESTPMD: &str = "dpdk-testpmd";

/// Starts a testpmd.
fn start(role: &str, socket: &str, queues: u16) -> Process {
    let vdev = format!(
        "--vdev=net_memif0,role={role},id=0,socket={socket},socket-abstract=no,bsize=2048,rsize=10"
    );
    let run = cleanup::directory().display().to_string();
    Spawn::new(TESTPMD)
        // Where it makes a directory of its own, which stays when it is killed.
        .env("RUNTIME_DIRECTORY", run)
        .args([
            "--lcores",
            "0@0-1,1@0-1",
            "--no-huge",
            "--no-pci",
            "--no-shconf",
        ])
        .args(["-m", "128", &format!("--file-prefix={role}{queues}"), &vdev])
        // With a period for statistics it runs until it is killed; without, until its standard
        // input ends.
        .args([
            "--",
            "--forward-mode=macswap",
            "--auto-start",
            "--stats-period=3600",
        ])
        .args(["--total-num-mbufs=4096", "--nb-cores=1", "--no-flush-rx"])
        .args([format!("--rxq={queues}"), format!("--txq={queues}")])
        .start()
        .expect("testpmd starts")
}

fn swapped(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    bytes[..6].copy_from_slice(&packet[6..12]);
    bytes[6..12].copy_from_slice(&packet[..6]);
    bytes
}

/// Sends batches on every queue and compares what comes back.
fn exchange(ours: Role, queues: u16) {
    if !root_with(&format!("memif with DPDK, we are the {ours}"), &[TESTPMD]) {
        return;
    }
    let path = path();
    let theirs = if ours == Role::Server {
        "client"
    } else {
        "server"
    };
    let mut end = End::new(Config {
        queues,
        ..Config::new("dpdk-test", &path, ours)
    });
    if ours == Role::Server {
        until("the listener", || Path::new(&*path).exists());
    }
    let testpmd = start(theirs, &path, queues);
    until("DPDK", || end.up());
    assert_eq!(end.interface.status().rings, (queues, queues));
    assert!(
        end.interface.status().peer.starts_with("DPDK"),
        "{:?}",
        end.interface.status()
    );
    let lengths = [
        60, 61, 64, 65, 127, 128, 590, 1514, 1790, 2048, 2049, 4000, 9000,
    ];
    for queue in 0..usize::from(queues) {
        for round in 0..100u32 {
            let sent: Vec<Vec<u8>> = lengths.iter().map(|&len| packet(round, len)).collect();
            until("room", || end.send_some(queue, &sent));
            let mut got = Vec::new();
            until("the echo", || {
                got.extend(end.receive(queue));
                got.len() >= sent.len()
            });
            let want: Vec<Vec<u8>> = sent.iter().map(|p| swapped(p)).collect();
            assert!(got == want, "round {round} on queue {queue}");
        }
        assert_eq!(end.counter(queue, "peer-fault"), 0);
        assert_eq!(end.counter(queue, "rx-bad-packet"), 0);
    }
    assert_eq!(missing(&end.bufs), 0);
    assert!(end.up());
    drop(testpmd);
    until("DPDK's end", || !end.up());
}

#[test]
fn dpdk_as_the_client() {
    exchange(Role::Server, 1);
}

#[test]
fn dpdk_as_the_server() {
    exchange(Role::Client, 1);
}

#[test]
fn dpdk_with_two_queues() {
    exchange(Role::Server, 2);
    exchange(Role::Client, 2);
}
