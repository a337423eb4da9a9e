//! bpf(2) and the few other system calls, each as a safe function. Layouts: `union bpf_attr` of
//! linux/bpf.h; the kernel takes any length of it and reads the missing rest as zero.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use aya_obj::generated::bpf_insn;

mod info;
mod run;

pub use info::{link_after, link_info, link_open, prog_info, prog_open};
pub use run::{run_live, run_once};

/// `enum bpf_cmd`.
mod cmd {
    pub const MAP_CREATE: u32 = 0;
    pub const MAP_LOOKUP_ELEM: u32 = 1;
    pub const MAP_UPDATE_ELEM: u32 = 2;
    pub const MAP_DELETE_ELEM: u32 = 3;
    pub const PROG_LOAD: u32 = 5;
    pub const PROG_TEST_RUN: u32 = 10;
    pub const PROG_GET_FD_BY_ID: u32 = 13;
    pub const OBJ_GET_INFO_BY_FD: u32 = 15;
    pub const LINK_CREATE: u32 = 28;
    pub const LINK_GET_FD_BY_ID: u32 = 30;
    pub const LINK_GET_NEXT_ID: u32 = 31;
    pub const LINK_DETACH: u32 = 34;
}

const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
/// The program can take frames of several buffers.
pub const XDP_HAS_FRAGS: u32 = 1 << 5;

/// A number of things as the kernel takes it.
///
/// # Panics
/// If it does not fit into 32 bits.
pub const fn count(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize);
    #[expect(clippy::cast_possible_truncation, reason = "it was just compared")]
    let n = n as u32;
    n
}

/// Map names and program names: 15 bytes and a zero.
type Name = [u8; 16];

fn name_of(text: &str) -> Name {
    let mut name = [0; 16];
    let len = text.len().min(15);
    name[..len].copy_from_slice(&text.as_bytes()[..len]);
    name
}

/// The text of a name as the kernel gives it.
fn text_of(name: &Name) -> String {
    CStr::from_bytes_until_nul(name).map_or_else(
        |_| String::new(),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// # Safety
/// `attr` must be what `cmd` expects, and every pointer in it valid for what the kernel does with
/// it.
unsafe fn bpf<T>(cmd: u32, attr: &mut T) -> io::Result<c_long> {
    // SAFETY: the caller vouches for the contents; address and size are those of a live value.
    let got =
        unsafe { libc::syscall(libc::SYS_bpf, cmd, std::ptr::from_mut(attr), size_of::<T>()) };
    if got < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(got)
    }
}

/// # Safety
/// As [`bpf`]; the command must return a new descriptor.
unsafe fn bpf_fd<T>(cmd: u32, attr: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for it.
    let fd = unsafe { bpf(cmd, attr)? };
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A map to be made; the fields of `BPF_MAP_CREATE`.
#[derive(Clone, Copy, Debug)]
pub struct MapSpec {
    /// `enum bpf_map_type`.
    pub kind: u32,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Number of elements.
    pub entries: u32,
    /// `BPF_F_*`.
    pub flags: u32,
}

/// Makes a map; one of maps takes maps like `inner`.
pub fn map_create(
    spec: &MapSpec,
    inner: Option<BorrowedFd<'_>>,
    name: &str,
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attr {
        kind: u32,
        key: u32,
        value: u32,
        entries: u32,
        flags: u32,
        inner_fd: u32,
        numa_node: u32,
        name: Name,
    }
    let mut attr = Attr {
        kind: spec.kind,
        key: spec.key,
        value: spec.value,
        entries: spec.entries,
        flags: spec.flags,
        inner_fd: inner.map_or(0, |map| map.as_raw_fd() as u32),
        numa_node: 0,
        name: name_of(name),
    };
    // SAFETY: no pointers in it, and the command returns a descriptor.
    unsafe { bpf_fd(cmd::MAP_CREATE, &mut attr) }
}

#[repr(C)]
struct ElemAttr {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl ElemAttr {
    /// An element of a map: where its key is, and its value, 0 if there is none to be moved.
    fn new(map: BorrowedFd<'_>, key: &[u8], value: u64) -> Self {
        Self {
            map: map.as_raw_fd() as u32,
            _pad: 0,
            key: key.as_ptr() as u64,
            value,
            flags: 0,
        }
    }
}

/// Sets an element.
///
/// # Safety
/// `key` and `value` must be as long as the map's, times the number of CPUs for a per-CPU map's
/// value.
pub unsafe fn map_update(map: BorrowedFd<'_>, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut attr = ElemAttr::new(map, key, value.as_ptr() as u64);
    // SAFETY: the kernel reads the two buffers, whose lengths the caller vouches for.
    unsafe { bpf(cmd::MAP_UPDATE_ELEM, &mut attr) }.map(drop)
}

/// Reads an element.
///
/// # Safety
/// As [`map_update`].
pub unsafe fn map_lookup(map: BorrowedFd<'_>, key: &[u8], value: &mut [u8]) -> io::Result<()> {
    let mut attr = ElemAttr::new(map, key, value.as_mut_ptr() as u64);
    // SAFETY: the kernel reads the key and writes the value, whose lengths the caller vouches for.
    unsafe { bpf(cmd::MAP_LOOKUP_ELEM, &mut attr) }.map(drop)
}

/// Removes an element.
///
/// # Safety
/// `key` must be as long as the map's.
pub unsafe fn map_delete(map: BorrowedFd<'_>, key: &[u8]) -> io::Result<()> {
    let mut attr = ElemAttr::new(map, key, 0);
    // SAFETY: the kernel reads the key, whose length the caller vouches for.
    unsafe { bpf(cmd::MAP_DELETE_ELEM, &mut attr) }.map(drop)
}

/// Loads an XDP program. `log` takes the verifier's words (none if it is empty).
pub fn prog_load(
    insns: &[bpf_insn],
    name: &str,
    license: &CStr,
    flags: u32,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attr {
        kind: u32,
        insn_count: u32,
        insns: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
        kernel_version: u32,
        flags: u32,
        name: Name,
        ifindex: u32,
        expected_attach_type: u32,
    }
    let mut attr = Attr {
        kind: PROG_TYPE_XDP,
        insn_count: count(insns.len()),
        insns: insns.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_size: count(log.len()),
        log: if log.is_empty() {
            0
        } else {
            log.as_mut_ptr() as u64
        },
        kernel_version: 0,
        flags,
        name: name_of(name),
        ifindex: 0,
        expected_attach_type: ATTACH_TYPE_XDP,
    };
    // SAFETY: the kernel reads instructions and license and writes the log, within the lengths
    // given with them.
    unsafe { bpf_fd(cmd::PROG_LOAD, &mut attr) }
}

/// Attaches an XDP program to an interface for as long as the link's descriptor lives. `flags`:
/// `XDP_FLAGS_*`.
pub fn link_create(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attr {
        program: u32,
        ifindex: u32,
        attach_type: u32,
        flags: u32,
    }
    let mut attr = Attr {
        program: program.as_raw_fd() as u32,
        ifindex,
        attach_type: ATTACH_TYPE_XDP,
        flags,
    };
    // SAFETY: no pointers in it, and the command returns a descriptor.
    unsafe { bpf_fd(cmd::LINK_CREATE, &mut attr) }
}

/// Takes a link's program off its interface, whoever holds the link.
pub fn link_detach(link: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = link.as_raw_fd() as u32;
    // SAFETY: no pointers in it.
    unsafe { bpf(cmd::LINK_DETACH, &mut attr) }.map(drop)
}

/// Lifts the limit of locked memory, which AF_XDP's packet memory counts towards without
/// CAP_IPC_LOCK (maps no longer do, since Linux 5.11); best effort.
pub fn unlimit_locked_memory() {
    let limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure outlives the call.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) };
}

/// The kernel's monotonic clock, in nanoseconds, as programs read it.
pub fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is ours, and the clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
