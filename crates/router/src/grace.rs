//! The grace periods of what reads the tables beside the workers. A thread of its own waits for
//! them: the kernel takes milliseconds, and beside busy programs a hundred and more.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Waits for XDP programs that read the tables beside the workers. False if that failed: it is
/// called again then.
pub type Grace = Box<dyn Fn() -> bool + Send>;

/// A thread that waits for a grace period at a time, whenever it is told to begin. It ends with
/// this.
pub(crate) struct Waiter {
    begin: Sender<()>,
    over: Receiver<bool>,
}

impl Waiter {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no more threads.
    pub(crate) fn start(grace: Grace) -> io::Result<Self> {
        let (begin, begun) = channel();
        let (ended, over) = channel();
        thread::Builder::new()
            .name("grace".into())
            .spawn(move || while begun.recv().is_ok() && ended.send(grace()).is_ok() {})?;
        Ok(Waiter { begin, over })
    }

    /// A grace period begins now.
    pub(crate) fn begin(&self) {
        // Without the thread it is never over: nothing is used again that may still be read.
        let _ = self.begin.send(());
    }

    /// True if the one that has begun is over. One that could not be waited for begins anew.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended(self.over.try_recv().ok())
    }

    /// Waits until the one that has begun is over. False if it could not be waited for; then
    /// another one begins.
    pub(crate) fn wait(&self) -> bool {
        self.has_ended(self.over.recv().ok())
    }

    fn has_ended(&self, ended: Option<bool>) -> bool {
        if ended == Some(false) {
            self.begin();
        }
        ended == Some(true)
    }
}
