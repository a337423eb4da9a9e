//! The mirror of the kernel: a thread that follows its tables, and the translation of what it sees
//! for the router.
//!
//! The thread dumps everything once, then follows the news. It dumps again if news was lost (the
//! socket's buffer was full), if the kernel has changed routes without announcing it (it drops the
//! routes of a link that goes down silently), and every so often in any case; [`Translator`] yields
//! only the differences.

mod addresses;
mod entry;
mod owned;
mod rib;
mod routes;
mod topology;
mod translator;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kernel::event::{EventFd, poll, pollfd};
use kernel::netlink::{Dump, Messages, Socket};

pub use owned::Binding;
pub use routes::{Made, MadeRoute};
pub use translator::{LinkNews, Translator};

use crate::facts::{Batch, Event, Section};
use crate::netlink::{self, decode};

/// Events a batch holds before it is handed on: so many that a message costs nothing for each
/// event, so few that the receiver applies them in milliseconds and looks at its other messages.
const BATCH: usize = 4096;
/// Batches under way before the mirror waits for its receiver. News then waits in the socket, and
/// if it overflows is dumped, so that memory stays bounded.
const DEPTH: usize = 64;
/// Time to let the kernel finish what an event has begun before everything is dumped again: at
/// once, routes that it is about to drop would still be there.
const SETTLE: Duration = Duration::from_millis(200);
/// Multicast groups to subscribe to, beside next-hop objects, which kernels before 5.3 do not have.
const GROUPS: [u32; 6] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_NEIGH,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV6_ROUTE,
];

/// Options of a mirror.
#[derive(Debug, Clone)]
pub struct Options {
    /// The network namespace to look at, as a path under /run/netns; `None`: our own.
    pub netns: Option<PathBuf>,
    /// Everything is read again and compared this often.
    pub interval: Duration,
    /// Bytes of news that may wait; the kernel doubles it for its own overhead.
    pub receive_buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            netns: None,
            // The net below the news, which should be enough: seldom, as a dump reads every route.
            interval: Duration::from_secs(60),
            // Tens of thousands of routes: a burst of a routing protocol costs no dump.
            receive_buffer: 32 << 20,
        }
    }
}

/// Statistics of a mirror, for people: read and written relaxed, as nothing depends on their order.
#[derive(Debug, Default)]
pub struct Counters {
    /// Number of times that news was lost because the buffer was full.
    pub overflows: AtomicU64,
    /// Number of times that everything was dumped.
    pub dumps: AtomicU64,
    /// Events handed on.
    pub events: AtomicU64,
    /// Dumps that failed and were tried again.
    pub failures: AtomicU64,
}

/// A running mirror; dropping it ends its thread.
#[derive(Debug)]
pub struct Mirror {
    counters: Arc<Counters>,
    wishes: Arc<Wishes>,
    thread: Option<JoinHandle<()>>,
}

/// The owner's requests to the thread.
#[derive(Debug)]
struct Wishes {
    /// Signalled after a wish is stored with release; the thread clears it and loads with acquire:
    /// it misses no wish, and sees what its maker did before.
    wake: EventFd,
    stop: AtomicBool,
    /// Number of calls of [`Mirror::catch_up`].
    asked: AtomicU64,
}

impl Mirror {
    /// Starts a mirror of a namespace with the default options; its batches come by the channel.
    ///
    /// # Errors
    /// The namespace cannot be entered; the process or the system has no more file descriptors or
    /// threads.
    pub fn open(netns: Option<&Path>) -> io::Result<(Mirror, Receiver<Batch>)> {
        let (sender, receiver) = sync_channel(DEPTH);
        let options = Options {
            netns: netns.map(Path::to_owned),
            ..Options::default()
        };
        Ok((Self::start(options, sender)?, receiver))
    }

    /// Starts a mirror whose batches go into a channel that may carry other things too.
    ///
    /// # Errors
    /// As [`Mirror::open`].
    pub fn start<T: From<Batch> + Send + 'static>(
        options: Options,
        sender: SyncSender<T>,
    ) -> io::Result<Mirror> {
        let netns = options.netns.as_deref();
        let news = Socket::route(netns)?;
        news.receive_buffer(options.receive_buffer)?;
        for group in GROUPS {
            news.subscribe(group)?;
        }
        let nexthops = news.subscribe(libc::RTNLGRP_NEXTHOP).is_ok();
        let wishes = Arc::new(Wishes {
            wake: EventFd::new()?,
            stop: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        });
        let counters = Arc::new(Counters::default());
        let follower = Follower {
            news,
            dumps: Socket::route(netns)?,
            nexthops,
            links: HashMap::new(),
            interval: options.interval,
            due: Instant::now(),
            rested: Instant::now(),
            batches: Batches {
                sender,
                batch: Batch::default(),
                counters: counters.clone(),
            },
            wishes: wishes.clone(),
        };
        let thread = thread::Builder::new()
            .name("kernel-mirror".into())
            .spawn(move || {
                let Gone = follower.run();
            })?;
        Ok(Mirror {
            counters,
            wishes,
            thread: Some(thread),
        })
    }

    /// Asks for [`Event::CaughtUp`] with the number that is returned: whatever the kernel has done
    /// by now, as what was asked of it before, is said until then.
    pub fn catch_up(&self) -> u64 {
        let number = self.wishes.asked.fetch_add(1, Ordering::Release) + 1;
        self.wishes.wake.signal();
        number
    }

    /// Its statistics.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // The thread may be waiting for room in the channel; it ends when the receiver is dropped,
        // so it is not joined.
        self.wishes.stop.store(true, Ordering::Release);
        self.wishes.wake.signal();
        self.thread.take();
    }
}

/// Nobody takes the events any more, or the mirror was told to stop.
struct Gone;

/// Gathers events into batches and hands these on.
struct Batches<T> {
    sender: SyncSender<T>,
    batch: Batch,
    counters: Arc<Counters>,
}

impl<T: From<Batch>> Batches<T> {
    fn push(&mut self, event: Event) -> Result<(), Gone> {
        self.batch.events.push(event);
        if self.batch.events.len() >= BATCH {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Gone> {
        if self.batch.events.is_empty() {
            return Ok(());
        }
        let next = Batch {
            events: Vec::with_capacity(64),
            resync: self.batch.resync,
        };
        let batch = std::mem::replace(&mut self.batch, next);
        self.counters
            .events
            .fetch_add(batch.events.len() as u64, Ordering::Relaxed);
        self.sender.send(batch.into()).map_err(|_| Gone)
    }
}

struct Follower<T> {
    news: Socket,
    dumps: Socket,
    nexthops: bool,
    /// Admin state and carrier of each link, to notice their changes.
    links: HashMap<u32, (bool, bool)>,
    interval: Duration,
    /// Time of the next dump of everything.
    due: Instant,
    /// Not before this, lest a link that flaps keeps us dumping.
    rested: Instant,
    batches: Batches<T>,
    wishes: Arc<Wishes>,
}

impl<T: From<Batch>> Follower<T> {
    fn run(mut self) -> Gone {
        loop {
            let step = if self.due <= Instant::now() {
                self.dump_all()
            } else {
                self.wait_and_follow()
            };
            if let Err(gone) = step {
                return gone;
            }
        }
    }

    fn wait_and_follow(&mut self) -> Result<(), Gone> {
        let timeout = self.due.saturating_duration_since(Instant::now());
        let mut fds = [
            pollfd(&self.news, libc::POLLIN),
            pollfd(&self.wishes.wake, libc::POLLIN),
        ];
        poll(&mut fds, Some(timeout));
        match fds.map(|fd| fd.revents != 0) {
            [_, true] => self.grant(),
            [true, false] => self.follow(),
            [false, false] => Ok(()),
        }
    }

    /// Stops, or says that it has caught up.
    fn grant(&mut self) -> Result<(), Gone> {
        self.wishes.wake.clear();
        if self.wishes.stop.load(Ordering::Acquire) {
            return Err(Gone);
        }
        let asked = self.wishes.asked.load(Ordering::Acquire);
        self.follow()?;
        self.batches.push(Event::CaughtUp(asked))?;
        self.batches.flush()
    }

    /// Reads the news there is.
    fn follow(&mut self) -> Result<(), Gone> {
        loop {
            match self.news.receive(false) {
                Ok(Some(bytes)) => {
                    for event in Messages(bytes).filter_map(|message| decode::event(&message)) {
                        if unsettles(&mut self.links, &event) {
                            self.due = self.due.min(self.rested.max(Instant::now() + SETTLE));
                        }
                        self.batches.push(event)?;
                    }
                }
                Ok(None) => return self.batches.flush(),
                Err(_) => {
                    // ENOBUFS: nobody knows what was lost, so everything is read again. What still
                    // waits is older than that.
                    self.batches
                        .counters
                        .overflows
                        .fetch_add(1, Ordering::Relaxed);
                    while matches!(self.news.receive(false), Ok(Some(_))) {}
                    self.due = self.due.min(self.rested.max(Instant::now()));
                    return self.batches.flush();
                }
            }
        }
    }

    fn dump_all(&mut self) -> Result<(), Gone> {
        let begun = Instant::now();
        self.batches.batch.resync = true;
        let mut again = false;
        for section in Section::ALL {
            if section != Section::Nexthops || self.nexthops {
                again |= !self.dump(section)?;
            }
        }
        self.batches.batch.resync = false;
        self.batches.counters.dumps.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        self.rested = now + 2 * (now - begun);
        self.due = self
            .rested
            .max(now + if again { SETTLE } else { self.interval });
        Ok(())
    }

    /// Dumps a section; false if it must be done again.
    fn dump(&mut self, section: Section) -> Result<bool, Gone> {
        self.batches.push(Event::DumpBegin(section))?;
        let (batches, links, mut gone) = (&mut self.batches, &mut self.links, false);
        let result = self.dumps.dump(netlink::dump(section), |message| {
            if let Some(event) = decode::event(message).filter(|_| !gone) {
                unsettles(links, &event);
                gone = batches.push(event).is_err();
            }
        });
        if gone {
            return Err(Gone);
        }
        if result.is_err() {
            self.batches
                .counters
                .failures
                .fetch_add(1, Ordering::Relaxed);
        }
        let complete = matches!(result, Ok(Dump::Complete));
        self.batches.push(Event::DumpEnd { section, complete })?;
        // The interface that waits for a device may take it over before its routes come.
        self.batches.flush()?;
        Ok(complete)
    }
}

/// Returns true if the kernel drops routes with this without announcing each: when a link goes down
/// or an address goes away. What revives routes (carrier, a link that comes up) counts too. A
/// next-hop object that goes takes its routes along silently, too, but [`Translator`] knows which
/// they are.
fn unsettles(links: &mut HashMap<u32, (bool, bool)>, event: &Event) -> bool {
    match event {
        Event::Link(link) => {
            let state = (link.admin_up, link.carrier);
            links
                .insert(link.index, state)
                .is_some_and(|before| before != state)
        }
        Event::LinkGone(index) => links.remove(index).is_some(),
        Event::AddressGone(..) => true,
        _ => false,
    }
}
