//! `explain`: what the router would do with a packet, and why.
//!
//! The packet really passes the nodes, those of a worker that is made for it and reads the tables
//! and the snapshot that all workers read. Nothing is sent, and nothing of the running router
//! changes: no counter, flow, limit, or neighbor. Its table of flows is empty, so the packet is the
//! first of its flow.

mod dry;
mod outcome;
mod packet;
mod way;

use std::fmt;

use graph::pool::MAX_PACKET;
use serde::Serialize;

use crate::Router;
use crate::change::Kind;
use crate::show::text::hex;

pub use outcome::{Fate, Outcome};
pub use packet::{Asked, Fields, Question, STRANGER};
pub use way::Step;

/// Reason why a packet is not explained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such interface.
    #[error("explain: no interface {0}; `show interface` lists those that there are")]
    NoInterface(String),
    /// One address is of IPv4, the other of IPv6.
    #[error("explain: source and destination are of different families")]
    Families,
    /// A sub-interface and other tags.
    #[error(
        "explain: {0} is a sub-interface, which has its own tags; name the interface below it, \
         {1}, to give others, or a whole frame"
    )]
    Tags(String, String),
    /// The frame is longer than one that a port takes in.
    #[error("explain: the frame has {0} bytes; the router takes in at most {max}", max = MAX_PACKET)]
    TooLong(usize),
    /// No memory, or no file descriptor.
    #[error("explain: {0}")]
    Failed(String),
}

/// What the router would do with a packet.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Explained {
    /// Interface whose port it comes in by.
    pub interface: String,
    /// The packet as understood.
    pub packet: String,
    /// Its frame's ends and VLANs.
    pub link: String,
    /// The frame without its checksum, in hexadecimal.
    pub frame: String,
    /// Node by node.
    pub steps: Vec<Step>,
    /// The ends of the packet, of its copies, and of what is made of it.
    pub outcomes: Vec<Outcome>,
    /// What is not known, or done elsewhere.
    pub notes: Vec<String>,
}

/// Says what the router would do with a packet.
///
/// # Errors
/// [`Refused`].
pub fn explain(router: &Router, question: &Question) -> Result<Explained, Refused> {
    let interfaces = &router.state.links.interfaces;
    let mut named = interfaces.values();
    let named = named.find(|of| of.name == question.interface);
    let named = named.ok_or_else(|| Refused::NoInterface(question.interface.clone()))?;
    let port = match named.kind {
        Kind::Sub { parent, .. } => interfaces.get(&parent).unwrap_or(named),
        _ => named,
    };
    let frame = match &question.packet {
        Asked::Fields(fields) if port.id != named.id && !fields.vlans.is_empty() => {
            return Err(Refused::Tags(named.name.clone(), port.name.clone()));
        }
        Asked::Frame(_) if port.id != named.id => {
            return Err(Refused::Tags(named.name.clone(), port.name.clone()));
        }
        Asked::Fields(fields) => packet::frame(router, fields, named).ok_or(Refused::Families)?,
        Asked::Frame(frame) => frame.clone(),
    };
    if frame.len() > MAX_PACKET {
        return Err(Refused::TooLong(frame.len()));
    }
    let ran = dry::run(router, port.id, frame.clone());
    let ran = ran.map_err(|e| Refused::Failed(e.to_string()))?;
    let steps = way::steps(router, &ran);
    let asked = |step: &Step| step.node.ends_with("-firewall") && !step.why.is_empty();
    let mut notes = Vec::new();
    if steps.iter().any(asked) {
        notes.push(
            "Policies judge it as the first packet of its flow; flows that are known are not looked \
             at, and limits of rules are not either."
                .to_owned(),
        );
    }
    Ok(Explained {
        interface: port.name.clone(),
        packet: packet::words(&frame),
        link: packet::link(&frame),
        frame: hex(&frame),
        outcomes: outcome::outcomes(router, &steps),
        steps,
        notes,
    })
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.packet)?;
        writeln!(f, "  comes in by {}, {}\n", self.interface, self.link)?;
        for step in &self.steps {
            match step.packet {
                1 => writeln!(f, "{}", step.node)?,
                more => writeln!(f, "{} (packet {more})", step.node)?,
            }
            for line in &step.why {
                writeln!(f, "  {line}")?;
            }
            if let Some(reason) = &step.dropped {
                writeln!(f, "  dropped: {reason}")?;
            }
        }
        writeln!(f)?;
        for note in &self.notes {
            writeln!(f, "Note: {note}")?;
        }
        for outcome in &self.outcomes {
            writeln!(f, "{}", outcome.text)?;
        }
        Ok(())
    }
}
