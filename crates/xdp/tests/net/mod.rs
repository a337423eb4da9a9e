//! A veth pair between two namespaces, and entering them.
#![allow(unsafe_code, dead_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use testbed::veth::{self, End};
use testbed::{Netns, command};

pub use testbed::root;

/// Two namespaces, each with one end, `left` and `right`, of a veth pair; gone when dropped. IPv6
/// is off there, so that the kernel says nothing by itself.
pub struct Pair {
    left: Netns,
    right: Netns,
}

/// MAC addresses of the two ends.
pub const LEFT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const RIGHT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

impl Pair {
    /// Says SKIP and gives None without root.
    ///
    /// # Panics
    /// If root cannot make it.
    pub fn new(test: &str) -> Option<Self> {
        if !root(test) {
            return None;
        }
        let netns = |end| Netns::create(&format!("{test}-{end}")).expect("root makes namespaces");
        let pair = Self {
            left: netns("left"),
            right: netns("right"),
        };
        pair.link(
            ["left", "right"],
            ["02:00:00:00:00:01", "02:00:00:00:00:02"],
        );
        Some(pair)
    }

    fn link(&self, names: [&str; 2], macs: [&str; 2]) {
        let end = |netns, i: usize| End {
            netns,
            name: names[i],
            mac: macs[i],
            address: None,
        };
        let (left, right) = (end(&self.left, 0), end(&self.right, 1));
        veth::pair(left, right, 1500).expect("root makes a veth pair");
    }

    /// Sets the MTU of both ends.
    pub fn set_mtu(&self, mtu: usize) {
        for (netns, end) in [(&self.left, "left"), (&self.right, "right")] {
            let set = format!("link set {end} mtu {mtu}");
            netns.ip(&set).expect("a veth takes it");
        }
    }

    /// Adds another pair, `left2` and `right2`.
    pub fn add_second(&self) {
        self.link(
            ["left2", "right2"],
            ["02:00:00:00:00:03", "02:00:00:00:00:04"],
        );
    }

    /// Runs `f` in the left namespace, with the index of its end.
    pub fn left<T: Send>(&self, f: impl FnOnce(u32) -> T + Send) -> T {
        self.left.inside(|| f(index("left")))
    }

    /// Runs `f` in the right namespace, with the index of its end.
    pub fn right<T: Send>(&self, f: impl FnOnce(u32) -> T + Send) -> T {
        self.right.inside(|| f(index("right")))
    }
}

/// Runs ip(8) in the calling thread's namespace; says whether it worked.
pub fn ip(args: &[&str]) -> bool {
    command::run(&[&["ip"], args].concat()).is_ok()
}

/// Index of an interface of the calling thread's namespace.
pub fn index(interface: &str) -> u32 {
    kernel::netdev::index(interface).unwrap_or(0)
}

/// Keeps the calling thread on the processor that it is on.
pub fn stay_on_this_processor() {
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).expect("it is one of ours");
}

/// An AF_XDP socket with a receive ring, bound to nothing: all that a program needs to redirect to
/// it.
pub fn xsk() -> OwnedFd {
    const SOL_XDP: libc::c_int = 283;
    const XDP_RX_RING: libc::c_int = 2;
    let entries = 64u32;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0, "AF_XDP: {}", std::io::Error::last_os_error());
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    set(fd, SOL_XDP, XDP_RX_RING, &entries);
    socket
}

/// Receives what comes in on the interfaces of a namespace.
pub struct Listener(OwnedFd);

impl Listener {
    /// Listens in the calling thread's namespace.
    pub fn new() -> Self {
        let all = i32::from((libc::ETH_P_ALL as u16).to_be());
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, all) };
        assert!(
            fd >= 0,
            "packet socket: {}",
            std::io::Error::last_os_error()
        );
        // SAFETY: just made, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let (room, wait) = (
            64 << 20,
            libc::timeval {
                tv_sec: 10,
                tv_usec: 0,
            },
        );
        set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room);
        set(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &wait);
        Self(socket)
    }

    /// The next frame to this address; None if none comes for a long while.
    pub fn next(&self, dst: &[u8; 6]) -> Option<Vec<u8>> {
        let mut frame = vec![0; 4096];
        loop {
            // SAFETY: the buffer outlives the call.
            let got = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                )
            };
            let len = usize::try_from(got).ok()?;
            if frame[..6] == dst[..] {
                frame.truncate(len);
                return Some(frame);
            }
        }
    }
}

/// Sends a frame out of an interface of the calling thread's namespace.
pub fn send(ifindex: u32, frame: &[u8]) {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(
        fd >= 0,
        "packet socket: {}",
        std::io::Error::last_os_error()
    );
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an all-zero address is valid.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    to.sll_ifindex = ifindex as i32;
    let (at, len) = (
        (&raw const to).cast(),
        size_of::<libc::sockaddr_ll>() as u32,
    );
    // SAFETY: frame and address outlive the call and have the lengths given.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            at,
            len,
        )
    };
    assert_eq!(
        sent,
        frame.len() as isize,
        "{}",
        std::io::Error::last_os_error()
    );
}

fn set<T>(fd: libc::c_int, level: libc::c_int, option: libc::c_int, value: &T) {
    // SAFETY: the value outlives the call and has the length given.
    let code = unsafe {
        libc::setsockopt(
            fd,
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
}

/// An untagged Ethernet frame with IPv4 and UDP (ports 1025 and 12), right checksums, `len` bytes
/// in all.
pub fn udp(dst_mac: [u8; 6], src: [u8; 4], dst: [u8; 4], len: usize) -> Vec<u8> {
    let mut frame = vec![b'x'; len];
    frame[..6].copy_from_slice(&dst_mac);
    frame[6..12].copy_from_slice(&LEFT_MAC);
    frame[12..14].copy_from_slice(&[8, 0]);
    let total = ((len - 14) as u16).to_be_bytes();
    frame[14..34].copy_from_slice(&[
        0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    frame[26..30].copy_from_slice(&src);
    frame[30..34].copy_from_slice(&dst);
    let udp = ((len - 34) as u16).to_be_bytes();
    frame[34..42].copy_from_slice(&[4, 1, 0, 12, udp[0], udp[1], 0, 0]);
    let sum = !sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The ones' complement sum (RFC 1071); 0xffff over a header whose checksum is right.
pub fn sum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
