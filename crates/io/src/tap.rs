//! A tap: a network interface of the kernel's whose other end is this port
//! (Documentation/networking/tuntap).
//!
//! It is made in the calling thread's network namespace and vanishes with the port.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, open};

use graph::pool::MAX_PACKET;
use graph::{Batch, Buffers, Desc, Frame, Port, PortCounters};
use kernel::netlink::layout::{Header, INET6, LinkHeader};
use kernel::netlink::{Builder, Socket};

/// Packets that one call reads at most: each is a system call, and other ports wait meanwhile.
const BURST: usize = 64;

const NAMES: [&str; 4] = ["rx-no-buffer", "rx-error", "tx-error", "tx-down"];
const RX_NO_BUFFER: usize = 0;
const RX_ERROR: usize = 1;
const TX_ERROR: usize = 2;
const TX_DOWN: usize = 3;

/// The interface to be made.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Its name, 1 to 15 characters.
    pub name: String,
    /// Its hardware address; the kernel's choice if `None`.
    pub mac: Option<[u8; 6]>,
    /// Bytes of the largest packet above Ethernet; the kernel's 1500 if `None`.
    pub mtu: Option<u32>,
    /// Packets that wait for the port at most; the kernel's choice if `None`.
    pub queue: Option<u32>,
    /// True to bring it up.
    pub up: bool,
    /// True if what the kernel sends by it is not taken in: nobody can be reached by it.
    pub deaf: bool,
}

/// The port.
#[derive(Debug)]
pub struct Tap {
    name: String,
    fd: OwnedFd,
    /// A packet on its way between the kernel and buffers.
    packet: Box<[u8]>,
    deaf: bool,
    gone: Arc<AtomicBool>,
    counters: PortCounters,
}

impl Tap {
    /// Makes the interface.
    ///
    /// # Errors
    /// A name that is taken or not valid, an address or MTU that the kernel refuses, no permission
    /// (CAP_NET_ADMIN), no /dev/net/tun.
    pub fn new(config: &Config) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open("/dev/net/tun", flags, Mode::empty())?;
        make(&fd, &config.name)?;
        configure(config)?;
        Ok(Self {
            name: config.name.clone(),
            fd,
            packet: vec![0; MAX_PACKET].into(),
            deaf: config.deaf,
            gone: Arc::default(),
            counters: PortCounters::new(&NAMES),
        })
    }

    /// Brings the interface up, without an IPv6 address of the kernel's choice.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_up(&self) -> io::Result<()> {
        /// `IFLA_INET6_ADDR_GEN_MODE` and `IN6_ADDR_GEN_MODE_NONE` of linux/if_link.h.
        const ADDRESSES: u16 = 8;
        const NONE: u8 = 1;
        let named = |header: LinkHeader| {
            let message = header.message(libc::RTM_NEWLINK);
            message.string(libc::IFLA_IFNAME, &self.name)
        };
        let mode = |ip6: Builder| ip6.attribute(ADDRESSES, &[NONE]);
        let quiet = named(LinkHeader::named(0)).nested(libc::IFLA_AF_SPEC, |families| {
            families.nested(u16::from(INET6), mode)
        });
        let up = LinkHeader {
            flags: libc::IFF_UP as u32,
            change: libc::IFF_UP as u32,
            ..LinkHeader::named(0)
        };
        let mut socket = Socket::route(None)?;
        match socket.command(quiet) {
            // This kernel has no IPv6.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            done => done?,
        }
        socket.command(named(up))
    }

    /// Becomes true soon after somebody has deleted the interface. One that was moved to another
    /// namespace is not gone.
    pub fn gone(&self) -> Arc<AtomicBool> {
        self.gone.clone()
    }

    /// Notes what an error says of the interface.
    fn failed(&self, error: &io::Error) {
        if error.raw_os_error() == Some(libc::EBADFD) {
            self.gone.store(true, Ordering::Release);
        }
    }

    /// Writes one packet.
    fn write(&mut self, bufs: &Buffers, d: &Desc) -> io::Result<()> {
        // More parts than the longest packet has buffers, and on the stack.
        let mut parts = [libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; 16];
        let mut count = 0;
        bufs.pool().segments(d, |bytes| {
            if let Some(part) = parts.get_mut(count) {
                *part = libc::iovec {
                    iov_base: bytes.as_ptr().cast_mut().cast(),
                    iov_len: bytes.len(),
                };
            }
            count += 1;
        });
        if count > parts.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let count = i32::try_from(count).map_err(io::Error::other)?;
        // SAFETY: the parts are segments of a packet that we own until the call returns; they are
        // only read.
        match unsafe { libc::writev(self.fd.as_raw_fd(), parts.as_ptr(), count) } {
            n if n >= 0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Makes the interface that `fd` is to be the other end of; fails if there is one of that name.
fn make(fd: &OwnedFd, name: &str) -> io::Result<()> {
    /// linux/if_tun.h.
    const IFF_TUN_EXCL: i32 = 0x8000;
    let mut request = kernel::netdev::request(name)?;
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | IFF_TUN_EXCL;
    #[expect(clippy::cast_possible_truncation, reason = "all are of 16 bits")]
    let flags = flags as libc::c_short;
    request.ifr_ifru.ifru_flags = flags;
    // SAFETY: TUNSETIFF reads and writes an ifreq.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets address, MTU and state.
fn configure(config: &Config) -> io::Result<()> {
    let up = if config.up { libc::IFF_UP as u32 } else { 0 };
    let header = LinkHeader {
        flags: up,
        change: up,
        ..LinkHeader::named(0)
    };
    let mut change = header
        .message(libc::RTM_NEWLINK)
        .string(libc::IFLA_IFNAME, &config.name);
    if let Some(mac) = config.mac {
        change = change.attribute(libc::IFLA_ADDRESS, &mac);
    }
    if let Some(mtu) = config.mtu {
        change = change.number(libc::IFLA_MTU, mtu);
    }
    if let Some(queue) = config.queue {
        change = change.number(libc::IFLA_TXQLEN, queue);
    }
    Socket::route(None)?.command(change)
}

impl Port for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn rx(&mut self, bufs: &mut Buffers, frame: &mut Frame) {
        if self.deaf {
            return;
        }
        for _ in 0..frame.room().min(BURST) {
            let (to, room) = (self.packet.as_mut_ptr(), self.packet.len());
            // SAFETY: at most `room` bytes are written to the packet's buffer.
            let got = unsafe { libc::read(self.fd.as_raw_fd(), to.cast(), room) };
            if got < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.failed(&error);
                    self.counters.add(RX_ERROR, 1);
                }
                break;
            }
            match bufs.copy_in(&self.packet[..got as usize]) {
                Some(d) => frame.put(d),
                None => {
                    self.counters.add(RX_NO_BUFFER, 1);
                    break;
                }
            }
        }
    }

    fn tx(&mut self, bufs: &mut Buffers, batch: &mut Batch<'_>) {
        for d in batch {
            if let Err(e) = self.write(bufs, &d) {
                // The interface is down, or the kernel refuses the packet: it is lost either
                // way.
                self.failed(&e);
                let down = e.raw_os_error() == Some(libc::EIO);
                self.counters.add(if down { TX_DOWN } else { TX_ERROR }, 1);
            }
            bufs.free(d);
        }
    }

    fn fd(&self) -> Option<RawFd> {
        // Nobody waits for what is not taken in.
        (!self.deaf).then(|| self.fd.as_raw_fd())
    }

    fn counters(&self) -> PortCounters {
        self.counters.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ::testbed::patience;
    use graph::Pool;
    use kernel::event::{poll, pollfd};

    use super::*;
    use crate::testbed::{bytes_of, frame_of, in_namespace, run};

    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OURS: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Sends a packet and waits for the kernel's answer of this ethertype.
    fn ask(tap: &mut Tap, bufs: &mut Buffers, question: &[u8]) -> Vec<u8> {
        let mut frame = frame_of(bufs, &[question.to_vec()]);
        assert_eq!(frame.send(tap, bufs), 1);
        let end = Instant::now() + patience(Duration::from_secs(10));
        loop {
            let mut wait = [pollfd(&tap.fd, libc::POLLIN)];
            let left = end.saturating_duration_since(Instant::now());
            let came = poll(&mut wait, Some(left));
            assert!(came && !left.is_zero(), "no answer");
            tap.rx(bufs, &mut frame);
            let mut packets = bytes_of(bufs, &mut frame).into_iter();
            if let Some(answer) = packets.find(|p| p[12..14] == question[12..14] && p[..6] == OURS)
            {
                return answer;
            }
        }
    }

    fn checksum(bytes: &[u8]) -> [u8; 2] {
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_be_bytes()
    }

    /// An ICMP echo request with `len` bytes of data.
    fn echo(len: usize) -> Vec<u8> {
        let mut p = [&HOST[..], &OURS, &[8, 0, 0x45, 0]].concat();
        p.extend((28 + len as u16).to_be_bytes());
        p.extend([0, 1, 0, 0, 64, 1, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1]);
        let sum = checksum(&p[14..34]);
        p[24..26].copy_from_slice(&sum);
        p.extend([8, 0, 0, 0, 0, 7, 0, 1]);
        p.extend((0..len).map(|i| i as u8));
        let sum = checksum(&p[34..]);
        p[36..38].copy_from_slice(&sum);
        p
    }

    #[test]
    fn the_kernel_answers_on_a_tap() {
        in_namespace("the_kernel_answers_on_a_tap", || {
            let config = Config {
                name: "tap-test".to_owned(),
                mac: Some(HOST),
                mtu: Some(9000),
                queue: Some(64),
                up: true,
                deaf: false,
            };
            let mut tap = Tap::new(&config).expect("a tap");
            assert!(Tap::new(&config).is_err(), "the name is taken");
            run("ip addr add 10.9.0.1/24 dev tap-test");
            run("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev tap-test");
            let mut bufs = Buffers::new(Pool::new(512, 2048).expect("pool"));
            for len in [1, 56, 1400, 1800, 4000, 8900] {
                let question = echo(len);
                let answer = ask(&mut tap, &mut bufs, &question);
                assert_eq!(answer[6..12], HOST);
                assert_eq!(answer[34], 0, "an echo reply");
                assert!(answer[38..] == question[38..], "{len}");
            }
            run("ip link set tap-test down");
            let mut frame = frame_of(&mut bufs, &[echo(9)]);
            assert_eq!(frame.send(&mut tap, &mut bufs), 1);
            assert!(tap.counters().iter().any(|c| c == ("tx-down", 1)));
            assert_eq!(bufs.cached() as u32 + bufs.pool().available(), 512);
        });
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "a-name-with-16-ch", "a/b"] {
            let config = Config {
                name: name.to_owned(),
                ..Config::default()
            };
            assert!(Tap::new(&config).is_err(), "{name:?}");
        }
    }
}
