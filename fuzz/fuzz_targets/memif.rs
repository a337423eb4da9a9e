//! A message of a memif peer.
#![cfg_attr(fuzzing, no_main)]

use io::memif::message::Message;

/// What was understood is written as it was read.
pub fn check(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
