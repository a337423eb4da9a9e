//! Counters of a queue: first what the kernel counts for its socket, then what the queue does.

/// Their names.
pub const NAMES: [&str; 13] = [
    "rx-dropped",
    "rx-ring-full",
    "rx-fill-empty",
    "rx-invalid",
    "tx-invalid",
    "rx-bad-descriptor",
    "rx-too-long",
    "rx-no-buffer",
    "tx-chained",
    "tx-gone",
    "tx-kick-error",
    "tx-down",
    "tx-no-queue",
];
/// Received entries that name no buffer of ours, or bytes outside of it.
pub const RX_BAD: usize = 5;
/// Received packets longer than any may be.
pub const RX_TOO_LONG: usize = 6;
/// Times that there was no buffer to receive into.
pub const RX_NO_BUFFER: usize = 7;
/// Packets in several buffers that the socket cannot send.
pub const TX_CHAINED: usize = 8;
/// Packets for an interface that is gone.
pub const TX_GONE: usize = 9;
/// Calls to send that failed.
pub const TX_KICK_ERROR: usize = 10;
/// Packets for an interface that is down.
pub const TX_DOWN: usize = 11;
/// Calls to send on a queue that the device has to receive from only.
pub const TX_NO_QUEUE: usize = 12;
