//! Running a program without an interface: `BPF_PROG_TEST_RUN`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::{bpf, cmd};

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// Bytes of the longest packet that comes out of a run.
const MOST: usize = 4096;

/// `struct xdp_md`: the context given to a run.
#[repr(C)]
#[derive(Default)]
struct XdpMd {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ifindex: u32,
    rx_queue: u32,
    egress: u32,
}

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

/// Runs a program once on a packet that goes nowhere; gives its verdict (`enum xdp_action`) and the packet as it is then.
pub fn run_once(program: BorrowedFd<'_>, packet: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    let mut out = vec![0; MOST];
    let mut attr = RunAttr {
        program: program.as_raw_fd() as u32,
        data_in_len: packet.len() as u32,
        data_in: packet.as_ptr() as u64,
        data_out_len: MOST as u32,
        data_out: out.as_mut_ptr() as u64,
        repeat: 1,
        ..RunAttr::default()
    };
    // SAFETY: the kernel reads the packet and writes the result, within the lengths given with them.
    unsafe { bpf(cmd::PROG_TEST_RUN, &mut attr)? };
    out.truncate(attr.data_out_len as usize);
    Ok((attr.verdict, out))
}

/// Runs a program over live frames as if they had come in on an interface, `batch` at a time, until a signal comes
/// (`EINTR`) or something fails. The repeat count is such that the kernel's counter never reaches it.
pub fn run_live(
    program: BorrowedFd<'_>,
    packet: &[u8],
    ifindex: u32,
    batch: u32,
) -> io::Result<()> {
    let context = XdpMd {
        data_end: packet.len() as u32,
        ifindex,
        ..XdpMd::default()
    };
    let mut attr = RunAttr {
        program: program.as_raw_fd() as u32,
        data_in_len: packet.len() as u32,
        data_in: packet.as_ptr() as u64,
        repeat: u32::MAX,
        ctx_in_len: size_of::<XdpMd>() as u32,
        ctx_in: std::ptr::from_ref(&context) as u64,
        flags: TEST_XDP_LIVE_FRAMES,
        batch,
        ..RunAttr::default()
    };
    // SAFETY: the kernel reads packet and context, within the lengths given with them.
    unsafe { bpf(cmd::PROG_TEST_RUN, &mut attr) }.map(drop)
}
