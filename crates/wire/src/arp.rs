//! ARP for IPv4 over Ethernet (RFC 826).

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::eth::{self, Mac};
use crate::view;

/// Operation: who has the target address?
pub const REQUEST: u16 = 1;
/// Operation: the sender has its address.
pub const REPLY: u16 = 2;

// Hardware type (IANA, "ARP Parameters").
const ETHERNET: u16 = 1;

/// The whole packet.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    hardware: U16,
    protocol: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
    /// Ethernet address of the sender.
    pub sender_mac: Mac,
    sender: U32,
    /// Ethernet address of the target; means nothing in a request.
    pub target_mac: Mac,
    target: U32,
}

view!(Header, 28);

impl Header {
    /// A packet from a sender to a target.
    pub const fn new(operation: u16, sender: (Mac, u32), target: (Mac, u32)) -> Self {
        Self {
            hardware: U16::new(ETHERNET),
            protocol: U16::new(eth::IP4),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac: sender.0,
            sender: U32::new(sender.1),
            target_mac: target.0,
            target: U32::new(target.1),
        }
    }

    /// Asks all on the link for the owner of `target`.
    pub fn request(sender: (Mac, u32), target: u32) -> Self {
        Self::new(REQUEST, sender, (Mac::default(), target))
    }

    /// The answer to this request: `mac` has the target address.
    pub fn reply(&self, mac: Mac) -> Self {
        Self::new(
            REPLY,
            (mac, self.target()),
            (self.sender_mac, self.sender()),
        )
    }

    /// True if it is about IPv4 addresses on Ethernet; if not, its fields mean something else.
    pub fn is_ip4_over_ethernet(&self) -> bool {
        let of = (
            self.hardware.get(),
            self.protocol.get(),
            self.hardware_len,
            self.protocol_len,
        );
        of == (ETHERNET, eth::IP4, 6, 4)
    }

    /// [`REQUEST`], [`REPLY`], or something else.
    pub fn operation(&self) -> u16 {
        self.operation.get()
    }

    /// IPv4 address of the sender.
    pub fn sender(&self) -> u32 {
        self.sender.get()
    }

    /// IPv4 address of the target.
    pub fn target(&self) -> u32 {
        self.target.get()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(operation: u16, a: ([u8; 6], u32), b: ([u8; 6], u32)) {
            let packet = Header::new(operation, (Mac(a.0), a.1), (Mac(b.0), b.1));
            let read = Header::parse(packet.bytes()).unwrap().0;
            prop_assert!(read.is_ip4_over_ethernet());
            prop_assert_eq!((read.operation(), read.sender(), read.target()), (operation, a.1, b.1));
            prop_assert_eq!((read.sender_mac.0, read.target_mac.0), (a.0, b.0));
        }
    }

    #[test]
    fn request_and_reply() {
        let (asker, owner) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let request = Header::request((asker, 1), 2);
        assert_eq!(request.bytes()[..8], [0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(
            request.reply(owner),
            Header::new(REPLY, (owner, 2), (asker, 1))
        );
    }
}
