//! What comes in by one device as if it came in by another (traffic control: linux/pkt_sched.h,
//! linux/pkt_cls.h, linux/tc_act/tc_mirred.h), in the calling thread's network namespace.

use std::io;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::netlink::layout::{Header, UNSPEC};
use crate::netlink::{Builder, Socket};

/// `struct tcmsg`.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct TrafficHeader {
    family: u8,
    reserved: [u8; 3],
    /// Index of the device.
    link: u32,
    handle: u32,
    parent: u32,
    info: u32,
}

impl Header for TrafficHeader {}

/// `struct tc_u32_sel` without keys: everything.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Selector {
    flags: u8,
    shift: u8,
    keys: u8,
    reserved: u8,
    rest: [u32; 3],
}

/// `struct tc_mirred`.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Mirred {
    index: u32,
    capabilities: u32,
    action: u32,
    references: [u32; 2],
    what: u32,
    link: u32,
}

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// `TC_H_INGRESS`: the parent of the ingress queueing discipline.
const INGRESS: u32 = 0xffff_fff1;
/// That discipline, `ffff:`.
const HANDLE: u32 = 0xffff_0000;
/// The first filter, for all protocols (`ETH_P_ALL`).
const FIRST_OF_ALL: u32 = 1 << 16 | (3u16.to_be()) as u32;
const TCA_U32_SEL: u16 = 5;
const TCA_U32_ACT: u16 = 7;
/// `TC_U32_TERMINAL`: what matches is done with.
const TERMINAL: u8 = 1;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
/// `TC_ACT_STOLEN`, and `TCA_INGRESS_REDIR`.
const STOLEN: u32 = 4;
const INGRESS_REDIRECT: u32 = 3;

/// What comes in by the device `from` is taken for what comes in by the device `to`, given by their
/// indexes, behind the XDP program of that, until either is gone.
///
/// # Errors
/// There is no such device; the kernel's: it lacks the modules sch_ingress, cls_u32, act_mirred.
pub fn ingress(from: u32, to: u32) -> io::Result<()> {
    let header = TrafficHeader {
        link: from,
        ..TrafficHeader::of(UNSPEC)
    };
    let create = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let discipline = TrafficHeader {
        handle: HANDLE,
        parent: INGRESS,
        ..header
    };
    let discipline = discipline.message(libc::RTM_NEWQDISC).flags(create);
    let filter = TrafficHeader {
        parent: HANDLE,
        info: FIRST_OF_ALL,
        ..header
    };
    let mirred = Mirred {
        index: 0,
        capabilities: 0,
        action: STOLEN,
        references: [0; 2],
        what: INGRESS_REDIRECT,
        link: to,
    };
    let all = Selector {
        flags: TERMINAL,
        shift: 0,
        keys: 0,
        reserved: 0,
        rest: [0; 3],
    };
    let action = |action: Builder| {
        let options = |options: Builder| options.attribute(TCA_MIRRED_PARMS, mirred.as_bytes());
        let action = action.string(TCA_ACT_KIND, "mirred");
        action.nested(TCA_ACT_OPTIONS, options)
    };
    let options = |options: Builder| {
        let options = options.attribute(TCA_U32_SEL, all.as_bytes());
        options.nested(TCA_U32_ACT, |actions| actions.nested(1, action))
    };
    let filter = filter.message(libc::RTM_NEWTFILTER).flags(create);
    let mut socket = Socket::route(None)?;
    socket.command(discipline.string(TCA_KIND, "ingress"))?;
    socket.command(filter.string(TCA_KIND, "u32").nested(TCA_OPTIONS, options))
}
