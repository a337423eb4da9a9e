//! The VLAN tags of sub-interfaces (IEEE 802.1Q, IEEE 802.1ad).

/// The VLAN tags of a sub-interface's packets, or those that a frame begins with: none, one, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tags {
    /// Number of tags, 0 to 2.
    pub count: u8,
    /// The outer one is of IEEE 802.1ad (a service tag), not of IEEE 802.1Q.
    pub service: bool,
    /// VLAN identifier of the outer one, 0 to 4095.
    pub outer: u16,
    /// VLAN identifier of the inner one, 0 to 4095; 0 if there is none.
    pub inner: u16,
    /// Further tags may follow, which are no business of the sub-interface's. Of a frame: they do.
    pub further: bool,
}

impl Tags {
    /// No tag.
    pub const NONE: Self = Self {
        count: 0,
        service: false,
        outer: 0,
        inner: 0,
        further: false,
    };

    /// One tag of IEEE 802.1Q.
    pub const fn one(vlan: u16) -> Self {
        Self {
            count: 1,
            outer: vlan,
            ..Self::NONE
        }
    }

    /// Two tags of IEEE 802.1Q.
    pub const fn two(outer: u16, inner: u16) -> Self {
        Self {
            count: 2,
            outer,
            inner,
            ..Self::NONE
        }
    }

    /// The same with an outer tag of IEEE 802.1ad.
    #[must_use]
    pub const fn with_service(self) -> Self {
        Self {
            service: true,
            ..self
        }
    }

    /// The same where further tags may follow.
    #[must_use]
    pub const fn with_further(self) -> Self {
        Self {
            further: true,
            ..self
        }
    }

    /// The same without the inner one.
    #[must_use]
    pub(super) const fn only_outer(self) -> Self {
        Self {
            count: 1,
            inner: 0,
            ..self
        }
    }

    /// Bytes that they take in a frame.
    pub const fn len(self) -> usize {
        4 * self.count as usize
    }

    /// True if there is no tag.
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The outer tag as it lies in a line.
    pub(super) const fn outer_bits(self) -> u32 {
        self.outer as u32 & VLAN | (self.service as u32) << SERVICE
    }

    /// The tags of a line: how many, whether others may follow, the outer one, the inner one.
    #[inline(always)]
    pub(super) const fn of_bits(count: u32, further: bool, outer: u32, inner: u32) -> Self {
        Self {
            count: count as u8,
            service: outer >> SERVICE != 0,
            outer: vlan_of(outer),
            inner: inner as u16,
            further,
        }
    }
}

/// Bits of a VLAN identifier.
const VLAN: u32 = 0xfff;
/// The bit above them: a tag of IEEE 802.1ad.
const SERVICE: u32 = 12;

/// The VLAN identifier of an outer tag, as it lies in a line.
#[inline(always)]
pub(super) const fn vlan_of(outer: u32) -> u16 {
    (outer & VLAN) as u16
}
