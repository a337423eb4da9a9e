//! An IPv6 prefix.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::rib;

/// An address and a length; host bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    addr: u128,
    len: u8,
}

impl Prefix {
    /// ::/0.
    pub const DEFAULT: Self = Self { addr: 0, len: 0 };

    /// The prefix of this length (0 to 128) that `addr` (host byte order) is in. `None` if `len`
    /// is above 128.
    #[inline]
    pub const fn new(addr: u128, len: u8) -> Option<Self> {
        if len > 128 {
            return None;
        }
        Some(Self {
            addr: addr & mask(len),
            len,
        })
    }

    /// The /128 of one address in host byte order.
    #[inline]
    pub const fn host(addr: u128) -> Self {
        Self { addr, len: 128 }
    }

    /// The first address, host byte order.
    #[inline]
    pub const fn addr(self) -> u128 {
        self.addr
    }

    /// The last address, host byte order.
    #[inline]
    pub const fn last(self) -> u128 {
        self.addr | !mask(self.len)
    }

    /// The length, 0 to 128.
    #[inline]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a prefix length, not a number of things"
    )]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Whether `addr` (host byte order) is in it.
    #[inline]
    pub const fn contains(self, addr: u128) -> bool {
        addr & mask(self.len) == self.addr
    }
}

/// The network mask of a length of 0 to 128.
#[inline]
const fn mask(len: u8) -> u128 {
    match len {
        0 => 0,
        len => u128::MAX << (128 - len),
    }
}

impl Hash for Prefix {
    /// By the address alone, as in a [`rib::Rib`].
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addr.hash(state);
    }
}

impl rib::Key for Prefix {
    type Addr = u128;
    const BITS: u8 = 128;

    #[inline]
    fn cut(address: u128, len: u8) -> Self {
        let len = len.min(Self::BITS);
        Self {
            addr: address & mask(len),
            len,
        }
    }

    #[inline]
    fn addr(self) -> u128 {
        self.addr
    }

    #[inline]
    fn len(self) -> u8 {
        self.len
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` keeps widths working: prefixes stand in columns.
        f.pad(&format!("{}/{}", Ipv6Addr::from(self.addr), self.len))
    }
}

/// Not a prefix: not of the form `2001:db8::/32`, or host bits are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPrefix(String);

impl fmt::Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not an IPv6 prefix such as 2001:db8::/32",
            self.0
        )
    }
}

impl std::error::Error for InvalidPrefix {}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    /// Reads `address/len`, or an address for a /128. Host bits must be zero.
    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        parse(text).ok_or_else(|| InvalidPrefix(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Prefix> {
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) if len.bytes().all(|byte| byte.is_ascii_digit()) => {
            (addr, len.parse().ok()?)
        }
        Some(_) => return None,
        None => (text, 128),
    };
    let addr = u128::from(addr.parse::<Ipv6Addr>().ok()?);
    Prefix::new(addr, len).filter(|prefix| prefix.addr == addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in ["::/0", "2001:db8::/32", "fe80::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("::1".parse::<Prefix>().unwrap(), Prefix::host(1));
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
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn bounds() {
        assert_eq!(Prefix::new(7, 129), None);
        assert_eq!(Prefix::new(u128::MAX, 0), Some(Prefix::DEFAULT));
        let prefix = Prefix::new(0x2001_0db8 << 96 | 0xff, 120).unwrap();
        assert_eq!(
            (prefix.addr() as u8, prefix.last() as u8, prefix.len()),
            (0, 0xff, 120)
        );
        assert!(prefix.contains(prefix.last()) && !prefix.contains(prefix.last() + 1));
        assert!(Prefix::DEFAULT.contains(u128::MAX) && Prefix::DEFAULT.last() == u128::MAX);
    }
}
