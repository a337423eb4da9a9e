//! `parshall run`: the router daemon.
//!
//! One thread, the control thread, owns router, ports and the kernel's mirror; everything reaches
//! it by one channel: what the kernel says, what operators ask, signals.

mod answer;
mod daemon;
mod displaced;
mod facts;
mod faults;
mod foreign;
mod inbox;
mod interfaces;
mod loopbacks;
mod memory;
mod neighbors;
mod reply;
mod routing;
mod shortage;
mod static_routes;
mod target;
mod transaction;
mod warnings;
mod workers;

use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use clap::Args;
use tracing::{error, info};

use control::config::Desired;
use control::facts::Batch;
use control::history::{self, Started, Transactions};

use answer::{ControlHandle, ControlRequest};
use daemon::Daemon;
use inbox::Inbox;

/// The router.
#[derive(Args)]
pub struct Run {
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Control socket, in place of the configuration's
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Directory of the configurations that were applied [default: below /var/lib/parshall, named by
    /// the path of the configuration file]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// End without warning after so many steps of changes, as tests of sudden ends want it
    #[arg(long, value_name = "N", hide = true)]
    end_after_steps: Option<usize>,
    /// Fail at each step of a change once, in turn, before the change is made, as tests of failures
    /// want it
    #[arg(long, hide = true)]
    fail_each_step: bool,
}

/// What reaches the control thread.
pub enum Message {
    /// News of the kernel.
    Kernel(Batch),
    /// Somebody asks.
    Ask(ControlRequest),
    /// The configuration file is to be read again.
    Reload,
    /// Stop in good order.
    Stop,
}

impl Message {
    /// Whether it is taken between the steps of a change: packets wait for the news of the kernel,
    /// and who only looks waits for nobody.
    pub fn is_urgent(&self) -> bool {
        match self {
            Message::Kernel(_) => true,
            Message::Ask(ask) => ask.only_looks(),
            Message::Reload | Message::Stop => false,
        }
    }
}

impl From<Batch> for Message {
    fn from(batch: Batch) -> Self {
        Message::Kernel(batch)
    }
}

/// How long the control thread waits for news before it looks after its workers.
const TICK: Duration = Duration::from_millis(10);

impl Run {
    /// Runs until it is told to stop.
    pub fn run(self) -> crate::Outcome {
        if !rustix::process::geteuid().is_root() {
            return Err(
                "run: needs root (raw sockets, XDP): start it with sudo or as a service".into(),
            );
        }
        let state = self.state.clone();
        let state = state.unwrap_or_else(|| transaction::state(&self.config));
        let mut started = transaction::start(&self.config, &state)?;
        let _held = history::hold(&state).map_err(|why| format!("run: {why}"))?;
        logging();
        loop {
            let others = started.others.clone();
            let why = match self.attempt(started, &others) {
                Ok(ended) => return ended,
                Err(why) => why,
            };
            started = others.next(&why.to_string()).ok_or(why)?;
            transaction::tell(&started);
        }
    }

    /// Runs with a configuration until it is told to stop. How it ended.
    ///
    /// # Errors
    /// Why it did not come up. If one of the others is to follow, the kernel is left for it as it is.
    fn attempt(
        &self,
        started: Started,
        others: &history::Others,
    ) -> Result<crate::Outcome, Box<dyn Error>> {
        let Started {
            mut transactions,
            wanted: mut config,
            ..
        } = started;
        if let Some(socket) = &self.socket {
            config.control.socket.clone_from(socket);
        }
        on_this_machine(&config)?;
        let (sender, inbox) = Inbox::new();
        obey_signals(sender.clone())?;
        let server =
            control::api::Server::start(&config.control, ControlHandle::new(sender.clone()))?;
        let mut daemon = Daemon::start(config, sender, inbox)?;
        daemon.faults.end_after = self.end_after_steps;
        daemon.faults.fail_each = self.fail_each_step;
        let mut up = false;
        let outcome = serve(&mut daemon, &mut transactions, &mut up);
        daemon.inbox.close();
        if outcome.is_ok() {
            info!("stopping");
        }
        drop(server);
        match outcome {
            Err(why) if !up && others.any() => {
                daemon.leave();
                Err(why)
            }
            outcome => {
                daemon.stop();
                Ok(outcome)
            }
        }
    }
}

/// Checks that what the file names is there.
fn on_this_machine(config: &Desired) -> crate::Outcome {
    if let Some(netns) = config.netns.as_deref().filter(|path| !path.exists()) {
        let path = netns.display();
        let advice = "make it first (`ip netns add NAME`) or correct `netns:`";
        return Err(format!("run: there is no network namespace {path}: {advice}").into());
    }
    let there = |cpu: &&u16| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
    if let Some(cpu) = config.workers.cpus.iter().find(|cpu| !there(cpu)) {
        let advice = "`lscpu --extended` lists those of this machine; correct `workers:`";
        return Err(format!("run: there is no processor {cpu}: {advice}").into());
    }
    Ok(())
}

/// Serves until the end, and says whether the router came `up`.
fn serve(daemon: &mut Daemon, transactions: &mut Transactions, up: &mut bool) -> crate::Outcome {
    let mut tick = Instant::now() + TICK;
    // Who asks before has the answer of a router that is up.
    let mut early = Vec::new();
    loop {
        let left = tick.saturating_duration_since(Instant::now());
        match daemon.inbox.next(left) {
            Ok(Message::Kernel(batch)) => daemon.kernel(batch),
            Ok(Message::Ask(ask)) if !*up => early.push(ask),
            Ok(Message::Ask(ask)) => ask.answer(daemon, Some(transactions)),
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
                ask.answer(daemon, Some(transactions));
            }
        }
        if Instant::now() >= tick {
            daemon.tick()?;
            // One that does not come up has only one thing to say: why.
            if *up {
                daemon.look_at_settings(transactions.refused());
            }
            transaction::tick(transactions, daemon, Instant::now());
            tick = Instant::now() + TICK;
        }
    }
}

fn logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PARSHALL_LOG")
        .unwrap_or_else(|_| "info".into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // It would report them to standard error, and panic if nobody reads that any more.
        .log_internal_errors(false)
        .try_init();
}

/// Stops, or reads the configuration again, when told so by a signal.
fn obey_signals(sender: SyncSender<Message>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in &mut signals {
                let message = match signal {
                    SIGHUP => Message::Reload,
                    _ => Message::Stop,
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        })?;
    Ok(())
}

/// Tells systemd, and the reader of the log, that packets are forwarded.
fn ready() {
    if let Err(e) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        error!("cannot tell the service manager that we are ready: {e}");
    }
    info!("ready");
}
