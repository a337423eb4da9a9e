//! What the kernel answers about devices, as the XDP crate reads it.
#![cfg_attr(fuzzing, no_main)]

use kernel::netlink::{Attributes, Messages, u64_at};
use xdp::{Link, features_in};

/// What is read of a message is in it.
pub fn check(bytes: &[u8]) {
    for payload in Messages(bytes).map(|message| message.payload) {
        let link = Link::read(payload);
        if let Some(mac) = link.mac {
            assert!(payload.windows(6).any(|bytes| bytes == mac), "{mac:?}");
        }
        if let Some(features) = features_in(Attributes::behind(payload, 4)) {
            let found = (0..payload.len()).any(|at| u64_at(payload, at) == Some(features));
            assert!(found, "{features:#x}");
        }
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
