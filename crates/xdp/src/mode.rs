//! Place where an XDP program runs.

use std::fmt;

/// Place where an XDP program runs. How packets come to a socket is more: AF_XDP's modes say that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel has made a socket buffer.
    Native,
    /// In the kernel's stack, on any device.
    Generic,
}

impl Mode {
    /// `XDP_FLAGS_DRV_MODE` or `XDP_FLAGS_SKB_MODE` (linux/if_link.h).
    pub(crate) fn flags(self) -> u32 {
        match self {
            Self::Native => 1 << 2,
            Self::Generic => 1 << 1,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
