//! The tables of all tests of a program: made once, and lent to one test at a time, because their
//! first level alone takes 64 MiB of kernel memory.

use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tables::Sizes;
use testbed::{Alone, alone};
use xdp::{Counters, Router};

/// As large as any test needs them.
pub const SIZES: Sizes = Sizes {
    ip4_groups: 16,
    ip6_pages: 128,
    ip6_leaves: 1024,
    nexthop_groups: 64,
    adjacencies: 64,
    interfaces: 256,
};

static ONLY: Mutex<Option<Router>> = Mutex::new(None);

/// The router of a test, whose tables are empty at first and whose counters count from then on.
///
/// The holder is [`alone`]: to run a program once is an attachment too, to the kernel.
pub struct Tables {
    router: MutexGuard<'static, Option<Router>>,
    before: Vec<Counters>,
    _alone: Alone,
}

impl Tables {
    /// Waits until no other test of this program has them.
    pub fn take() -> Self {
        // Before the tables, as tests do that need it for more than these.
        let alone = alone();
        let mut only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let router = only.get_or_insert_with(|| Router::new(SIZES).expect("tables"));
        clear(router);
        let interfaces = 0..SIZES.interfaces as u16;
        let before = interfaces.map(|interface| router.counters(interface).expect("counters"));
        Self {
            before: before.collect(),
            router: only,
            _alone: alone,
        }
    }

    /// Counters of what the programs have done with an interface's packets since the test took the
    /// tables.
    pub fn counted(&self, interface: u16) -> Counters {
        let (now, before) = (
            self.counters(interface),
            &self.before[usize::from(interface)],
        );
        let now = now.expect("counters");
        Counters {
            passed: now.passed - before.passed,
            redirected: now.redirected - before.redirected,
            rx_packets: now.rx_packets - before.rx_packets,
            rx_bytes: now.rx_bytes - before.rx_bytes,
            tx_packets: now.tx_packets - before.tx_packets,
            tx_bytes: now.tx_bytes - before.tx_bytes,
            drops: std::array::from_fn(|reason| now.drops[reason] - before.drops[reason]),
        }
    }
}

impl Deref for Tables {
    type Target = Router;

    fn deref(&self) -> &Router {
        self.router.as_ref().expect("made when they were taken")
    }
}

/// Takes out whatever the last test has put in, also if it failed.
fn clear(router: &Router) {
    let memory = router.memory();
    let tables = [
        &memory.ip4_first,
        &memory.ip4_second,
        &memory.ip6_first,
        &memory.ip6_pages,
        &memory.ip6_leaves,
        &memory.nexthop_groups,
        &memory.adjacencies,
        &memory.interfaces,
        &memory.tunnels,
        &memory.translated,
    ];
    for word in tables.into_iter().flat_map(|table| table.iter()) {
        // Most words are zero, and what is only read stays clean.
        if word.load(Relaxed) != 0 {
            word.store(0, Relaxed);
        }
    }
    for interface in 0..SIZES.interfaces as u16 {
        router.unset_egress(interface).expect("has such a place");
    }
}
