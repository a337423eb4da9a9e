//! Random frames of either family: good packets, packets with bits turned or their end cut off, and
//! packets of all kinds.

use crate::harness::craft::Mac;
use crate::harness::random::Random;
use crate::harness::topology::{H0, R0};

/// A packet of a family.
pub trait Packet: Sized {
    /// One that is right. Its sender is its own: devices limit their errors by receiver.
    fn plain(random: &mut Random, id: u16) -> Self;

    /// One of any kind, with where its frame goes.
    fn any(random: &mut Random, id: u16, mtu: usize) -> (Self, Mac);

    /// A good one's frame with a few bits of its IP header turned.
    fn flipped(random: &mut Random, id: u16) -> Vec<u8>;

    /// Length of a payload about as long as the next link takes, or longer.
    fn long(random: &mut Random, mtu: usize) -> usize;

    /// Gives it a payload of `length` bytes.
    fn resize(&mut self, length: usize);

    /// Its frame.
    fn frame(&self, src: Mac, dst: Mac) -> Vec<u8>;
}

/// A frame from the left, of a link that takes packets of `mtu` bytes; `id` is different for each,
/// so that no two packets are the same.
pub fn frame<P: Packet>(random: &mut Random, id: u16, mtu: u16) -> Vec<u8> {
    let mtu = usize::from(mtu);
    let frame = match random.below(8) {
        0 => P::flipped(random, id),
        1 => cut::<P>(random, id, mtu),
        _ => {
            let (packet, mac) = P::any(random, id, mtu);
            packet.frame(H0, mac)
        }
    };
    assert!(frame.len() <= 14 + mtu, "{} bytes", frame.len());
    frame
}

/// A good packet whose frame ends early, or goes on behind it.
fn cut<P: Packet>(random: &mut Random, id: u16, mtu: usize) -> Vec<u8> {
    let mut packet = P::plain(random, id);
    let long = P::long(random, mtu);
    if random.below(2) == 0 {
        packet.resize(long);
    }
    let mut frame = packet.frame(H0, R0);
    if random.below(2) == 0 {
        frame.truncate(14 + random.below(frame.len() - 14));
    } else {
        let longer = frame.len() + random.one_of(&[1, 4, 50]);
        frame.resize(longer.min(14 + mtu), 0xee);
    }
    frame
}
