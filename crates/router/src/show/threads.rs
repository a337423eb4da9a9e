//! `show threads`: the workers.

use std::fmt;

use serde::Serialize;

use super::counts::since;
use super::text::column;
use crate::{Router, worker_name};

/// All threads that move packets.
#[derive(Debug, Clone, Serialize)]
pub struct Threads {
    /// By number.
    pub threads: Vec<Thread>,
}

/// One worker since its start.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Thread {
    /// Number of the thread; workers count from 1.
    pub id: usize,
    /// Name.
    pub name: String,
    /// Processor that it is pinned to.
    pub cpu: Option<usize>,
    /// True while it runs.
    pub alive: bool,
    /// Rounds.
    pub loops: u64,
    /// Rounds that moved packets.
    pub busy_loops: u64,
    /// Times it slept.
    pub sleeps: u64,
    /// Packets handed to other workers.
    pub handoffs: u64,
}

/// The workers.
pub fn threads(router: &Router) -> Threads {
    let counts = since(router, &[]);
    let workers = router.workers.iter().zip(counts).enumerate();
    Threads {
        threads: workers
            .map(|(i, (w, c))| Thread {
                id: i + 1,
                name: worker_name(i),
                cpu: w.cpu,
                alive: w.alive(),
                loops: c.worker.loops,
                busy_loops: c.worker.busy_loops,
                sleeps: c.worker.sleeps,
                handoffs: c.worker.handoffs,
            })
            .collect(),
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "ID  Name                 CPU  State               Loops           Busy         Sleeps       Handoffs"
        )?;
        for t in &self.threads {
            writeln!(
                f,
                "{:>2}  {}{:>3}  {:<8} {:>16} {:>14} {:>14} {:>14}",
                t.id,
                column(&t.name, 21),
                t.cpu.map_or("-".into(), |c| c.to_string()),
                if t.alive { "running" } else { "stopped" },
                t.loops,
                t.busy_loops,
                t.sleeps,
                t.handoffs
            )?;
        }
        Ok(())
    }
}
