//! Packets in one buffer and in several: built, copied, cut and taken apart without loss.

use graph::pool::STRIDE;
use graph::{Buffers, Desc, Flag, Pkt, Pool};

#[test]
fn chains_are_built_cut_and_taken_apart_without_loss() {
    let pool = Pool::new(64, STRIDE).unwrap();
    let mut bufs = Buffers::new(pool.clone());
    let room = usize::from(pool.room());
    for length in [1, room, room + 1, 2 * room, 3 * room + 5, 9500] {
        let bytes: Vec<u8> = (0..length).map(|i| (i % 249) as u8).collect();
        let d = bufs.copy_in(&bytes).unwrap();
        assert_eq!(pool.total(&d), length);
        assert_eq!(pool.to_vec(&d), bytes);
        let mut parts: Vec<Desc> = Vec::new();
        bufs.unchain(d, |_, part| parts.push(part));
        assert_eq!(parts.len(), length.div_ceil(room));
        let sum: usize = parts.iter().map(|p| usize::from(p.len())).sum();
        assert_eq!(sum, length);
        parts.into_iter().for_each(|p| bufs.free(p));
        let mut d = bufs.copy_in(&bytes).unwrap();
        bufs.cut_chain(&mut d);
        assert_eq!(pool.total(&d), length.min(room));
        assert!(!bufs.resize(&mut d, room + 1));
        bufs.free(d);
        assert_eq!(bufs.cached() + pool.available() as usize, 64);
    }
}

#[test]
fn packets_are_cut_to_any_length() {
    let pool = Pool::new(64, STRIDE).unwrap();
    let mut bufs = Buffers::new(pool.clone());
    let room = usize::from(pool.room());
    let bytes: Vec<u8> = (0..4 * room + 9).map(|i| (i % 249) as u8).collect();
    let around = (0..=4).flat_map(|n| [n * room, n * room + 1, (n + 1) * room - 1]);
    for length in around.filter(|n| (1..bytes.len() + 2).contains(n)) {
        let mut d = bufs.copy_in(&bytes).unwrap();
        Pkt::new(&pool, &mut d).truncate(length);
        let kept = length.min(bytes.len());
        assert_eq!(pool.total(&d), kept);
        let used = 64 - bufs.cached() - pool.available() as usize;
        assert_eq!(used, kept.div_ceil(room));
        // It is a packet like any other: it can grow again, and ends without loss.
        let more = bufs.copy_in(&[7; 5]).unwrap();
        bufs.chain(&mut d, more);
        assert_eq!(pool.to_vec(&d), [&bytes[..kept], &[7; 5]].concat());
        bufs.free(d);
        assert_eq!(bufs.cached() + pool.available() as usize, 64);
    }
}

#[test]
fn a_packet_that_finds_too_few_buffers_takes_none() {
    let pool = Pool::new(64, STRIDE).unwrap();
    let mut bufs = Buffers::new(pool.clone());
    let kept: Vec<Desc> = (0..61).map(|_| bufs.alloc().unwrap()).collect();
    assert!(bufs.copy_in(&[0; 9500]).is_none());
    assert_eq!(bufs.cached() + pool.available() as usize, 3);
    assert!(bufs.copy_in(&[0; 9501]).is_none());
    kept.into_iter().for_each(|d| bufs.free(d));
    drop(bufs);
    assert_eq!(pool.available(), 64);
}

/// Buffers that are in use.
fn used(bufs: &Buffers) -> u32 {
    bufs.pool().count() - bufs.pool().available() - bufs.cached() as u32
}

#[test]
fn a_copy_is_a_packet_of_its_own() {
    let pool = Pool::new(64, STRIDE).unwrap();
    let mut bufs = Buffers::new(pool.clone());
    let room = usize::from(pool.room());
    for length in [2, room, room + 1, 3 * room + 5, 9000] {
        let bytes: Vec<u8> = (0..length).map(|i| (i % 249) as u8).collect();
        let mut d = bufs.copy_in(&bytes).unwrap();
        (d.rx_if, d.l3) = (3, 14);
        d.set_adjacency(77);
        d.mark(Flag::OURS);
        // Not where packets begin by default, and a second segment of another length than the
        // pool's room.
        assert!(Pkt::new(&pool, &mut d).shift(1));
        let more = bufs.copy_in(&[7; 5]).unwrap();
        bufs.chain(&mut d, more);
        let want = pool.to_vec(&d);
        let mut copy = bufs.copy(&d).unwrap();
        assert_eq!(used(&bufs), 2 * u32::from(pool.buffers(&d)));
        let shown = |d: &Desc| (d.rx_if, d.l3, d.adjacency(), d.has(Flag::OURS), d.off());
        assert_eq!(shown(&copy), shown(&d));
        assert_eq!(
            (pool.to_vec(&copy), pool.total(&copy)),
            (want.clone(), want.len())
        );
        // What is done to the one does not touch the other.
        pool.bytes_of_mut(&mut copy).fill(9);
        Pkt::new(&pool, &mut copy).truncate(1);
        assert_eq!(pool.to_vec(&d), want);
        bufs.free(d);
        assert_eq!(used(&bufs), 1);
        bufs.free(copy);
        assert_eq!(used(&bufs), 0);
    }
}

#[test]
fn a_copy_that_finds_too_few_buffers_takes_none() {
    let pool = Pool::new(8, STRIDE).unwrap();
    let mut bufs = Buffers::new(pool.clone());
    let d = bufs.copy_in(&[1; 9000]).unwrap();
    let buffers = u32::from(pool.buffers(&d));
    assert!(2 * buffers > 8);
    assert!(bufs.copy(&d).is_none());
    assert_eq!(used(&bufs), buffers);
    bufs.free(d);
    assert_eq!(used(&bufs), 0);
}
