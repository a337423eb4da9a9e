//! Messages of the kernel, and what the router makes of them.
#![no_main]

use control::kernel::Batch;
use control::mirror::{Owned, Translator};
use control::netlink::{decode, wire::Messages};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut translator = Translator::new();
    let owned = Owned {
        id: 1,
        name: "eth1".into(),
        twin: None,
        port_up: true,
    };
    let _ = translator.own(2, owned);
    for event in Messages(bytes).filter_map(|message| decode::event(&message)) {
        let batch = Batch {
            events: vec![event],
            resync: false,
        };
        let _ = translator.apply(batch);
    }
});
