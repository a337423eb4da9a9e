//! The generator: a program that makes each live frame the next packet of a plan, run by the kernel itself
//! (`BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`).
//!
//! One endless run on a thread of its own: each run ends with a sleep of some 25 ms in the kernel, so many short ones
//! would send in bursts with gaps. The thread takes its CPU wholly: a slot that is not due is dropped and the next is
//! tried.

mod plan;
mod state;
mod thread;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub use plan::{LivePlan, LiveStream, MAX_FRAME, MAX_STREAMS, MAX_VARS, Op, Rate, Var};

use crate::error::Error;
use crate::map::Mapping;
use crate::object::{Loaded, elf};
use crate::{StreamCount, inventory, sys};
use state::State;
use thread::Generator;

/// The generator cannot do it.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The plan or the interface is beyond live frames; AF_XDP may do it.
    #[error("live frames cannot do this: {why}")]
    DoesNotFit {
        /// What does not fit.
        why: String,
    },
    /// The program or the interface.
    #[error(transparent)]
    Xdp(#[from] Error),
    /// The run ended by itself.
    #[error("the live-frame run failed: {0}")]
    Run(io::Error),
}

/// What the schedule asked for and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveTotals {
    /// By stream, in the order of the plan.
    pub sent: Vec<StreamCount>,
    /// Packets that the schedule asked for.
    pub due: u64,
    /// Of these, packets given up because they were too late.
    pub shortfall: u64,
}

/// A running generator. Dropping it stops it.
#[derive(Debug)]
pub struct Live {
    /// Before the mapping and the program in drop order: its thread runs the one and changes the other.
    generator: Generator,
    variables: Mapping,
    streams: usize,
    burst: Duration,
}

impl Live {
    /// Starts sending out of an interface of the calling thread's network namespace.
    ///
    /// The frames go by the interface's `ndo_xdp_xmit`. On a veth that needs an XDP program or GRO at its peer, which must
    /// stay there: frames that the interface refuses later on are counted as sent.
    ///
    /// # Errors
    /// [`LiveError::DoesNotFit`] if the plan or the interface is beyond live frames; wrong plans; a CPU that is not
    /// there; what the kernel says.
    pub fn start(ifindex: u32, plan: &LivePlan) -> Result<Self, LiveError> {
        check_interface(ifindex)?;
        let program = Arc::new(Loaded::new(elf!("live"), "parshall_live", &[])?);
        let variables = program.map(".bss").mapping()?;
        let frame = variables.view::<State>().fill(plan)?;
        let generator = Generator::start(program, frame, ifindex, plan.cpu)
            .map_err(Error::doing("starting the generator's thread"))?;
        let live = Self {
            generator,
            variables,
            streams: plan.streams.len(),
            burst: plan.burst,
        };
        live.wait_for_start(0)?;
        Ok(live)
    }

    /// Waits until the program has run, so that what the kernel refuses is an error of the start.
    fn wait_for_start(&self, due: u64) -> Result<(), LiveError> {
        let state = self.state();
        while state.last.load(Relaxed) == 0 && state.due.load(Relaxed) == due {
            self.check()?;
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn state(&self) -> &State {
        self.variables.view()
    }

    /// Changes the rate while running. What was due before stays due; at rate 0 that is all.
    pub fn set_rate(&self, rate: Rate) {
        self.state().set_rate(rate, self.burst);
    }

    /// Stops sending and frees the CPU; when this returns, nothing is under way in the program and the counters stand.
    /// The time until [`resume`](Self::resume) is not part of the schedule.
    pub fn pause(&self) {
        self.generator.pause();
        // The program takes its next look at the clock as the start.
        self.state().last.store(0, Relaxed);
    }

    /// Goes on sending after a pause; when this returns, it does.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn resume(&self) -> Result<(), LiveError> {
        let due = self.due();
        self.generator.resume();
        self.wait_for_start(due)
    }

    /// Packets and bytes handed to the interface by stream, in the order of the plan. Exact after a pause; while it runs,
    /// packets and bytes may be a packet apart.
    pub fn sent(&self) -> Vec<StreamCount> {
        let streams = self.state().stream.iter().take(self.streams);
        let count = |packets: u64, bytes: u64| StreamCount { packets, bytes };
        streams
            .map(|stream| count(stream.packets.load(Relaxed), stream.bytes.load(Relaxed)))
            .collect()
    }

    /// Packets that the schedule has asked for so far: the integral of the rate over the time not paused, as of the
    /// program's last look at the clock.
    pub fn due(&self) -> u64 {
        self.state().due.load(Relaxed)
    }

    /// Packets of the schedule that were given up, being late by more than the plan's burst.
    pub fn shortfall(&self) -> u64 {
        self.state().lost.load(Relaxed)
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// What ended it; told once.
    pub fn check(&self) -> Result<(), LiveError> {
        match self.generator.failure() {
            None => Ok(()),
            Some(e) => Err(LiveError::Run(e)),
        }
    }

    /// Stops it and gives the final, exact figures.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn stop(self) -> Result<LiveTotals, LiveError> {
        self.pause();
        self.check()?;
        Ok(LiveTotals {
            sent: self.sent(),
            due: self.due(),
            shortfall: self.shortfall(),
        })
    }
}

fn check_interface(ifindex: u32) -> Result<(), LiveError> {
    let Some(name) = sys::interface_name(ifindex) else {
        return Err(Error::NoInterface(ifindex).into());
    };
    match inventory::features(ifindex)? {
        Some(features) if !features.transmit() => Err(LiveError::DoesNotFit {
            why: format!(
                "{name} takes no redirected frames (on a veth, its peer needs an XDP program or GRO)"
            ),
        }),
        _ => Ok(()),
    }
}
