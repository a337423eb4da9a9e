//! The two address families: what code for both asks of either.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use tables::prefix::InvalidPrefix;
use tables::{ip4, ip6, prefix};
use wire::eth;

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Its name, as VPP writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    /// The EtherType of its packets.
    pub const fn ethertype(self) -> u16 {
        match self {
            Self::V4 => eth::IP4,
            Self::V6 => eth::IP6,
        }
    }

    /// The family of packets of an EtherType.
    pub const fn of_ethertype(ethertype: u16) -> Option<Self> {
        match ethertype {
            eth::IP4 => Some(Self::V4),
            eth::IP6 => Some(Self::V6),
            _ => None,
        }
    }

    /// Bytes that every link carries in one packet: RFC 791 section 3.2, RFC 8200 section 5.
    pub const fn least_mtu(self) -> u16 {
        match self {
            Self::V4 => 68,
            Self::V6 => 1280,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An address of one family as a number in host byte order: `u32` or `u128`.
pub trait Ip: prefix::Address + fmt::Debug {
    /// The family.
    const FAMILY: Family;
    /// Its table of routes.
    type Fib: tables::Fib<Address = Self>;

    /// The number of an address of this family.
    fn of(address: IpAddr) -> Option<Self>;

    /// A prefix of this family among those of both.
    fn prefix(prefix: prefix::Prefix<Self>) -> Prefix;

    /// The address.
    fn ip(self) -> IpAddr {
        Self::Ip::from(self).into()
    }
}

impl Ip for u32 {
    const FAMILY: Family = Family::V4;
    type Fib = ip4::Fib;

    fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => Some(address.to_bits()),
            IpAddr::V6(_) => None,
        }
    }

    fn prefix(prefix: ip4::Prefix) -> Prefix {
        Prefix::V4(prefix)
    }
}

impl Ip for u128 {
    const FAMILY: Family = Family::V6;
    type Fib = ip6::Fib;

    fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address.to_bits()),
        }
    }

    fn prefix(prefix: ip6::Prefix) -> Prefix {
        Prefix::V6(prefix)
    }
}

/// A prefix of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Prefix {
    /// Of IPv4.
    V4(ip4::Prefix),
    /// Of IPv6.
    V6(ip6::Prefix),
}

impl Prefix {
    /// The prefix of one address.
    pub fn host(address: impl Into<IpAddr>) -> Self {
        match address.into() {
            IpAddr::V4(address) => Self::V4(ip4::Prefix::host(address.to_bits())),
            IpAddr::V6(address) => Self::V6(ip6::Prefix::host(address.to_bits())),
        }
    }

    /// The prefix of this length that an address is in. `None` if it is too long for its family.
    pub fn new(address: impl Into<IpAddr>, length: u8) -> Option<Self> {
        match address.into() {
            IpAddr::V4(address) => ip4::Prefix::new(address.to_bits(), length).map(Self::V4),
            IpAddr::V6(address) => ip6::Prefix::new(address.to_bits(), length).map(Self::V6),
        }
    }

    /// The first address.
    pub fn address(self) -> IpAddr {
        match self {
            Self::V4(prefix) => Ipv4Addr::from(prefix.addr()).into(),
            Self::V6(prefix) => Ipv6Addr::from(prefix.addr()).into(),
        }
    }

    /// Its length in bits.
    pub fn length(self) -> u8 {
        match self {
            Self::V4(prefix) => prefix.len(),
            Self::V6(prefix) => prefix.len(),
        }
    }

    /// True if the prefix contains an address.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4(prefix), IpAddr::V4(address)) => prefix.contains(address.to_bits()),
            (Self::V6(prefix), IpAddr::V6(address)) => prefix.contains(address.to_bits()),
            _ => false,
        }
    }
}

impl From<ip4::Prefix> for Prefix {
    fn from(prefix: ip4::Prefix) -> Self {
        Self::V4(prefix)
    }
}

impl From<ip6::Prefix> for Prefix {
    fn from(prefix: ip6::Prefix) -> Self {
        Self::V6(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(prefix) => prefix.fmt(f),
            Self::V6(prefix) => prefix.fmt(f),
        }
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    /// As the prefixes of the families; what has a colon is IPv6.
    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        if text.contains(':') {
            text.parse().map(Self::V6)
        } else {
            text.parse().map(Self::V4)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_both_families_are_text_and_numbers() {
        for text in [
            "10.0.0.0/8",
            "0.0.0.0/0",
            "::/0",
            "2001:db8::/32",
            "fe80::1/128",
        ] {
            let prefix: Prefix = text.parse().unwrap();
            assert_eq!(prefix.to_string(), text);
            assert_eq!(Prefix::new(prefix.address(), prefix.length()), Some(prefix));
        }
        assert!(
            "10.0.0.1/8".parse::<Prefix>().is_err() && "2001:db8::1/32".parse::<Prefix>().is_err()
        );
        assert_eq!(Prefix::new(Ipv4Addr::LOCALHOST, 33), None);
        let host = Prefix::host(Ipv6Addr::LOCALHOST);
        assert!(
            host.contains(Ipv6Addr::LOCALHOST.into()) && !host.contains(Ipv4Addr::LOCALHOST.into())
        );
    }

    #[test]
    fn an_address_is_a_number_of_its_family_only() {
        let (ip4, ip6) = (
            IpAddr::from([10, 0, 0, 1]),
            IpAddr::from(Ipv6Addr::LOCALHOST),
        );
        assert_eq!((u32::of(ip4), u32::of(ip6)), (Some(0x0a00_0001), None));
        assert_eq!((u128::of(ip4), u128::of(ip6)), (None, Some(1)));
        assert_eq!((0x0a00_0001u32.ip(), 1u128.ip()), (ip4, ip6));
        for family in Family::ALL {
            assert_eq!(Family::of_ethertype(family.ethertype()), Some(family));
        }
    }
}
