//! Packet formats, one file a protocol; checksums, pcap, packet crafting.
//!
//! Every protocol's file has one skeleton: the constants of its fields, a `Header` that lies over
//! the bytes of a packet without a copy, and what the protocol computes. `Header::parse` and
//! `Header::parse_mut` check nothing but the length; whether a field makes sense is for the caller
//! to check. Numbers are read by methods in host byte order; IPv4 addresses are host-order `u32`
//! throughout.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

pub mod arp;
pub mod checksum;
pub mod craft;
pub mod dhcp;
pub mod eth;
mod icmp;
pub mod icmp4;
pub mod icmp6;
pub mod ip;
pub mod ip4;
pub mod ip6;
pub mod lacp;
pub mod nat;
pub mod offload;
pub mod pcap;
pub mod port;
pub mod rss;
pub mod sflow;
pub mod tcp;
pub mod text;
pub mod udp;
pub mod vlan;
pub mod vxlan;

/// Gives a header of fixed layout its length and its views.
macro_rules! view {
    ($header:ident, $len:literal) => {
        /// Bytes of the header.
        pub const LEN: usize = $len;

        const _: () = assert!(size_of::<$header>() == LEN);

        impl $header {
            /// The header at the start of `bytes` and what follows it. `None` if they are too few.
            #[inline(always)]
            pub fn parse(bytes: &[u8]) -> Option<(&Self, &[u8])> {
                zerocopy::FromBytes::ref_from_prefix(bytes).ok()
            }

            /// As [`parse`](Self::parse), to be changed in place.
            #[inline(always)]
            pub fn parse_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
                zerocopy::FromBytes::mut_from_prefix(bytes).ok()
            }

            /// The header as it is sent.
            #[inline(always)]
            pub fn bytes(&self) -> &[u8; LEN] {
                zerocopy::transmute_ref!(self)
            }
        }
    };
}
pub(crate) use view;
