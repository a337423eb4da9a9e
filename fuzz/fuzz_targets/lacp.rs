//! What members of a bond hear. The input is what follows the Ethernet header of a frame of a slow
//! protocol.
#![cfg_attr(fuzzing, no_main)]

#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../crates/router/tests/router/harness.rs"]
mod harness;

use std::cell::RefCell;
use std::time::Duration;

use router::bond::{Headers, Spread};
use router::{Change, Interface, Kind, L2};
use wire::eth;
use wire::lacp::{self, Pdu};

/// The bond and its member.
const BOND: u16 = 2;
const MEMBER: u16 = 3;

thread_local! {
    static LAB: RefCell<(harness::Lab, Duration)> = RefCell::new((bonded(), Duration::ZERO));
}

fn bonded() -> harness::Lab {
    let mut lab = harness::Lab::new();
    lab.plug(MEMBER, 0);
    let bond = Kind::Bond {
        spread: Spread::Lacp(Headers::L34),
        enabled: true,
        host: None,
    };
    lab.apply(vec![
        Change::InterfaceSet(Interface {
            kind: bond,
            ..harness::interface(BOND)
        }),
        Change::InterfaceSet(Interface {
            l2: Some(L2::Bond(BOND)),
            ..harness::interface(MEMBER)
        }),
    ]);
    lab
}

/// What a member sends is a PDU, no more than three LACPDUs a second, and no buffer is lost.
pub fn check(pdu: &[u8]) {
    let mut frame = [&lacp::GROUP.0[..], &[2; 6], &eth::SLOW.to_be_bytes()].concat();
    frame.extend_from_slice(&pdu[..pdu.len().min(1500)]);
    LAB.with_borrow_mut(|(lab, now)| {
        // The clock goes by what is heard, so that all timers are met.
        *now += Duration::from_millis(u64::from(*pdu.last().unwrap_or(&0)) * 20);
        lab.receive(MEMBER, [frame]);
        assert!(lab.router.unresolved().is_empty());
        lab.router.negotiate(*now);
        lab.run();
        let sent = lab.sent(MEMBER);
        assert!(sent.len() <= 2, "an answer, and one LACPDU a step");
        for frame in sent {
            let read = lacp::parse(&frame[eth::LEN..]);
            assert!(
                matches!(read, Ok(Pdu::Lacp(_) | Pdu::MarkerResponse)),
                "{read:?}"
            );
        }
        lab.check_buffers(0);
    });
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
