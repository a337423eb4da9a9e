//! A peer that takes its memory away, or brings too much of it.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use kernel::event::EventFd;

use super::peer::*;
use super::*;
use crate::memif::doorbell::Doorbell;
use crate::memif::link::{Link, LinkSlot};
use crate::memif::lost;
use crate::memif::message::Message;
use crate::memif::region::Region;
use crate::memif::ring::Slot;

/// Memory without a name, as `memfd_create` makes it with these flags; `None` where the kernel has
/// no huge pages.
fn memory(bytes: u64, flags: MemfdFlags) -> Option<OwnedFd> {
    let fd = memfd_create(c"peer", flags).ok()?;
    ftruncate(&fd, bytes).ok()?;
    Some(fd)
}

fn empty(memory: &OwnedFd) {
    assert_eq!(ftruncate(memory, 0), Ok(()));
}

/// Ends a connection by taking the memory away; the server is to say so and to live on.
fn take_away(flags: MemfdFlags, bytes: u64) {
    let memory = memory(bytes, flags).expect("memory");
    for idle in [false, true] {
        let (mut server, path) = server();
        let signal = EventFd::new().expect("eventfd");
        assert_eq!(ftruncate(&memory, bytes), Ok(()));
        let region = Region::map(&memory, bytes, &[]).expect("a mapping");
        let (peer, rings) = connect_with(&path, &region, &memory, &signal);
        until("the link", || server.up());
        rings[0].write(
            0,
            Slot {
                flags: 0,
                region: 0,
                length: 60,
                offset: 8192,
            },
        );
        rings[0].head().store(1, Ordering::Release);
        assert_eq!(server.receive(0).len(), 1);
        empty(&memory);
        if idle {
            // It looks before it lies down, and when it gets up.
            server.queues[0].arm();
            server.queues[0].disarm();
            assert!(server.receive(0).is_empty());
        } else {
            server.send(0, &[packet(1, 60)]);
        }
        server.receive(0);
        until("the end", || !server.up());
        assert_eq!(
            server.interface.status().reason,
            format!("evil: {}", lost::REASON)
        );
        drop((peer, rings, region));
        still_serves(&mut server, &path);
    }
}

/// Offers memory that is gone when its rings are looked at: the server is to refuse it and to live
/// on.
fn refused_for_want_of(memory: &OwnedFd, bytes: u64, take_away: impl FnOnce()) {
    let (mut server, path) = server();
    let peer = offer(&path, memory, bytes);
    take_away();
    assert!(refused(peer.say(&Message::Connect("x".into()), None)));
    assert_eq!(
        server.interface.status().reason,
        format!("evil: {}", lost::REASON)
    );
    still_serves(&mut server, &path);
}

#[test]
fn memory_that_is_cut_short_ends_the_connection() {
    // It needs no seals: those that cannot be sealed are as good.
    take_away(MemfdFlags::empty(), u64::from(BYTES));
    take_away(MemfdFlags::ALLOW_SEALING, u64::from(BYTES));
}

/// The loss is counted while the queue has no link; the link that it gets then is over the lost
/// memory.
#[test]
fn memory_that_is_lost_before_the_queue_has_its_link() {
    let doorbell = Arc::new(Doorbell::new().expect("AIO"));
    let control = Arc::new(EventFd::new().expect("eventfd"));
    let slot = Arc::new(LinkSlot::new(control, doorbell).expect("eventfd"));
    let mut queue = Queue::new("q".into(), slot.clone()).expect("epoll");
    let (mut bufs, mut frame) = (buffers(8), Frame::default());
    let (region, fd) = Region::create(4096).expect("memory");
    empty(&fd);
    let first = region.at(0, 1).expect("within");
    // SAFETY: one byte within the region.
    assert_eq!(unsafe { first.read_volatile() }, 0);
    assert!(region.is_lost());
    queue.rx(&mut bufs, &mut frame);
    let link = Link {
        role: Role::Server,
        regions: Arc::new([region]),
        rx: None,
        tx: None,
        buffer_size: 2048,
        stride: 2048,
    };
    slot.plug(Some(Arc::new(link)));
    queue.rx(&mut bufs, &mut frame);
    assert_eq!(slot.complaint(), Some(lost::REASON));
}

#[test]
fn memory_that_is_not_there_when_the_rings_are_looked_at() {
    let memory = memory(u64::from(BYTES), MemfdFlags::empty()).expect("memory");
    refused_for_want_of(&memory, BYTES.into(), || empty(&memory));
}

#[test]
fn huge_pages_that_go_away_end_the_connection() {
    const HUGE: u64 = 2 << 20;
    let Some(memory) = memory(HUGE, MemfdFlags::HUGETLB) else {
        println!("SKIP huge_pages_that_go_away_end_the_connection: the kernel has no huge pages");
        return;
    };
    let region = Region::map(&memory, HUGE, &[]).expect("a mapping");
    let first = region.at(0, 1).expect("within");
    // SAFETY: one byte within the region.
    unsafe { first.write_volatile(0) };
    if !region.is_lost() {
        drop((region, memory));
        return take_away(MemfdFlags::HUGETLB, HUGE);
    }
    // None is free, so it has gone away already.
    refused_for_want_of(&memory, HUGE, || ());
}

#[test]
fn more_memory_than_rings_need() {
    let (mut server, path) = server();
    let memory = memory(700 << 20, MemfdFlags::empty()).expect("memory");
    let add = |index| Message::AddRegion {
        index,
        size: 700 << 20,
    };
    let peer = Peer::new(&path);
    peer.init();
    let fd = Some(memory.as_fd());
    assert_eq!(peer.say(&add(0), fd), Some(Message::Ack));
    assert!(refused(peer.say(&add(1), fd)));
    still_serves(&mut server, &path);
}
