//! `parshall run`: the router daemon.
//!
//! The crate `daemon` is the router; this is how the command starts and ends it.

mod start;

use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use clap::Args;
use tracing::{info, warn};

use control::config::Desired;
use control::history::{self, Seed, Started};
use daemon::{ControlHandle, Daemon, Inbox, Message};

use crate::output;

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

impl Run {
    /// Runs until it is told to stop.
    pub fn run(self) -> crate::Outcome {
        if !rustix::process::geteuid().is_root() {
            return Err(
                "run: needs root (raw sockets, XDP): start it with sudo or as a service".into(),
            );
        }
        let state = self.state.clone();
        let state = state.unwrap_or_else(|| start::state(&self.config));
        let mut started = start::start(&self.config, &state)?;
        let told = |line: &str| output::tell(&format!("parshall: {line}\n"));
        let _held = history::hold(&state, told).map_err(|why| format!("run: {why}"))?;
        logging();
        let (seed, note) = Seed::of(&state).map_err(|why| format!("run: {why}"))?;
        if let Some(note) = note {
            warn!("{note}");
        }
        loop {
            let others = started.others.clone();
            let why = match self.attempt(started, seed, &others) {
                Ok(ended) => return ended,
                Err(why) => why,
            };
            started = others.next(&why.to_string()).ok_or(why)?;
            start::tell(&started);
        }
    }

    /// Runs with a configuration until it is told to stop. How it ended.
    ///
    /// # Errors
    /// The reason why it did not come up. If one of the others is to follow, the kernel is left for
    /// it as it is.
    fn attempt(
        &self,
        started: Started,
        seed: Seed,
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
        let mut daemon = Daemon::start(config, seed, sender, inbox)?;
        daemon.faults.end_after = self.end_after_steps;
        daemon.faults.fail_each = self.fail_each_step;
        let mut up = false;
        let outcome = daemon::serve(&mut daemon, &mut transactions, &mut up);
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
