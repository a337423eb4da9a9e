//! What the kernel answers about devices, as the XDP crate reads it.
#![cfg_attr(fuzzing, no_main)]

use xdp::message::{Link, family, features, payload};

/// A payload is part of its message, an error is one that can be, and whatever is in a payload, it is read.
pub fn check(bytes: &[u8]) {
    match payload(bytes) {
        Ok(body) => {
            assert!(body.len() + 16 <= bytes.len(), "{} bytes", body.len());
            let link = Link::read(body);
            if let Some(mac) = link.mac {
                assert!(body.windows(6).any(|bytes| bytes == mac), "{mac:?}");
            }
            let (family, features) = (family(body), features(body));
            assert!(!body.is_empty() || (family, features) == (None, None));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
