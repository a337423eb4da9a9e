//! The control thread's side of a worker.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::counters::ExecutorCounters;
use crate::ring::{Consumer, Producer};
use crate::waker::Waker;
use crate::{PortId, TxPlacement, WorkerPort, trace};

/// A command from the control thread to a worker.
pub enum Command {
    /// Serve this queue of a port. The packets of its interface leave by the port.
    AddPort(Box<WorkerPort>),
    /// Give back the queues of this port.
    RemovePort(PortId),
    /// Sets which worker sends what leaves by this port.
    PlaceTx(PortId, TxPlacement),
    /// The packets of this interface leave by this port; 0: by none.
    Egress(u16, PortId),
    /// The packets of this interface pass this node before its port, the same one for all
    /// interfaces; `None`: they do not.
    Output(u16, Option<u16>),
    /// The packets that come in by this interface's port enter this node first; `None`: that of
    /// their port.
    Input(u16, Option<u16>),
    /// Trace packets; `None` ends tracing.
    Trace(Option<trace::Writer>),
    /// End the thread.
    Stop,
}

/// A thing that a worker gives back, to be dropped on the control thread.
pub enum Returned {
    /// A port it no longer serves.
    Port(Box<WorkerPort>),
    /// A trace it no longer writes.
    Trace(trace::Writer),
}

/// The control thread's hold on a worker.
pub struct Handle {
    /// The processor that its thread is pinned to; set by whoever pins it.
    pub cpu: Option<usize>,
    /// Its counters.
    pub counters: ExecutorCounters,
    commands: Producer<Command>,
    returned: Consumer<Returned>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    pub(crate) fn new(
        counters: ExecutorCounters,
        commands: Producer<Command>,
        returned: Consumer<Returned>,
        waker: Arc<Waker>,
    ) -> Self {
        Handle {
            cpu: None,
            counters,
            commands,
            returned,
            waker,
            thread: None,
        }
    }

    /// Remembers the thread that its worker runs on.
    pub(crate) fn started(&mut self, thread: JoinHandle<()>) {
        self.thread = Some(thread);
    }

    /// Sends a command, or gives it back if too many are waiting.
    pub fn command(&mut self, command: Command) -> Result<(), Command> {
        self.commands.push(command)?;
        self.waker.wake();
        Ok(())
    }

    /// True once the worker has taken all commands: it obeys them before it takes another packet.
    pub fn has_obeyed(&self) -> bool {
        self.commands.is_empty()
    }

    /// The next thing that the worker has given back.
    pub fn returned(&mut self) -> Option<Returned> {
        self.returned.pop()
    }

    /// Wakes the worker, so that it sees a new snapshot soon.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// True while its thread runs.
    pub fn alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Reason for the end of the thread without [`stop`](Self::stop): the message of its panic.
    /// `None` while it runs, and if it was never started.
    pub fn death(&mut self) -> Option<String> {
        let thread = self.thread.take_if(|t| t.is_finished())?;
        let why = thread.join().err().map(|panic| {
            let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
            text.or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a message".into())
        });
        Some(why.unwrap_or_else(|| "its thread returned".into()))
    }

    /// Ends the thread and waits until it has ended.
    pub fn stop(&mut self) {
        while self.alive() && self.command(Command::Stop).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}
