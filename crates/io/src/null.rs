//! A port without a wire: receive gives from a queue of prepared packets, transmit puts them back at its end.
//!
//! For benchmarks: it costs about a cycle a packet, so what is measured is the graph.

use graph::{Buffers, Desc, Port, flags};

/// What a sent descriptor keeps when it is received again: where the packet lies, and that it is a chain.
const KEEP: u128 = {
    let mut bytes = [0u8; 16];
    let mut i = 0;
    while i < 8 {
        bytes[i] = 0xFF;
        i += 1;
    }
    bytes[std::mem::offset_of!(Desc, flags)] = flags::CHAINED;
    u128::from_ne_bytes(bytes)
};

/// The port. Its capacity is the number of its packets, rounded up to a power of two, or more if asked for.
#[derive(Debug)]
pub struct Null {
    name: String,
    places: Box<[Place]>,
    /// Next place to receive from, and to send to; both count for ever.
    head: usize,
    tail: usize,
}

/// A descriptor's bits.
type Place = u128;

const _: () =
    assert!(size_of::<Desc>() == size_of::<Place>() && align_of::<Desc>() == align_of::<Place>());

impl Null {
    /// A port that gives out `packets` in turn and has room for at least `capacity`.
    pub fn new(name: &str, packets: Vec<Desc>, capacity: usize) -> Self {
        let size = packets.len().max(capacity).max(1).next_power_of_two();
        let mut null = Self {
            name: name.to_owned(),
            places: vec![0; size].into(),
            head: 0,
            tail: 0,
        };
        null.put(&packets);
        null
    }

    /// Packets in the queue.
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Whether it has no packets.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Takes all packets out, the oldest first.
    pub fn take(&mut self) -> Vec<Desc> {
        let mask = self.places.len() - 1;
        let taken = (self.head..self.tail)
            .map(|at| as_desc(self.places[at & mask]))
            .collect();
        self.head = self.tail;
        taken
    }

    /// Appends packets, as many as there is room for.
    fn put(&mut self, descs: &[Desc]) -> usize {
        let size = self.places.len();
        let n = descs.len().min(size - self.len());
        // SAFETY: Desc is 16 bytes without padding and aligned like Place; the packets become ours.
        let bits = unsafe { std::slice::from_raw_parts(descs.as_ptr().cast::<Place>(), n) };
        let at = self.tail & (size - 1);
        let (first, second) = bits.split_at(n.min(size - at));
        for (place, bits) in self.places[at..].iter_mut().zip(first) {
            *place = bits & KEEP;
        }
        for (place, bits) in self.places.iter_mut().zip(second) {
            *place = bits & KEEP;
        }
        self.tail += n;
        n
    }
}

fn as_desc(bits: Place) -> Desc {
    // SAFETY: every place between head and tail was written from a Desc; the masked fields may be any value.
    unsafe { std::mem::transmute::<Place, Desc>(bits) }
}

impl Port for Null {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, _bufs: &mut Buffers, out: &mut [Desc]) -> usize {
        let size = self.places.len();
        let n = out.len().min(self.len());
        let at = self.head & (size - 1);
        let first = n.min(size - at);
        // SAFETY: places hold descriptors (see `as_desc`); n fits into `out`, and both parts into the places.
        unsafe {
            let to = out.as_mut_ptr().cast::<Place>();
            to.copy_from_nonoverlapping(self.places.as_ptr().add(at), first);
            to.add(first)
                .copy_from_nonoverlapping(self.places.as_ptr(), n - first);
        }
        self.head += n;
        n
    }

    fn tx(&mut self, _bufs: &mut Buffers, descs: &[Desc]) -> usize {
        self.put(descs)
    }

    fn drain(&mut self, bufs: &mut Buffers) {
        for d in self.take() {
            bufs.free(d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graph::Pool;

    #[test]
    fn packets_go_round_in_order_and_come_back_clean() {
        let mut bufs = Buffers::new(Pool::new(64, 2048).expect("pool"));
        let packets: Vec<Desc> = (0..5u8)
            .map(|i| bufs.copy_in(&[i; 60]).expect("buffer"))
            .collect();
        let order: Vec<u32> = packets.iter().map(Desc::buf).collect();
        let mut null = Null::new("null0", packets, 0);
        let mut frame: Vec<Desc> = order
            .iter()
            .map(|_| bufs.alloc().expect("buffer"))
            .collect();
        let spare: Vec<u32> = frame.iter().map(Desc::buf).collect();
        for round in 0..20usize {
            let n = null.rx(&mut bufs, &mut frame[..3]);
            assert_eq!(n, 3);
            for (i, d) in frame[..3].iter_mut().enumerate() {
                assert_eq!(d.buf(), order[(round * 3 + i) % 5]);
                assert_eq!((d.len(), d.rx_if, d.l3, d.flags, d.adj), (60, 0, 0, 0, 0));
                (d.rx_if, d.l3, d.adj, d.flags) = (7, 14, 99, flags::CHECKED);
            }
            assert_eq!(null.tx(&mut bufs, &frame[..3]), 3);
        }
        assert_eq!(null.len(), 5);
        null.drain(&mut bufs);
        for buf in spare {
            // SAFETY: allocated above, its descriptor was overwritten.
            unsafe { bufs.free_index(buf) };
        }
        assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 64);
    }

    #[test]
    fn a_full_port_takes_no_more() {
        let mut bufs = Buffers::new(Pool::new(64, 2048).expect("pool"));
        let descs: Vec<Desc> = (0..10)
            .map(|_| bufs.copy_in(&[1; 60]).expect("buffer"))
            .collect();
        let mut null = Null::new("null0", Vec::new(), 8);
        assert_eq!(null.tx(&mut bufs, &descs), 8);
        assert_eq!(null.take().len(), 8);
        assert!(null.is_empty());
    }
}
