//! One at a time on the whole machine, which changes nothing of the kernel's code.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::dispatcher;

/// Nobody else on this machine attaches or detaches an XDP program or sends live frames while this
/// is held, if all who do so hold it.
#[derive(Debug)]
pub struct Alone(
    #[expect(dead_code, reason = "it is held until it is dropped")] Arc<sandbox::Alone>,
);

thread_local! {
    /// Lock that this thread holds.
    static HELD: RefCell<Weak<sandbox::Alone>> = const { RefCell::new(Weak::new()) };
}

/// Waits until nobody else, neither another thread nor another process, is [`Alone`], and makes
/// sure that the kernel's XDP dispatcher is full ([`dispatcher`]), which it then is as long as this
/// process lives.
///
/// A test that attaches, detaches or sends live frames takes it before it sets up anything and
/// holds it to its end: a kernel that changes its own code (each attach does, unless the dispatcher
/// is full) while another processor runs through it may die of it. A thread that has it already
/// gets it again at once, so that what needs it can take it for itself.
///
/// A test whose child process takes [`sandbox::alone`](fn@sandbox::alone) drops this before it starts the child.
///
/// # Panics
/// If `/run/parshall` cannot be written to (needs root), or after 20 minutes, with who holds it; if
/// the dispatcher cannot be filled, with why.
pub fn alone() -> Alone {
    let held = HELD.with_borrow(Weak::upgrade).unwrap_or_else(|| {
        let alone = sandbox::alone(|_| ()).unwrap_or_else(|e| panic!("{e}"));
        dispatcher::keep_full(&alone).unwrap_or_else(|e| panic!("dispatcher: {e}"));
        let held = Arc::new(alone);
        HELD.set(Arc::downgrade(&held));
        held
    });
    Alone(held)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    #[test]
    fn threads_take_turns() {
        if !crate::root("threads_take_turns") {
            return;
        }
        let (inside, turns) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let _alone = alone();
                        // Again, and it is still held after that.
                        drop(alone());
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        let holder = sandbox::alone::holder();
                        assert!(holder.starts_with(&format!("process {}", std::process::id())));
                        std::thread::sleep(Duration::from_millis(2));
                        inside.fetch_sub(1, SeqCst);
                        turns.fetch_add(1, SeqCst);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 12);
    }

    /// Also where nobody else has filled it.
    #[test]
    fn who_is_alone_has_a_full_dispatcher() {
        if !crate::root("who_is_alone_has_a_full_dispatcher") {
            return;
        }
        let _alone = alone();
        assert_eq!(
            crate::bpf::filling().expect("bpftool").len(),
            dispatcher::PLACES
        );
    }
}
