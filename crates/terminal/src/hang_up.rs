//! A terminal that is closed while a program reads from it.

use std::io;
use std::time::Duration;

use kernel::event::{poll, pollfd};

/// Whether the terminal of standard input is gone. Whoever reads keys from it is not told by what
/// reads them: that tries again for ever.
pub fn is_hung_up() -> bool {
    // Asked for no event, it reports only the end and errors.
    poll(&mut [pollfd(&io::stdin(), 0)], Some(Duration::ZERO))
}
