//! Information from the kernel on programs and links.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::{Name, bpf, bpf_fd, cmd, count, text_of};

/// `BPF_LINK_TYPE_XDP`.
const LINK_TYPE_XDP: u32 = 6;

#[repr(C)]
struct IdAttr {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// The id of the first BPF link after `id`.
pub fn link_after(id: u32) -> io::Result<u32> {
    let mut attr = IdAttr {
        id,
        next_id: 0,
        open_flags: 0,
    };
    // SAFETY: no pointers in it.
    unsafe { bpf(cmd::LINK_GET_NEXT_ID, &mut attr) }?;
    Ok(attr.next_id)
}

/// Opens a BPF link by its id.
pub fn link_open(id: u32) -> io::Result<OwnedFd> {
    let mut attr = IdAttr {
        id,
        next_id: 0,
        open_flags: 0,
    };
    // SAFETY: no pointers in it, and the command returns a descriptor.
    unsafe { bpf_fd(cmd::LINK_GET_FD_BY_ID, &mut attr) }
}

/// Opens a program by its id.
pub fn prog_open(id: u32) -> io::Result<OwnedFd> {
    let mut attr = IdAttr {
        id,
        next_id: 0,
        open_flags: 0,
    };
    // SAFETY: no pointers in it, and the command returns a descriptor.
    unsafe { bpf_fd(cmd::PROG_GET_FD_BY_ID, &mut attr) }
}

/// # Safety
/// `T` must be the beginning of the info structure that belongs to the descriptor's kind, and any
/// bytes valid for it.
unsafe fn info<T>(fd: BorrowedFd<'_>, into: &mut T) -> io::Result<()> {
    #[repr(C)]
    struct Attr {
        fd: u32,
        len: u32,
        info: u64,
    }
    let mut attr = Attr {
        fd: fd.as_raw_fd() as u32,
        len: count(size_of::<T>()),
        info: std::ptr::from_mut(into) as u64,
    };
    // SAFETY: the kernel writes at most `len` bytes to `into`.
    unsafe { bpf(cmd::OBJ_GET_INFO_BY_FD, &mut attr) }.map(drop)
}

/// Id and name of a program.
pub fn prog_info(program: BorrowedFd<'_>) -> io::Result<(u32, String)> {
    /// The beginning of `struct bpf_prog_info`.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u32,
        id: u32,
        tag: [u8; 8],
        jited_len: u32,
        xlated_len: u32,
        jited: u64,
        xlated: u64,
        load_time: u64,
        created_by: u32,
        map_count: u32,
        maps: u64,
        name: Name,
    }
    let mut got = Info::default();
    // SAFETY: Info is the beginning of struct bpf_prog_info and made of integers; its pointers are
    // null.
    unsafe { info(program, &mut got)? };
    Ok((got.id, text_of(&got.name)))
}

/// Program id and interface index of an XDP link; None for links of other kinds. The index is zero
/// once the link is detached.
pub fn link_info(link: BorrowedFd<'_>) -> io::Result<Option<(u32, u32)>> {
    /// The beginning of `struct bpf_link_info`, with the union's `xdp` member.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        kind: u32,
        id: u32,
        program: u32,
        _pad: u32,
        ifindex: u32,
        _rest: [u32; 11],
    }
    let mut got = Info::default();
    // SAFETY: Info is the beginning of struct bpf_link_info and made of integers; its pointers are
    // null.
    unsafe { info(link, &mut got)? };
    Ok((got.kind == LINK_TYPE_XDP).then_some((got.program, got.ifindex)))
}
