//! The router, kept in step with the kernel: what the translator makes of the kernel's news is
//! applied to it.

use std::time::Instant;

use tracing::warn;

use control::facts::Batch;
use control::mirror::{Binding, LinkNews, Translator};
use router::bond::Spread;
use router::state::Rejected;
use router::vxlan::Tunnel;
use router::{Change, InterfaceId, L2, Router, Tags};

use super::shortage::Shortage;
use super::workers;

/// A router, and what the kernel has said.
pub struct Routing {
    /// The router.
    pub router: Router,
    /// The kernel's links, addresses, neighbors and routes, as the router sees them.
    pub translator: Translator,
    shortage: Shortage,
}

impl Routing {
    /// Nothing has been said yet.
    pub fn new(router: Router) -> Self {
        Self {
            router,
            translator: Translator::new(),
            shortage: Shortage::default(),
        }
    }

    /// Takes in what the kernel says, and returns what has become of devices.
    pub fn follow(&mut self, batch: Batch) -> Vec<LinkNews> {
        let changes = self.translator.apply(batch);
        self.apply(changes);
        self.translator.take_news()
    }

    /// The device of this index of the kernel is ours from now on.
    pub fn bind(&mut self, link: u32, owned: Binding) {
        let changes = self.translator.bind(link, owned);
        self.apply(changes);
    }

    /// The device of this index of the kernel is ours no longer.
    pub fn unbind(&mut self, link: u32) {
        let changes = self.translator.unbind(link);
        self.apply(changes);
    }

    /// All our interfaces take packets in from now on.
    pub fn serve_all(&mut self) {
        let changes = self.translator.serve_all();
        self.apply(changes);
    }

    /// Changes what is the router's own and not the kernel's, such as an interface's features. It
    /// outlasts the kernel's news of the interface.
    ///
    /// # Errors
    /// The router's, which then has changed nothing.
    pub fn configure(&mut self, changes: Vec<Change>) -> Result<(), Rejected> {
        let full = self.router.apply(changes)?;
        self.shortage.more(full);
        Ok(())
    }

    /// These numbers may be another interface's from now on, which has features and a port of its
    /// own.
    pub fn release(&mut self, ids: impl Iterator<Item = InterfaceId>) {
        for id in ids {
            workers::forget(&mut self.router.workers, id);
            match self.router.release(id) {
                Ok(full) => self.shortage.more(full),
                Err(error) => warn!("{error}"),
            }
        }
    }

    /// The port behind one of our devices has gone up or down.
    pub fn set_port_up(&mut self, link: u32, up: bool) {
        let changes = self.translator.set_port_up(link, up);
        self.apply(changes);
    }

    /// What one of our devices' interfaces has for the host leaves by this host interface from now on.
    pub fn set_host(&mut self, link: u32, host: Option<InterfaceId>) {
        let changes = self.translator.set_host(link, host);
        self.apply(changes);
    }

    /// One of our devices' interfaces does this at layer 2 from now on.
    pub fn set_l2(&mut self, link: u32, l2: Option<L2>) {
        let changes = self.translator.set_l2(link, l2);
        self.apply(changes);
    }

    /// One of our devices' bonds spreads what leaves this way from now on.
    pub fn set_bond(&mut self, link: u32, spread: Spread) {
        let changes = self.translator.set_bond(link, spread);
        self.apply(changes);
    }

    /// One of our devices' interfaces is this tunnel from now on.
    pub fn set_tunnel(&mut self, link: u32, tunnel: Tunnel) {
        let changes = self.translator.set_tunnel(link, tunnel);
        self.apply(changes);
    }

    /// One of our devices' interfaces is on top of this one, with these tags, from now on.
    pub fn set_on(&mut self, link: u32, on: (InterfaceId, Tags)) {
        let changes = self.translator.set_on(link, on);
        self.apply(changes);
    }

    /// Lets the router agree with the other ends of bonds on what members carry.
    pub fn negotiate(&mut self) {
        let now = self.router.started().elapsed();
        self.router.negotiate(now);
    }

    /// Lets the router do what it has put off.
    pub fn tick(&mut self) {
        self.router.tick();
        let now = self.router.started().elapsed().as_secs() as u32;
        self.router.age(now);
        for found in router::l2::show::loops(&mut self.router, now) {
            warn!("{found}");
        }
        let waiting = self.router.deferred() > 0;
        self.shortage.say(waiting, Instant::now());
        drop(self.router.collect());
    }

    fn apply(&mut self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        match self.router.apply(changes) {
            Ok(full) => self.shortage.more(full),
            Err(e) => warn!("cannot follow a change of the kernel's routes or neighbors: {e}"),
        }
    }
}
