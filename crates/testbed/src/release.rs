//! Threads that wait for a flag, let go whatever happens.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when dropped: threads of a scope that run until it is set end also when the test
/// panics before it would have set it. A scope waits for its threads before a panic goes on, so
/// that without it the test would never end.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_panic_lets_go_of_the_threads_of_its_scope() {
        let over = AtomicBool::new(false);
        let turns = catch_unwind(|| {
            std::thread::scope(|scope| {
                let _over = SetOnDrop(&over);
                scope.spawn(|| {
                    while !over.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                });
                panic!("this is what the test is about");
            })
        });
        assert!(turns.is_err() && over.into_inner());
    }
}
