//! Numbers of interfaces: one allocator, and none is another interface's while a packet may carry
//! it.

use std::sync::mpsc::channel;

use crate::harness::*;

#[test]
fn a_number_is_given_again_only_after_a_grace_period() {
    let (finish, finished) = channel();
    let mut lab = Lab::with_grace(64, move || finished.recv().is_ok());
    let first = lab.router.allocate().expect("a number");
    let second = lab.router.allocate().expect("a number");
    assert!(first != 0 && second != 0 && first != second);
    assert_eq!(lab.router.release(first), Ok(0));
    lab.run();
    // The workers have gone on, a program may not have.
    let third = lab.router.allocate().expect("a number");
    assert!(third != first && third != second);
    finish.send(()).expect("the grace period is waited for");
    // Every one that is asked for is another one until it is over.
    while lab.router.allocate().expect("there are more than that") != first {
        lab.run();
    }
}

#[test]
fn all_numbers_can_be_had_and_no_more() {
    let mut lab = Lab::sized(1, 64);
    let mut all: Vec<_> = std::iter::from_fn(|| lab.router.allocate()).collect();
    all.sort_unstable();
    assert_eq!(all, (1..256).collect::<Vec<_>>());
    // Without workers the grace period is over at once: whoever needs the number waits for it.
    lab.workers.clear();
    assert_eq!(lab.router.release(7), Ok(0));
    assert_eq!(lab.router.allocate(), Some(7));
    assert_eq!(lab.router.allocate(), None);
    assert!(lab.router.release(0).is_err() && lab.router.release(256).is_err());
}
