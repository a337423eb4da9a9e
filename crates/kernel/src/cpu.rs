//! Processors: which ones we may use, and keeping a thread on one.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The numbers of the processors that this process may use, in order.
pub fn usable() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// InvalidInput: there is no such processor, or this process may not use it.
pub fn pin(cpu: usize) -> io::Result<()> {
    pin_to(None, cpu)
}

/// Keeps another thread on one processor, by the number that the kernel has for it (gettid(2)).
///
/// # Errors
/// As [`pin`]; ESRCH: the thread has ended.
pub fn pin_thread(thread: i32, cpu: usize) -> io::Result<()> {
    let thread = Pid::from_raw(thread).ok_or(io::ErrorKind::InvalidInput)?;
    pin_to(Some(thread), cpu)
}

fn pin_to(thread: Option<Pid>, cpu: usize) -> io::Result<()> {
    let missing = || {
        let what = format!("there is no processor {cpu} that this process may use");
        io::Error::new(io::ErrorKind::InvalidInput, what)
    };
    if cpu >= CpuSet::MAX_CPU {
        return Err(missing());
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(thread, &only).map_err(|error| match error {
        rustix::io::Errno::INVAL => missing(),
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let last = *usable().last().expect("one at least");
        let pinned = std::thread::spawn(move || pin(last).map(|()| usable()));
        let usable = pinned.join().expect("no panic").expect("may be used");
        assert_eq!(usable, [last]);
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let refused = pin(cpu).expect_err("refused");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
            let expected = format!("there is no processor {cpu} that this process may use");
            assert_eq!(refused.to_string(), expected);
        }
    }
}
