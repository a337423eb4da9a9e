//! Bytes of strangers as text, and as a capture file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{pcap, text};

fuzz_target!(|bytes: &[u8]| {
    let _ = format!("{} {:#}", text::Frame(bytes), text::Frame(bytes));
    let _ = format!("{} {:#}", text::Ip4(bytes), text::Ip4(bytes));
    if let Ok(packets) = pcap::Reader::new(bytes) {
        for packet in packets.flatten() {
            let _ = text::Frame(&packet.bytes).to_string();
        }
    }
});
