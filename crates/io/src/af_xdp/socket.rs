//! System calls of an AF_XDP socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags,
    XdpStatistics, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt,
};

use graph::Pool;

use super::ring::Cursor;

/// Entries of each ring: at a million packets a second a worker may be held up for 4 ms before the
/// kernel has nowhere to put them.
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
    let (family, flags) = (AddressFamily::XDP, SocketFlags::CLOEXEC);
    Ok(socket_with(family, SocketType::RAW, flags, None)?)
}

/// Registers the pool as the socket's packet memory.
pub fn register(fd: &OwnedFd, pool: &Pool) -> io::Result<()> {
    let umem = XdpUmemReg {
        addr: pool.base().as_ptr() as u64,
        len: u64::from(pool.count()) * pool.stride() as u64,
        chunk_size: u32::try_from(pool.stride()).map_err(io::Error::other)?,
        // The kernel leaves 256 bytes of its own before each packet, which is all that we need.
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    Ok(sockopt::set_xdp_umem_reg(fd, umem)?)
}

/// Makes and maps the rings.
pub fn rings(fd: &OwnedFd) -> io::Result<Rings> {
    sockopt::set_xdp_umem_fill_ring_size(fd, RING)?;
    sockopt::set_xdp_umem_completion_ring_size(fd, RING)?;
    sockopt::set_xdp_rx_ring_size(fd, RING)?;
    sockopt::set_xdp_tx_ring_size(fd, RING)?;
    let at = sockopt::xdp_mmap_offsets(fd)?;
    Ok(Rings {
        fill: Cursor::map(fd, XDP_UMEM_PGOFF_FILL_RING, at.fr, RING)?,
        done: Cursor::map(fd, XDP_UMEM_PGOFF_COMPLETION_RING, at.cr, RING)?,
        rx: Cursor::map(fd, XDP_PGOFF_RX_RING, at.rx, RING)?,
        tx: Cursor::map(fd, XDP_PGOFF_TX_RING, at.tx, RING)?,
    })
}

/// Binds to a queue, with packet memory of its own.
pub fn bind(fd: &OwnedFd, ifindex: u32, queue: u32, flags: SocketAddrXdpFlags) -> io::Result<()> {
    Ok(net::bind(fd, &SocketAddrXdp::new(flags, ifindex, queue))?)
}

/// Binds to a queue, with the packet memory and the mode of another socket.
pub fn bind_shared(fd: &OwnedFd, ifindex: u32, queue: u32, other: &OwnedFd) -> io::Result<()> {
    let shared = SocketAddrXdpFlags::XDP_SHARED_UMEM;
    let address = SocketAddrXdpWithSharedUmem {
        addr: SocketAddrXdp::new(shared, ifindex, queue),
        shared_umem_fd: other.as_fd(),
    };
    Ok(net::bind(fd, &address)?)
}

/// True if the kernel really uses the packet memory without copying.
pub fn is_zero_copy(fd: &OwnedFd) -> io::Result<bool> {
    let options = sockopt::xdp_options(fd)?;
    Ok(options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
}

/// The kernel's counters of the socket.
pub fn statistics(fd: &OwnedFd) -> io::Result<XdpStatistics> {
    Ok(sockopt::xdp_statistics(fd)?)
}

/// Makes the kernel look at the transmit ring.
pub fn kick_tx(fd: &OwnedFd) -> io::Result<()> {
    // No data goes this way: the call only wakes the kernel.
    net::send(fd, &[], SendFlags::DONTWAIT)?;
    Ok(())
}

/// Makes the kernel look at the fill ring.
pub fn kick_rx(fd: &OwnedFd) -> io::Result<()> {
    // As above: what comes is in the ring.
    net::recv(fd, &mut [0; 0], RecvFlags::DONTWAIT)?;
    Ok(())
}

/// Closes a socket, after the control thread if that is just using it (for the time of a system
/// call).
pub fn close(mut socket: Arc<OwnedFd>) {
    while let Err(shared) = Arc::try_unwrap(socket) {
        std::thread::yield_now();
        socket = shared;
    }
}
