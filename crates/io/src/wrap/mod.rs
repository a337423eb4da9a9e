//! Wrappers over any port.

/// The methods that a wrapper leaves to its `inner` port: all but name, receive and transmit.
macro_rules! pass_on {
    () => {
        fn flush(&mut self, bufs: &mut graph::Buffers) {
            self.inner.flush(bufs);
        }

        fn fd(&self) -> Option<std::os::fd::RawFd> {
            self.inner.fd()
        }

        fn arm(&mut self) -> bool {
            self.inner.arm()
        }

        fn forgets(&self) -> bool {
            self.inner.forgets()
        }

        fn disarm(&mut self) {
            self.inner.disarm();
        }

        fn fill(&mut self, bufs: &mut graph::Buffers) {
            self.inner.fill(bufs);
        }

        fn drain(&mut self, bufs: &mut graph::Buffers) {
            self.inner.drain(bufs);
        }

        fn counters(&self) -> graph::PortCounters {
            self.inner.counters()
        }
    };
}
use pass_on;

mod fault;
mod rate;
mod sample;

pub use fault::{Fault, Odds};
pub use rate::Rate;
pub use sample::Sample;
