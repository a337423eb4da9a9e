//! A message of a memif peer.
#![no_main]

use io::memif::message::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        // What was understood is written as it was read.
        let again = Message::decode(&message.encode()).expect("our own message");
        assert_eq!(format!("{again:?}"), format!("{message:?}"));
    }
});
