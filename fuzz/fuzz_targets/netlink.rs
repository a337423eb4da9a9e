//! Messages of the kernel, and what the router makes of them.
#![cfg_attr(fuzzing, no_main)]

use control::facts::{Batch, Event};
use control::mirror::{Binding, Translator};
use control::netlink::decode;
use kernel::netlink::{HEADER, Messages};
use router::change::Prefix;

/// Nothing is read twice, and what is taken for an event can be one. Afterwards all can be given
/// back.
pub fn check(bytes: &[u8]) {
    let read: usize = Messages(bytes).map(|m| HEADER + m.payload.len()).sum();
    assert!(read <= bytes.len(), "{read} bytes");
    let mut translator = Translator::new();
    let owned = Binding {
        id: 1,
        name: "eth1".into(),
        host: None,
        port_up: true,
        serving: true,
        on: None,
        l2: None,
        bond: None,
        tunnel: None,
    };
    let _ = translator.bind(2, owned);
    for event in Messages(bytes).filter_map(|message| decode::event(&message)) {
        assert!(is_possible(&event), "{event:?}");
        let _ = translator.apply(Batch {
            events: vec![event],
            resync: false,
        });
    }
    let _ = translator.set_port_up(2, false);
    let _ = translator.unbind(2);
    assert_eq!(translator.owned().count(), 0);
}

fn is_possible(event: &Event) -> bool {
    match event {
        Event::Route(route, _) | Event::RouteGone(route) => {
            let prefix = route.prefix;
            Prefix::new(prefix.address(), prefix.length()) == Some(prefix)
        }
        Event::Address(_, a) | Event::AddressGone(_, a) => {
            Prefix::new(a.address, a.length).is_some() && a.address.is_ipv4() == a.peer.is_ipv4()
        }
        _ => true,
    }
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
