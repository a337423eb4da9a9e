//! The control thread's loop.

use std::error::Error;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use tracing::{error, info};

use control::history::Transactions;

use crate::answer::{self, Running};
use crate::daemon::Daemon;
use crate::inbox::Message;
use crate::transaction;

/// Longest wait for news before workers are looked after: packets for a new neighbor wait as long
/// until the kernel is asked. A look costs microseconds.
const TICK: Duration = Duration::from_millis(10);

/// Serves until the end, and says whether the router came `up`.
///
/// # Errors
/// It did not come up, or a worker has died.
pub fn serve(
    daemon: &mut Daemon,
    transactions: &mut Transactions,
    up: &mut bool,
) -> Result<(), Box<dyn Error>> {
    let mut tick = Instant::now() + TICK;
    // Who asks before has the answer of a router that is up.
    let mut early = Vec::new();
    loop {
        let left = tick.saturating_duration_since(Instant::now());
        match daemon.inbox.next(left) {
            Ok(Message::Kernel(batch)) => daemon.kernel(batch),
            Ok(Message::Ask(ask)) if !*up => early.push(ask),
            Ok(Message::Ask(ask)) => answer::reply(&ask, daemon, Running::Settled(transactions)),
            Ok(Message::Reload) => transaction::reload(transactions, daemon),
            Ok(Message::Stop) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if !*up && daemon.comes_up()? {
            daemon.look_at_settings(transactions.refused());
            *up = true;
            transaction::started(transactions);
            ready();
            for ask in early.drain(..) {
                answer::reply(&ask, daemon, Running::Settled(transactions));
            }
        }
        let now = Instant::now();
        if now >= tick {
            daemon.tick(now)?;
            // One that does not come up has only one thing to say: why.
            if *up {
                daemon.look_at_settings(transactions.refused());
            }
            transaction::tick(transactions, daemon, now);
            tick = Instant::now() + TICK;
        }
    }
}

/// Tells systemd, and the reader of the log, that packets are forwarded.
fn ready() {
    if let Err(e) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        error!("cannot tell the service manager that the router is ready: {e}");
    }
    info!("ready");
}
