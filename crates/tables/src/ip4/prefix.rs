//! An IPv4 prefix.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::rib;

/// An address and a length; host bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    addr: u32,
    len: u8,
}

impl Prefix {
    /// 0.0.0.0/0.
    pub const DEFAULT: Self = Self { addr: 0, len: 0 };

    /// The prefix of this length (0 to 32) that `addr` (host byte order) is in. `None` if `len` is
    /// above 32.
    #[inline]
    pub const fn new(addr: u32, len: u8) -> Option<Self> {
        if len > 32 {
            return None;
        }
        Some(Self {
            addr: addr & mask(len),
            len,
        })
    }

    /// The /32 of one address in host byte order.
    #[inline]
    pub const fn host(addr: u32) -> Self {
        Self { addr, len: 32 }
    }

    /// The first address, host byte order.
    #[inline]
    pub const fn addr(self) -> u32 {
        self.addr
    }

    /// The last address, host byte order.
    #[inline]
    pub const fn last(self) -> u32 {
        self.addr | !mask(self.len)
    }

    /// The length, 0 to 32.
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
    pub const fn contains(self, addr: u32) -> bool {
        addr & mask(self.len) == self.addr
    }
}

/// The network mask of a length of 0 to 32.
#[inline]
const fn mask(len: u8) -> u32 {
    // A shift of 64 bits: 32 minus 0 would be too wide for 32.
    (u64::MAX << (32 - len)) as u32
}

impl Hash for Prefix {
    /// By the address alone, as in a [`rib::Rib`]: who walks a hash set of prefixes then goes
    /// through the maps of a RIB in their order in memory, which takes half the time.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.addr.hash(state);
    }
}

impl rib::Key for Prefix {
    type Addr = u32;
    const BITS: u8 = 32;

    #[inline]
    fn cut(address: u32, len: u8) -> Self {
        let len = len.min(Self::BITS);
        Self {
            addr: address & mask(len),
            len,
        }
    }

    #[inline]
    fn addr(self) -> u32 {
        self.addr
    }

    #[inline]
    fn len(self) -> u8 {
        self.len
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `pad` keeps widths working: prefixes are printed in columns.
        f.pad(&format!("{}/{}", Ipv4Addr::from(self.addr), self.len))
    }
}

/// Not a prefix: not of the form `10.0.0.0/8`, or host bits are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPrefix(String);

impl fmt::Display for InvalidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an IPv4 prefix such as 10.0.0.0/8", self.0)
    }
}

impl std::error::Error for InvalidPrefix {}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    /// Reads `a.b.c.d/len`, or `a.b.c.d` for a /32. Host bits must be zero.
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
        None => (text, 32),
    };
    let addr = u32::from(addr.parse::<Ipv4Addr>().ok()?);
    Prefix::new(addr, len).filter(|prefix| prefix.addr == addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "192.0.2.128/25",
            "255.255.255.255/32",
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!(
            "192.0.2.1".parse::<Prefix>().unwrap(),
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
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn bounds() {
        assert_eq!(Prefix::new(7, 33), None);
        assert_eq!(Prefix::new(u32::MAX, 0), Some(Prefix::DEFAULT));
        let prefix = Prefix::new(0x0a01_02ff, 24).unwrap();
        assert_eq!(
            (prefix.addr(), prefix.last(), prefix.len()),
            (0x0a01_0200, 0x0a01_02ff, 24)
        );
        assert!(
            prefix.contains(0x0a01_0200)
                && prefix.contains(0x0a01_02ff)
                && !prefix.contains(0x0a01_0300)
        );
        assert!(Prefix::DEFAULT.contains(u32::MAX) && Prefix::DEFAULT.last() == u32::MAX);
    }
}
