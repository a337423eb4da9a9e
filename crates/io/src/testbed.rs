//! What several tests need: frames of packets, a network namespace of their own.
#![allow(unsafe_code)]

use graph::{Buffers, Frame};
use std::process::Command;

/// These packets, in a frame.
pub fn frame_of(bufs: &mut Buffers, packets: &[Vec<u8>]) -> Frame {
    let mut frame = Frame::default();
    for packet in packets {
        let d = bufs.copy_in(packet).expect("buffers");
        frame.push(d).expect("room in the frame");
    }
    frame
}

/// Takes the packets out of a frame.
pub fn bytes_of(bufs: &mut Buffers, frame: &mut Frame) -> Vec<Vec<u8>> {
    let take = |d| {
        let bytes = bufs.pool().to_vec(&d);
        bufs.free(d);
        bytes
    };
    frame.drain().map(take).collect()
}

/// Runs `test` in a new network namespace, on a thread of its own. Without the right to make one it says SKIP.
pub fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    let enter = || {
        // SAFETY: only the calling thread, which ends with the test, changes its namespace.
        unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
    };
    let run = move || {
        let entered = enter();
        if entered {
            test();
        }
        entered
    };
    match std::thread::spawn(run).join() {
        Ok(true) => (),
        Ok(false) => println!("SKIP {name}: needs root (a network namespace)"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs a command in the calling thread's namespace.
pub fn run(command: &str) {
    let mut words = command.split_whitespace();
    let program = words.next().expect("a program");
    let output = Command::new(program)
        .args(words)
        .output()
        .expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
}
