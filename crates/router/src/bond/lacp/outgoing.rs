//! What the control thread has a worker send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wire::eth::{self, Mac};
use wire::lacp::{self, Header};

use crate::change::InterfaceId;

/// LACPDUs to be sent, once each.
pub(crate) type Outbox = Arc<[Arc<Outgoing>]>;

/// An LACPDU to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    member: InterfaceId,
    frame: [u8; eth::LEN + lacp::LEN],
    due: AtomicBool,
}

impl Outgoing {
    /// By a member, from its address.
    pub fn new(member: InterfaceId, from: Mac, pdu: &Header) -> Self {
        Outgoing {
            member,
            frame: pdu.frame(from),
            due: AtomicBool::new(true),
        }
    }

    /// The member and the frame, for whoever asks first.
    pub fn take(&self) -> Option<(InterfaceId, &[u8])> {
        let due = self.due.swap(false, Ordering::Relaxed);
        due.then_some((self.member, &self.frame[..]))
    }
}
