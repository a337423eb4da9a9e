//! Requests to the kernel about neighbors: to resolve those that packets wait for, and to confirm
//! those in use.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use tracing::warn;

use control::netlink::Kernel;

/// Neighbors in use are confirmed this often (the kernel's `base_reachable_time` is 30 s).
const CONFIRM: Duration = Duration::from_secs(15);
/// A neighbor is asked for no more often than this. Each worker asks once a second.
const ASK_AGAIN: Duration = Duration::from_millis(900);

/// Asks the kernel, and knows what was asked when.
pub struct Neighbors {
    kernel: Box<dyn Kernel>,
    asked: HashMap<(u32, IpAddr), Instant>,
    confirmed: Option<Instant>,
    /// Time at which a refusal of the kernel was last logged; `unlogged` counts those since: a scan
    /// can make it refuse hundreds a second.
    logged: Option<Instant>,
    unlogged: u32,
}

impl Neighbors {
    /// Nothing has been asked yet.
    pub fn new(kernel: Box<dyn Kernel>) -> Self {
        Self {
            kernel,
            asked: HashMap::new(),
            confirmed: None,
            logged: None,
            unlogged: 0,
        }
    }

    /// Asks the kernel for a neighbor, unless it was asked just now.
    pub fn resolve(&mut self, now: Instant, link: u32, address: IpAddr) {
        let asked = self.asked.get(&(link, address));
        if asked.is_some_and(|asked| now.duration_since(*asked) < ASK_AGAIN) {
            return;
        }
        self.asked.insert((link, address), now);
        if let Err(e) = self.kernel.use_neighbor(link, address) {
            self.refused(now, address, &e);
        }
    }

    fn refused(&mut self, now: Instant, address: IpAddr, why: &io::Error) {
        if self.logged.is_some_and(|t| now.duration_since(t) < CONFIRM) {
            self.unlogged += 1;
            return;
        }
        self.logged = Some(now);
        let others = match mem::take(&mut self.unlogged) {
            0 => String::new(),
            n => format!(" (and {n} others since the last message)"),
        };
        warn!("the kernel refuses to resolve neighbor {address}: {why}{others}");
    }

    /// Tells the kernel that a neighbor is in use; if it refuses, the next round says so again.
    pub fn confirm(&mut self, link: u32, address: IpAddr) {
        let _ = self.kernel.use_neighbor(link, address);
    }

    /// Returns true if it is time to confirm those in use; the next time is counted from then on.
    pub fn are_to_be_confirmed(&mut self, now: Instant) -> bool {
        let last = *self.confirmed.get_or_insert(now);
        let due = now.duration_since(last) > CONFIRM;
        if due {
            self.confirmed = Some(now);
            self.asked
                .retain(|_, asked| now.duration_since(*asked) < CONFIRM);
        }
        due
    }
}
