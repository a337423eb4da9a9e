//! Errors in the kernel's log while tests run. A machine that a test brings down has often said
//! something before.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use crate::report::say;

/// A record of /dev/kmsg is not longer (`CONSOLE_EXT_LOG_MAX` in linux/printk.h before 6.3,
/// `PRINTK_MESSAGE_MAX` since). For a shorter buffer the kernel would refuse a long record again
/// and again.
const RECORD: usize = 8192;
/// The level of errors; more urgent ones have lower numbers.
const ERROR: u32 = 3;

/// Follows the kernel's log. Where that may not be read there is nothing to say.
pub struct Log(Option<File>);

impl Log {
    /// From now on.
    pub fn open() -> Self {
        let file = File::options()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open("/dev/kmsg");
        let end = |mut file: File| file.seek(SeekFrom::End(0)).map(|_| file);
        Self(file.and_then(end).ok())
    }

    /// Prints the errors that have come since the last time.
    pub fn follow(&mut self) {
        let Some(file) = &mut self.0 else { return };
        let mut record = [0; RECORD];
        loop {
            match file.read(&mut record) {
                Ok(0) => return,
                Ok(length) => {
                    let record = String::from_utf8_lossy(&record[..length]);
                    if let Some(message) = error(&record) {
                        say(&format!("kernel: {message}"));
                    }
                }
                // The kernel has thrown records away that were not read yet: the next one is the
                // oldest that it has.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return,
            }
        }
    }
}

/// The message of a record, if it is an error: `priority,number,microseconds,flags;message`, then
/// lines of its own for further facts (Documentation/ABI/testing/dev-kmsg). Warnings with a trace
/// are errors, although their level is not.
fn error(record: &str) -> Option<&str> {
    let (head, rest) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    let message = rest.lines().next()?;
    (priority & 7 <= ERROR || message.starts_with("WARNING: ")).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_warnings_with_a_trace_are_told_apart_from_the_rest() {
        for (record, message) in [
            (
                "3,1,2,-;BUG: it is broken\n SUBSYSTEM=net",
                Some("BUG: it is broken"),
            ),
            ("10,1,2,-,caller=T1;dead", Some("dead")),
            (
                "4,1,2,-;WARNING: CPU: 1 PID: 7 at net/core/dev.c:1",
                Some("WARNING: CPU: 1 PID: 7 at net/core/dev.c:1"),
            ),
            ("4,1,2,-;w0: left; promiscuous mode", None),
            ("14,1,2,-;by a program", None),
            ("nonsense", None),
            ("x,1;nonsense", None),
        ] {
            assert_eq!(error(record), message, "{record}");
        }
    }
}
