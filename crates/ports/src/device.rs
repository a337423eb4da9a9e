//! Network devices, by AF_XDP.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use graph::{Pool, Port};
use io::af_xdp::{self, Mode, Queue};
use io::wrap::Sample;
use kernel::netdev;
use kernel::netns::within;
use wire::{eth, offload};

use crate::open::{Kind, Program, UNFINISHED};
use crate::{Open, OpenError, Opener};

/// The beginning of our XDP programs' names, as the kernel shows them.
const PROGRAMS: &str = "parshall_";
/// Time that a predecessor which was killed may hold its sockets and programs: the kernel frees
/// them a moment after its end.
const LETTING_GO: Duration = Duration::from_secs(2);
/// Between two tries meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// The packets that a port receives from its device.
#[derive(Clone, Copy)]
pub enum Receive<'a> {
    /// Nothing is received: the port only sends.
    Nothing,
    /// Everything is the port's.
    Everything,
    /// The router's program sees it first, as of the interface of this number.
    Router(&'a xdp::Router, u16),
}

/// A device to open.
#[derive(Clone, Copy)]
pub struct Device<'a> {
    /// Its name.
    pub name: &'a str,
    /// Queues; `None`: all that it has.
    pub queues: Option<u32>,
    /// The way of packets from the driver to the sockets.
    pub mode: Mode,
    /// The packets to receive.
    pub receive: Receive<'a>,
}

impl Opener {
    /// Opens a device, with `pool` (stride 2048 or 4096) as packet memory.
    ///
    /// # Errors
    /// It is not there, is somebody else's, or cannot do what is wanted.
    pub fn device(&self, device: &Device<'_>, pool: &Arc<Pool>) -> Result<Open, OpenError> {
        let opened = within(self.netns.as_deref(), || Ok(open(device, pool)))?;
        let (program, sockets, queues) = opened?;
        let kind = Kind::AfXdp {
            device: device.name.to_owned(),
            queues: queues.len(),
            sockets,
            program: program.map(Box::new),
        };
        Ok(match device.receive {
            Receive::Router(..) => sampled(kind, queues),
            Receive::Nothing | Receive::Everything => Open::new(kind, queues),
        })
    }
}

/// Name of somebody else's XDP program on a device of the thread's namespace, beside which no port
/// can be opened there.
///
/// # Errors
/// The device is not there; what the kernel says.
pub fn foreign_program(index: u32) -> Result<Option<String>, xdp::Error> {
    let attached = xdp::attached(index)?.map(|program| program.name);
    Ok(attached.filter(|name| !name.starts_with(PROGRAMS)))
}

fn is_ours(error: &xdp::Error) -> bool {
    matches!(error, xdp::Error::Conflict { name, .. } if name.starts_with(PROGRAMS))
}

type Opened = (Option<Program>, af_xdp::Interface, Vec<Queue>);

/// The program comes first: a driver may set its queues up anew for it. Until the sockets are known
/// to it, the kernel gets everything.
fn open(device: &Device<'_>, pool: &Arc<Pool>) -> Result<Opened, OpenError> {
    let missing = || af_xdp::Error::NoInterface(device.name.to_owned());
    let index = netdev::index(device.name).ok_or_else(missing)?;
    let modes = program_modes(device.mode);
    let program = match device.receive {
        Receive::Nothing => None,
        Receive::Everything => {
            let attach = || xdp::Receiver::attach(index, modes);
            Some(Program::Receiver(patiently(attach, is_ours)?))
        }
        Receive::Router(router, id) => {
            let attach = || router.attach(index, id, modes);
            Some(Program::Router(patiently(attach, is_ours)?))
        }
    };
    let busy = |e: &af_xdp::Error| matches!(e, af_xdp::Error::Busy { .. });
    let open = || af_xdp::Interface::open(device.name, device.queues, device.mode, pool);
    let (sockets, queues) = patiently(open, busy)?;
    if let Some(program) = &program {
        sockets.each_socket(|queue, socket| program.register(queue, socket))?;
    }
    Ok((program, sockets, queues))
}

/// Places where the program may run, best first. A copy-mode socket takes packets of a program in
/// either place; on socket buffers it is what a driver without XDP has.
fn program_modes(mode: Mode) -> &'static [xdp::Mode] {
    match mode {
        Mode::Auto => &[xdp::Mode::Native, xdp::Mode::Generic],
        Mode::ZeroCopy | Mode::Copy => &[xdp::Mode::Native],
        Mode::Generic => &[xdp::Mode::Generic],
    }
}

/// The queues of a router, which looks at some of the packets.
fn sampled(kind: Kind, queues: Vec<Queue>) -> Open {
    let queues = queues.into_iter();
    let queues: Vec<_> = queues
        .map(|queue| Sample::new(queue, UNFINISHED, is_unfinished))
        .collect();
    let counters = queues.iter().flat_map(|q| {
        let own = |counters| (q.name().to_owned(), counters);
        [q.counters(), q.found()].map(own)
    });
    let counters = counters.collect();
    let mut open = Open::new(kind, queues);
    open.counters = counters;
    open
}

/// True if a TCP or UDP checksum was left to hardware. A virtual link hands over what its transmit
/// offload was to finish; redirected, it stays as it is, and is lost at its end.
fn is_unfinished(frame: &[u8]) -> bool {
    eth::Header::parse(frame).is_some_and(|(header, packet)| {
        matches!(header.ethertype(), eth::IP4 | eth::IP6) && offload::unfinished(packet)
    })
}

/// Tries again for a while what another one may be about to let go of.
fn patiently<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_held: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let end = Instant::now() + LETTING_GO;
    loop {
        match attempt() {
            Err(e) if is_held(&e) && Instant::now() < end => sleep(PAUSE),
            done => return done,
        }
    }
}
