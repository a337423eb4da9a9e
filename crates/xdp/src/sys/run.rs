//! Running a program without an interface: `BPF_PROG_TEST_RUN`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{bpf, cmd, count};

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// Bytes of the longest packet that comes out of a run: a page, in which the kernel runs it.
const MOST: usize = 4096;

#[repr(C)]
#[derive(Default)]
struct RunAttr {
    program: u32,
    verdict: u32,
    data_in_len: u32,
    data_out_len: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_in_len: u32,
    ctx_out_len: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    _pad: u32,
}

/// Runs a program once on a packet that goes nowhere; gives its verdict (`enum xdp_action`) and the
/// packet as it is then.
pub fn run_once(program: BorrowedFd<'_>, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    let mut out = vec![0; MOST];
    let mut attr = RunAttr {
        program: program.as_raw_fd() as u32,
        data_in_len: count(packet.len()),
        data_in: packet.as_ptr() as u64,
        data_out_len: count(MOST),
        data_out: out.as_mut_ptr() as u64,
        repeat: 1,
        ..RunAttr::default()
    };
    // SAFETY: the kernel reads the packet and writes the result, within the lengths given with
    // them.
    unsafe { bpf(cmd::PROG_TEST_RUN, &mut attr)? };
    out.truncate(attr.data_out_len as usize);
    Ok((attr.verdict, out))
}

/// Runs a program over live frames, `batch` at a time, until it has seen `slots` of them (the most
/// is 2^32 - 1), a signal comes (`EINTR`) or something fails.
///
/// To the program they come in on the loopback interface of the calling thread's namespace, and
/// that is where the interfaces are that it redirects to. An interface named here would be held
/// until the run ends: deleting it, or a namespace with its peer, would take that long, and so
/// would the deletion of any other namespace.
pub fn run_live(program: BorrowedFd<'_>, packet: &[u8], batch: u32, slots: u32) -> io::Result<()> {
    let mut attr = RunAttr {
        program: program.as_raw_fd() as u32,
        data_in_len: count(packet.len()),
        data_in: packet.as_ptr() as u64,
        repeat: slots,
        flags: TEST_XDP_LIVE_FRAMES,
        batch,
        ..RunAttr::default()
    };
    // SAFETY: the kernel reads the packet, within the length given with it.
    unsafe { bpf(cmd::PROG_TEST_RUN, &mut attr) }.map(drop)
}
