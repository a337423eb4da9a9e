//! Policy rules.

use std::io;

use kernel::netlink::layout::{FRA_PRIORITY, Header, INET, INET6, RuleHeader, UNSPEC, read};
use kernel::netlink::u32_at;

use super::Requests;

impl Requests {
    /// Returns true if routing depends on more than the destination: policy rules (`ip rule`)
    /// beside the kernel's own, for tables local, main and, of IPv4, default.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn has_policy_rules(&mut self) -> io::Result<bool> {
        let mut more = false;
        self.socket.dump(
            RuleHeader::of(UNSPEC).message(libc::RTM_GETRULE),
            |message| {
                more |= !is_usual(message.payload);
            },
        )?;
        Ok(more)
    }
}

/// Returns true if a rule is one of the kernel's own, or of multicast routing, which has rules of
/// its own.
fn is_usual(payload: &[u8]) -> bool {
    let Some((header, attributes)) = read::<RuleHeader>(payload) else {
        return false;
    };
    let is_unicast = [INET, INET6].contains(&header.family);
    let priority = attributes.find(FRA_PRIORITY);
    let priority = priority.and_then(|value| u32_at(value, 0)).unwrap_or(0);
    !is_unicast
        || matches!(
            (priority, header.table),
            (0, libc::RT_TABLE_LOCAL)
                | (32766, libc::RT_TABLE_MAIN)
                | (32767, libc::RT_TABLE_DEFAULT)
        )
}
