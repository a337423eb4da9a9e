//! Prefixes of both address families.

use std::fmt::{self, Debug, Display};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::{BitAnd, BitOr, Not};
use std::str::FromStr;

/// An address as a number in host byte order: `u32` of IPv4, `u128` of IPv6.
pub trait Address:
    Copy
    + Ord
    + Hash
    + Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + 'static
{
    /// The address as it is written.
    type Ip: From<Self> + Into<Self> + Into<IpAddr> + FromStr + Display;

    /// Bits of an address: the length of a host's prefix.
    const BITS: u8;
    /// The lowest address.
    const ZERO: Self;
    /// Name of a prefix in an error, with an example.
    const PREFIX: &'static str;

    /// The network mask of a length of 0 to [`Address::BITS`].
    fn mask(len: u8) -> Self;
}

impl Address for u32 {
    type Ip = Ipv4Addr;
    const BITS: u8 = 32;
    const ZERO: Self = 0;
    const PREFIX: &'static str = "IPv4 prefix such as 10.0.0.0/8";

    #[inline]
    fn mask(len: u8) -> Self {
        // A shift of 64 bits: 32 minus 0 would be too wide for 32.
        (u64::MAX << (32 - len)) as u32
    }
}

impl Address for u128 {
    type Ip = Ipv6Addr;
    const BITS: u8 = 128;
    const ZERO: Self = 0;
    const PREFIX: &'static str = "IPv6 prefix such as 2001:db8::/32";

    #[inline]
    fn mask(len: u8) -> Self {
        match len {
            0 => 0,
            len => u128::MAX << (128 - len),
        }
    }
}

/// An address and a length; host bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

impl<A: Address> Prefix<A> {
    /// The prefix of all addresses.
    pub const DEFAULT: Self = Self {
        addr: A::ZERO,
        len: 0,
    };

    /// The prefix of this length that `addr` is in. `None` if `len` is above [`Address::BITS`].
    #[inline]
    pub fn new(addr: A, len: u8) -> Option<Self> {
        (len <= A::BITS).then(|| Self::cut(addr, len))
    }

    /// The prefix of this length that `addr` is in. Lengths above [`Address::BITS`] count as that.
    #[inline]
    pub fn cut(addr: A, len: u8) -> Self {
        let len = len.min(A::BITS);
        Self {
            addr: addr & A::mask(len),
            len,
        }
    }

    /// The prefix of one address.
    #[inline]
    pub const fn host(addr: A) -> Self {
        Self { addr, len: A::BITS }
    }

    /// The first address.
    #[inline]
    pub const fn addr(self) -> A {
        self.addr
    }

    /// The last address.
    #[inline]
    pub fn last(self) -> A {
        self.addr | !A::mask(self.len)
    }

    /// The length, 0 to [`Address::BITS`].
    #[inline]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a prefix length, not a number of things"
    )]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// True if the prefix contains `addr`.
    #[inline]
    pub fn contains(self, addr: A) -> bool {
        addr & A::mask(self.len) == self.addr
    }
}

impl<A: Address> Hash for Prefix<A> {
    /// By the address alone, as in a [`Rib`](crate::rib::Rib): who walks a hash set of prefixes then
    /// goes through the maps of a RIB in their order in memory, which takes half the time.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addr.hash(state);
    }
}

impl<A: Address> Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` keeps widths working: prefixes stand in columns.
        f.pad(&format!("{}/{}", A::Ip::from(self.addr), self.len))
    }
}

/// Not a prefix of the family: not of the form `ADDRESS/LENGTH`, or host bits are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPrefix {
    text: String,
    expected: &'static str,
}

impl Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an {}", self.text, self.expected)
    }
}

impl std::error::Error for InvalidPrefix {}

impl<A: Address> FromStr for Prefix<A> {
    type Err = InvalidPrefix;

    /// Reads `ADDRESS/LENGTH`, or an address for a host's prefix. Host bits must be zero.
    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        parse(text).ok_or_else(|| InvalidPrefix {
            text: text.to_owned(),
            expected: A::PREFIX,
        })
    }
}

fn parse<A: Address>(text: &str) -> Option<Prefix<A>> {
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) if len.bytes().all(|byte| byte.is_ascii_digit()) => {
            (addr, len.parse().ok()?)
        }
        Some(_) => return None,
        None => (text, A::BITS),
    };
    let addr = addr.parse::<A::Ip>().ok()?.into();
    Prefix::new(addr, len).filter(|prefix| prefix.addr == addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back_ip4() {
        for text in [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "192.0.2.128/25",
            "255.255.255.255/32",
        ] {
            assert_eq!(text.parse::<Prefix<u32>>().unwrap().to_string(), text);
        }
        assert_eq!(
            "192.0.2.1".parse::<Prefix<u32>>().unwrap(),
            Prefix::host(0xc000_0201)
        );
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "10.0.0/8",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "::/0",
        ] {
            assert!(text.parse::<Prefix<u32>>().is_err(), "{text}");
        }
        assert_eq!(
            "10.0.0.1/8".parse::<Prefix<u32>>().unwrap_err().to_string(),
            "`10.0.0.1/8` is not an IPv4 prefix such as 10.0.0.0/8"
        );
    }

    #[test]
    fn text_and_back_ip6() {
        for text in ["::/0", "2001:db8::/32", "fe80::1/128"] {
            assert_eq!(text.parse::<Prefix<u128>>().unwrap().to_string(), text);
        }
        assert_eq!("::1".parse::<Prefix<u128>>().unwrap(), Prefix::host(1));
        for text in [
            "",
            "/",
            "2001:db8::/",
            "2001:db8::/129",
            "2001:db8::1/32",
            "2001:db8/32",
            "2001:db8::/+32",
            "10.0.0.0/8",
        ] {
            assert!(text.parse::<Prefix<u128>>().is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_ip4() {
        assert_eq!(Prefix::new(7u32, 33), None);
        assert_eq!(Prefix::new(u32::MAX, 0), Some(Prefix::DEFAULT));
        let prefix = Prefix::new(0x0a01_02ff_u32, 24).unwrap();
        assert_eq!(
            (prefix.addr(), prefix.last(), prefix.len()),
            (0x0a01_0200, 0x0a01_02ff, 24)
        );
        assert!(
            prefix.contains(0x0a01_0200)
                && prefix.contains(0x0a01_02ff)
                && !prefix.contains(0x0a01_0300)
        );
        assert!(
            Prefix::<u32>::DEFAULT.contains(u32::MAX) && Prefix::<u32>::DEFAULT.last() == u32::MAX
        );
    }

    #[test]
    fn bounds_ip6() {
        assert_eq!(Prefix::new(7u128, 129), None);
        assert_eq!(Prefix::new(u128::MAX, 0), Some(Prefix::DEFAULT));
        let prefix = Prefix::new(0x2001_0db8_u128 << 96 | 0xff, 120).unwrap();
        assert_eq!(
            (prefix.addr() as u8, prefix.last() as u8, prefix.len()),
            (0, 0xff, 120)
        );
        assert!(prefix.contains(prefix.last()) && !prefix.contains(prefix.last() + 1));
        assert!(
            Prefix::<u128>::DEFAULT.contains(u128::MAX)
                && Prefix::<u128>::DEFAULT.last() == u128::MAX
        );
    }
}
