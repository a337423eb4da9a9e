//! An open port: what it is, its counters, its XDP program.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use graph::{Port, PortCounters};
use io::{af_xdp, memif};

/// Counter of sampled packets with a checksum that nobody finished.
pub(crate) const UNFINISHED: &str = "rx-checksum-unfinished";

/// An open port.
pub struct Open {
    /// The queues, until workers have them.
    pub queues: Vec<Box<dyn Port>>,
    /// Counters of the queues, each with the queue's name. A queue may have several.
    pub counters: Vec<(String, PortCounters)>,
    kind: Kind,
}

/// The kind of port behind it.
pub(crate) enum Kind {
    AfXdp {
        device: String,
        queues: usize,
        sockets: af_xdp::Interface,
        program: Option<Box<Program>>,
    },
    Memif(memif::Interface),
    /// By what says that somebody has deleted it.
    Tap(Arc<AtomicBool>),
    Pcap,
    Null,
}

/// The program that gives a device's packets to the sockets.
pub(crate) enum Program {
    Router(xdp::RouterPort),
    Receiver(xdp::Receiver),
}

impl Program {
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), xdp::Error> {
        match self {
            Program::Router(program) => program.register(queue, socket),
            Program::Receiver(program) => program.register(queue, socket),
        }
    }

    fn attachment(&self) -> Option<&xdp::Attachment> {
        match self {
            Program::Router(program) => program.attachment(),
            Program::Receiver(program) => Some(program.attachment()),
        }
    }
}

impl Open {
    pub(crate) fn new<P: Port + 'static>(kind: Kind, queues: Vec<P>) -> Self {
        let counters = queues.iter().map(|q| (q.name().to_owned(), q.counters()));
        Open {
            counters: counters.collect(),
            queues: queues
                .into_iter()
                .map(|queue| Box::new(queue) as Box<dyn Port>)
                .collect(),
            kind,
        }
    }

    /// Its network device has another name now.
    pub fn renamed(&mut self, name: &str) {
        let before = match &mut self.kind {
            Kind::AfXdp { device, .. } => std::mem::replace(device, name.to_owned()),
            _ => return,
        };
        for (counted, _) in &mut self.counters {
            if let Some(queue) = counted.strip_prefix(&before) {
                *counted = format!("{name}{queue}");
            }
        }
    }

    /// A description, for log and `show hardware`, with what the device refused.
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::AfXdp {
                device,
                queues,
                sockets,
                program,
            } => {
                let copy = if sockets.zero_copy() {
                    "zero-copy"
                } else {
                    "copy"
                };
                let mode = match self.program() {
                    Some(mode) => format!("{mode} program"),
                    None => "no program".into(),
                };
                let attachment = program.as_ref().and_then(|program| program.attachment());
                let lacks = attachment.map_or(&[][..], xdp::Attachment::lacks);
                let lacks = [lacks, sockets.lacks()].concat();
                let long = if sockets.long_packets() {
                    ", multi-buffer"
                } else {
                    ""
                };
                let lacks = if lacks.is_empty() {
                    String::new()
                } else {
                    format!("; refused: {}", lacks.join(", "))
                };
                format!("af_xdp on {device}, {copy}, {mode}, queues: {queues}{long}{lacks}")
            }
            Kind::Memif(interface) => memif_in_words(&interface.status()),
            Kind::Tap(_) | Kind::Pcap | Kind::Null => self.mode().into(),
        }
    }

    /// Mode of the port in a word.
    pub fn mode(&self) -> &'static str {
        match &self.kind {
            Kind::AfXdp { sockets, .. } => {
                let generic = self.program() == Some(xdp::Mode::Generic);
                match (sockets.zero_copy(), generic) {
                    (true, _) => "zero-copy",
                    (false, false) => "copy",
                    (false, true) => "generic",
                }
            }
            Kind::Memif(_) => "memif",
            Kind::Tap(_) => "tap",
            Kind::Pcap => "pcap",
            Kind::Null => "null",
        }
    }

    /// True if packets pass that are longer than a buffer.
    pub fn long_packets(&self) -> bool {
        match &self.kind {
            Kind::AfXdp { sockets, .. } => sockets.long_packets(),
            _ => true,
        }
    }

    /// True if it is a tap that somebody has deleted.
    pub fn is_deleted_tap(&self) -> bool {
        matches!(&self.kind, Kind::Tap(gone) if gone.load(Ordering::Acquire))
    }

    /// The connection of a memif.
    pub fn memif(&self) -> Option<memif::Status> {
        match &self.kind {
            Kind::Memif(interface) => Some(interface.status()),
            _ => None,
        }
    }

    /// Brings up to date what the kernel counts for us.
    pub fn refresh(&self) {
        if let Kind::AfXdp { sockets, .. } = &self.kind {
            sockets.refresh();
        }
    }

    /// Place where the XDP program on its device runs, if there is one.
    pub fn program(&self) -> Option<xdp::Mode> {
        match &self.kind {
            Kind::AfXdp { program, .. } => Some(program.as_ref()?.attachment()?.mode()),
            _ => None,
        }
    }

    /// True if packets have come whose TCP or UDP checksum the sender left to hardware.
    pub fn has_unfinished(&self) -> bool {
        let mut counters = self.counters.iter().flat_map(|(_, c)| c.iter());
        counters.any(|(name, n)| name == UNFINISHED && n > 0)
    }

    /// Takes the XDP program off: the kernel gets every packet from now on.
    pub fn detach(&mut self) {
        if let Kind::AfXdp { program, .. } = &mut self.kind {
            *program = None;
        }
    }
}

fn memif_in_words(status: &memif::Status) -> String {
    let (rx, tx) = status.rings;
    let link = match status.up {
        true => format!(
            "connected to {} of {}, rings: rx {rx}, tx {tx}",
            status.peer_interface, status.peer
        ),
        false => "not connected, waits for its peer".into(),
    };
    let trouble = match status.reason.as_str() {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    format!("memif {link}{trouble}")
}
