//! System calls of an AF_XDP socket.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use graph::Pool;

use super::ring::Cursor;

/// Entries of each ring.
pub const RING: u32 = 4096;

/// The rings of one socket.
#[derive(Debug)]
pub struct Rings {
    /// Empty buffers to the kernel.
    pub fill: Cursor<u64>,
    /// Sent buffers back from it.
    pub done: Cursor<u64>,
    /// Received packets.
    pub rx: Cursor<libc::xdp_desc>,
    /// Packets to send.
    pub tx: Cursor<libc::xdp_desc>,
}

/// A new socket.
pub fn open() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it returns is ours.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn set<T>(fd: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `length` bytes are read from `value`.
    match unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            ptr::from_ref(value).cast(),
            length,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What the kernel answers to a socket option.
///
/// # Safety
/// The option answers with this structure, and all-zero is a valid one.
unsafe trait Answer {
    /// The option (linux/if_xdp.h).
    const OPTION: i32;
}

// SAFETY: integers, as linux/if_xdp.h has them.
unsafe impl Answer for libc::xdp_mmap_offsets {
    const OPTION: i32 = libc::XDP_MMAP_OFFSETS;
}

// SAFETY: as above.
unsafe impl Answer for libc::xdp_options {
    const OPTION: i32 = libc::XDP_OPTIONS;
}

// SAFETY: as above.
unsafe impl Answer for libc::xdp_statistics {
    const OPTION: i32 = libc::XDP_STATISTICS;
}

fn get<T: Answer>(fd: &OwnedFd) -> io::Result<T> {
    // SAFETY: all-zero is valid.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: at most `length` bytes are written to `value`.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            T::OPTION,
            ptr::from_mut(&mut value).cast(),
            &mut length,
        )
    };
    if rc == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Registers the pool as the socket's packet memory.
pub fn register(fd: &OwnedFd, pool: &Pool) -> io::Result<()> {
    let umem = libc::xdp_umem_reg {
        addr: pool.base().as_ptr() as u64,
        len: u64::from(pool.count()) * pool.stride() as u64,
        chunk_size: pool.stride() as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &umem)
}

/// Makes and maps the rings.
pub fn rings(fd: &OwnedFd) -> io::Result<Rings> {
    let kinds = [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ];
    for kind in kinds {
        set(fd, kind, &RING)?;
    }
    let at: libc::xdp_mmap_offsets = get(fd)?;
    Ok(Rings {
        fill: Cursor::map(fd, libc::XDP_UMEM_PGOFF_FILL_RING as i64, at.fr, RING)?,
        done: Cursor::map(fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, at.cr, RING)?,
        rx: Cursor::map(fd, libc::XDP_PGOFF_RX_RING, at.rx, RING)?,
        tx: Cursor::map(fd, libc::XDP_PGOFF_TX_RING, at.tx, RING)?,
    })
}

/// Binds to a queue. `shared`: the socket whose packet memory this one uses.
pub fn bind(
    fd: &OwnedFd,
    ifindex: u32,
    queue: u32,
    flags: u16,
    shared: Option<&OwnedFd>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: if shared.is_some() {
            libc::XDP_SHARED_UMEM
        } else {
            flags
        },
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared.map_or(0, |s| s.as_raw_fd() as u32),
    };
    let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    // SAFETY: `length` bytes are read from `address`.
    match unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(&address).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the kernel really uses the packet memory without copying.
pub fn is_zero_copy(fd: &OwnedFd) -> io::Result<bool> {
    let options: libc::xdp_options = get(fd)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// The kernel's counters of the socket.
pub fn statistics(fd: &OwnedFd) -> io::Result<libc::xdp_statistics> {
    get(fd)
}

/// Makes the kernel look at the transmit ring.
pub fn kick_tx(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no data and no address are passed.
    match unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null(),
            0,
        )
    } {
        n if n >= 0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the kernel look at the fill ring.
pub fn kick_rx(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no buffer and no address are passed.
    let n = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if n >= 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
