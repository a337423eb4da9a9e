//! Common to several tests: frames of packets, a network namespace of their own.

use graph::{Buffers, Frame};

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

/// Runs `test` in a new network namespace, on a thread of its own. Says SKIP without root. The
/// namespace has no name: it goes with the thread and with what is inside.
pub fn in_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    if !::testbed::root(name) {
        return;
    }
    let run = move || {
        kernel::netns::enter_new().expect("root may");
        test();
    };
    if let Err(panic) = std::thread::spawn(run).join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a command in the calling thread's namespace.
pub fn run(command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    ::testbed::command::run(&words).unwrap_or_else(|e| panic!("{e}"));
}
