//! The generator: a program that makes each live frame the next packet of a plan, run by the kernel
//! itself (`BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`), and redirects it to the plan's
//! interface.
//!
//! One run serves all interfaces, packet by packet: two on one CPU would take turns by the
//! scheduler's slices, and each would send the packets of a slice in a burst.
//!
//! The runs, one after the other, are on a thread of their own, from the first start to the last
//! stop. The thread takes all of its CPU: a slot that is not due is dropped and the next is tried.
//! A run ends after [`SLOTS`] slots; then the next begins at once, and what became due in between
//! goes late, as after any other moment without the CPU. The program is registered
//! ([`registration`]), or each end of a run would take tens of milliseconds.

mod plan;
mod registration;
mod state;
#[cfg(test)]
mod tests;
mod thread;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::netdev;

pub use plan::{
    LivePlan, LiveStream, MAX_FRAME, MAX_ROUND, MAX_STREAMS, MAX_VARS, MAX_WAYS, Op, Rate, Var,
};

use crate::error::Error;
use crate::map::Mapping;
use crate::object::{Loaded, elf};
use crate::times::Times;
use crate::{StreamCount, inventory};

use registration::Registration;
use state::{Mark, State, WayState};
use thread::Generator;

/// Slots of a run, 0.1 to 0.2 s of them.
///
/// The kernel holds the RCU read lock during a run and lets go of it only where it finds that it
/// should reschedule (`bpf_test_timer_continue` in net/bpf/test_run.c). A kernel that preempts
/// inside of such sections (`PREEMPT_LAZY`, from Linux 7.0 on the usual one, and `preempt=full`)
/// has always done so before: no grace period ends before the run does. Whatever waits for one, the
/// deletion of a device or a namespace, memory to be freed, waits that long.
const SLOTS: u32 = 1 << 20;

/// The generator cannot do it.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The plan or the interface is beyond live frames; AF_XDP may do it.
    #[error("live frames cannot do this: {why}")]
    DoesNotFit {
        /// Part that does not fit.
        why: String,
    },
    /// The program or the interface.
    #[error(transparent)]
    Xdp(#[from] Error),
    /// The run ended by itself.
    #[error("the live-frame run failed: {0}")]
    Run(io::Error),
}

/// The packets that the schedule asked for, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveTotals {
    /// By stream, in the order of the plan.
    pub sent: Vec<StreamCount>,
    /// Packets that the schedule asked for.
    pub due: u64,
    /// Of these, packets given up because they were too late.
    pub shortfall: u64,
}

/// Between two looks whether the program has done something: far shorter than a measurement.
const LOOK: Duration = Duration::from_micros(50);

/// The generator of one interface. Dropping it stops it.
#[derive(Debug)]
pub struct Live {
    run: Arc<Run>,
    way: usize,
    streams: usize,
    burst: Duration,
    packets: Option<u64>,
    marks: Vec<Mark>,
    /// True if it has been started before.
    started: AtomicBool,
}

/// The one run that all ways share.
#[derive(Debug)]
struct Run {
    /// Before the mapping and the program in drop order: its thread runs the one and changes the
    /// other.
    generator: Generator,
    registration: Option<Registration>,
    variables: Mapping,
    /// The ways that send; without any the generator is paused.
    active: Mutex<Vec<usize>>,
}

impl Run {
    fn way(&self, way: usize) -> &WayState {
        &self.variables.view::<State>().way[way]
    }

    fn active(&self) -> MutexGuard<'_, Vec<usize>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self) -> Result<(), LiveError> {
        self.generator
            .failure()
            .map_or(Ok(()), |e| Err(LiveError::Run(e)))
    }

    /// Waits for something that the program does.
    fn wait(&self, done: impl Fn() -> bool) -> Result<(), LiveError> {
        while !done() {
            self.check()?;
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Live {
    /// Readies a generator for interfaces of the calling thread's network namespace, one for each
    /// of up to [`MAX_WAYS`] plans; nothing is sent yet. While any of them sends it takes all of
    /// the processor `cpu` (None: wherever the scheduler puts it), and those that are behind take
    /// turns.
    ///
    /// The frames go by the interface's `ndo_xdp_xmit`. On a veth that needs an XDP program or GRO
    /// at its peer, which must stay there: frames that the interface refuses later on are counted
    /// as sent.
    ///
    /// # Errors
    /// [`LiveError::DoesNotFit`] if the plans or an interface are beyond live frames; wrong plans;
    /// a CPU that is not there; what the kernel says.
    pub fn open(plans: &[LivePlan], cpu: Option<usize>) -> Result<Vec<Self>, LiveError> {
        Self::with_runs_of(SLOTS, plans, cpu)
    }

    /// [`open`](Self::open) with runs of `slots` slots.
    fn with_runs_of(
        slots: u32,
        plans: &[LivePlan],
        cpu: Option<usize>,
    ) -> Result<Vec<Self>, LiveError> {
        plans
            .iter()
            .try_for_each(|plan| check_interface(plan.ifindex))?;
        let program = Arc::new(Loaded::new(elf!("live"), "parshall_live", &[])?);
        let variables = program.map(".bss").mapping()?;
        let frame = variables.view::<State>().fill(plans)?;
        let registration = Registration::new(&program)?;
        let generator = Generator::start(program, frame, slots, cpu)
            .map_err(Error::doing("starting the generator's thread"))?;
        let run = Arc::new(Run {
            generator,
            registration,
            variables,
            active: Mutex::default(),
        });
        // What the kernel refuses it refuses now.
        run.wait(|| (0..plans.len()).all(|way| run.way(way).is_stopped()))?;
        run.generator.pause();
        let live = |(way, plan): (usize, &LivePlan)| Self {
            run: Arc::clone(&run),
            way,
            streams: plan.streams.len(),
            burst: plan.burst,
            packets: plan.packets,
            marks: Mark::all(plan),
            started: AtomicBool::new(false),
        };
        Ok(plans.iter().enumerate().map(live).collect())
    }

    fn state(&self) -> &WayState {
        self.run.way(self.way)
    }

    /// Begins to send, or goes on at another rate; when this returns, it does. Nothing is left of
    /// an earlier schedule.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn start(&self, rate: Rate) -> Result<(), LiveError> {
        let mut active = self.run.active();
        if active.contains(&self.way) {
            self.state().set_rate(rate, self.burst);
            return self.check();
        }
        let due = self.due();
        self.state().limit(self.packets);
        // Relaxed: `active` is a lock that every start holds.
        if self.started.swap(true, Relaxed) {
            self.state().new_run(&self.marks);
        }
        self.state().set_rate(rate, self.burst);
        if active.is_empty() {
            self.run.generator.resume();
        }
        active.push(self.way);
        self.run.wait(|| self.state().is_running(due))
    }

    /// Changes the rate if it sends. What was due before stays due; at rate 0 that is all.
    pub fn set_rate(&self, rate: Rate) {
        if self.run.active().contains(&self.way) {
            self.state().set_rate(rate, self.burst);
        }
    }

    /// Stops sending: what is late still goes within the plan's burst of time, the rest is given
    /// up. When this returns, the counters stand, and if no other way of the generator sends, its
    /// CPU is free and nothing is under way in the program.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn stop(&self) -> Result<LiveTotals, LiveError> {
        let mut active = self.run.active();
        if active.contains(&self.way) {
            let state = self.state();
            state.set_rate(Rate::Pps(0), self.burst);
            let until = Instant::now() + self.burst;
            let settled = || state.sent() + self.shortfall() >= self.due();
            let done = self.run.wait(|| settled() || Instant::now() >= until);
            state.stop();
            let stopped = done.and_then(|()| self.run.wait(|| state.is_stopped()));
            active.retain(|way| *way != self.way);
            if active.is_empty() {
                self.run.generator.pause();
            }
            stopped?;
        }
        self.check()?;
        Ok(LiveTotals {
            sent: self.sent(),
            due: self.due(),
            shortfall: self.shortfall(),
        })
    }

    /// Packets and bytes handed to the interface by stream, in the order of the plan. Exact after a
    /// stop; while it sends, packets and bytes may be a packet apart.
    pub fn sent(&self) -> Vec<StreamCount> {
        let streams = self.state().stream.iter().take(self.streams);
        let count = |packets: u64, bytes: u64| StreamCount { packets, bytes };
        streams
            .map(|stream| count(stream.packets.load(Relaxed), stream.bytes.load(Relaxed)))
            .collect()
    }

    /// Packets that the schedule has asked for so far: the integral of the rate over the time not
    /// stopped, as of the program's last look at the clock.
    pub fn due(&self) -> u64 {
        self.state().due.load(Relaxed)
    }

    /// Gaps between packets as the schedule let them go, of all runs: those of one look at the
    /// clock are 0 apart. The kernel hands them on to the interface in batches of up to 16. Without
    /// a schedule nobody looks at the clock, and nothing is noted.
    pub fn gaps(&self) -> Times {
        self.state().gaps()
    }

    /// True if all of the plan's packets have been sent or given up since the last start; never if
    /// it has no number of them.
    pub fn is_over(&self) -> bool {
        self.state().is_over()
    }

    /// Packets of the schedule that were given up, being late by more than the plan's burst or left
    /// over at a stop.
    pub fn shortfall(&self) -> u64 {
        self.state().lost.load(Relaxed)
    }

    /// True if the kernel keeps the program in mind between runs. If not (no CAP_SYS_ADMIN, no
    /// veths) it patches its own code at each start and stop and every 0.1 s between.
    pub fn is_registered(&self) -> bool {
        self.run.registration.is_some()
    }

    /// Checks that the generator still runs.
    ///
    /// # Errors
    /// Reason for its end.
    pub fn check(&self) -> Result<(), LiveError> {
        self.run.check()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has called `stop` before.
        let _ = self.stop();
    }
}

fn check_interface(ifindex: u32) -> Result<(), LiveError> {
    let Some(name) = netdev::name(ifindex) else {
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
