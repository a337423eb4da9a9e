//! States of connections, and which packet leads from which to which.

use wire::tcp::{ACK, FIN, PSH, RST, SYN};

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// That of the packet which opened it.
    Original,
    /// The other one.
    Reply,
}

impl Direction {
    /// The reply's, or the original one.
    #[inline(always)]
    pub const fn of(is_reply: bool) -> Self {
        if is_reply {
            Direction::Reply
        } else {
            Direction::Original
        }
    }

    /// The other one.
    #[inline(always)]
    pub const fn other(self) -> Self {
        match self {
            Direction::Original => Direction::Reply,
            Direction::Reply => Direction::Original,
        }
    }
}

macro_rules! states {
    ($($(#[$about:meta])* $state:ident => $name:literal, $seconds:literal;)*) => {
        /// The state of a connection. Those of TCP have the names of Linux's connection tracking,
        /// which sees a connection from between its ends.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum State { $($(#[$about])* $state),* }

        impl State {
            /// All, by number.
            pub const ALL: [State; STATES] = [$(State::$state),*];

            /// As shown and configured.
            pub const fn name(self) -> &'static str {
                match self { $(State::$state => $name),* }
            }
        }

        impl Default for Timeouts {
            /// The ones of Linux's connection tracking.
            fn default() -> Self {
                Timeouts([$($seconds),*])
            }
        }
    };
}

/// How many there are.
pub const STATES: usize = 16;

states! {
    /// TCP: nothing has been seen.
    None => "none", 0;
    /// A SYN.
    SynSent => "syn-sent", 120;
    /// A SYN that acknowledges it.
    SynRecv => "syn-recv", 60;
    /// Both ends have acknowledged each other.
    Established => "established", 432_000;
    /// An end has sent its FIN.
    FinWait => "fin-wait", 120;
    /// And an acknowledgment has followed.
    CloseWait => "close-wait", 60;
    /// The other end has sent its FIN, too.
    LastAck => "last-ack", 30;
    /// And an acknowledgment has followed.
    TimeWait => "time-wait", 120;
    /// An end has sent a RST.
    Close => "close", 10;
    /// Both ends have sent a SYN that acknowledges nothing.
    SynSent2 => "syn-sent2", 120;
    /// UDP: packets in one direction.
    Udp => "udp", 30;
    /// Packets in both.
    UdpReplied => "udp-replied", 120;
    /// ICMP echo: not answered.
    Icmp => "icmp", 30;
    /// Answered.
    IcmpReplied => "icmp-replied", 30;
    /// Another protocol: packets in one direction.
    Other => "other", 600;
    /// Packets in both.
    OtherReplied => "other-replied", 600;
}

impl State {
    /// The state with a number, of which four bits count.
    #[inline(always)]
    pub const fn from_number(number: u8) -> Self {
        State::ALL[number as usize % STATES]
    }

    /// It is TCP's.
    #[inline(always)]
    pub const fn is_tcp(self) -> bool {
        (self as u8) < State::Udp as u8
    }

    /// TCP's ends have not both acknowledged each other, so that its bounds are those of the SYNs.
    #[inline(always)]
    pub const fn is_opening(self) -> bool {
        const OPENING: u16 =
            1 << State::SynSent as u8 | 1 << State::SynSent2 as u8 | 1 << State::SynRecv as u8;
        OPENING >> self as u8 & 1 != 0
    }

    /// It has been answered, by whoever had to see the packet that opened it: for TCP, the original
    /// direction has acknowledged the answer, too. Such a flow is no longer embryonic.
    #[inline(always)]
    pub const fn is_established(self) -> bool {
        const EMBRYONIC: u16 = 1 << State::None as u8
            | 1 << State::SynSent as u8
            | 1 << State::SynRecv as u8
            | 1 << State::SynSent2 as u8
            | 1 << State::Udp as u8
            | 1 << State::Icmp as u8
            | 1 << State::Other as u8;
        EMBRYONIC >> self as u8 & 1 == 0
    }
}

/// How long a flow lasts without packets, by its state: in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts([u32; STATES]);

impl Timeouts {
    /// That of a state.
    #[inline(always)]
    pub const fn of(&self, state: State) -> u32 {
        self.0[state as usize]
    }

    /// Sets that of a state.
    pub const fn set(&mut self, state: State, seconds: u32) {
        self.0[state as usize] = seconds;
    }
}

/// What a packet does to a connection, as far as its state tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It leads to this state, often the same one.
    To(State),
    /// It opens another connection between the same ends.
    New,
    /// TCP never has these flags together.
    BadFlags,
    /// It does not belong to a connection in this state.
    OutOfState,
}

/// What a packet does; `flags` are the low bits of TCP's, 0 for other protocols.
#[inline(always)]
pub const fn step(state: State, direction: Direction, flags: u8) -> Step {
    decoded(TABLE[state as usize][direction as usize][(flags & FLAGS) as usize])
}

/// True if such a packet leaves a connection in its state, as most do: [`step`], without a branch.
#[inline(always)]
pub const fn stays(state: State, direction: Direction, flags: u8) -> bool {
    TABLE[state as usize][direction as usize][(flags & FLAGS) as usize] == state as u8
}

/// The flags that count.
const FLAGS: u8 = FIN | SYN | RST | PSH | ACK;

/// Codes of steps that lead to no state; the others are numbers of states.
const NEW: u8 = 1 << 5;
const BAD_FLAGS: u8 = 1 << 6;
const OUT_OF_STATE: u8 = 1 << 7;

const fn decoded(code: u8) -> Step {
    match code {
        NEW => Step::New,
        BAD_FLAGS => Step::BadFlags,
        OUT_OF_STATE => Step::OutOfState,
        state => Step::To(State::from_number(state)),
    }
}

/// By state, direction and flags.
static TABLE: [[[u8; 32]; 2]; STATES] = table();

const _: () = assert!(size_of_val(&TABLE) == 1024);

const fn table() -> [[[u8; 32]; 2]; STATES] {
    let mut table = [[[0; 32]; 2]; STATES];
    let mut at = 0;
    while at < STATES * 2 * 32 {
        let (state, direction, flags) = (at / 64, at / 32 % 2, at % 32);
        let code = code(State::ALL[state], direction == 1, flags as u8);
        table[state][direction][flags] = code;
        at += 1;
    }
    table
}

const fn code(state: State, reply: bool, flags: u8) -> u8 {
    match state {
        State::Udp | State::Icmp | State::Other if reply => return state as u8 + 1,
        state if state as u8 >= State::Udp as u8 => return state as u8,
        _ => {}
    }
    const SYN_ACK: u8 = SYN | ACK;
    const RST_ACK: u8 = RST | ACK;
    const FIN_ACK: u8 = FIN | ACK;
    match flags & !PSH {
        SYN => syn(state, reply),
        SYN_ACK => syn_ack(state, reply),
        FIN_ACK => fin(state),
        ACK => ack(state, reply),
        RST | RST_ACK => rst(state),
        _ => BAD_FLAGS,
    }
}

/// A SYN opens a connection where none is, or where the last one is over; from the other end, it
/// meets the one on its way. Within a connection it may be a repetition.
const fn syn(state: State, reply: bool) -> u8 {
    match state {
        State::None if reply => OUT_OF_STATE,
        State::None => State::SynSent as u8,
        State::TimeWait | State::Close => NEW,
        State::SynSent if reply => State::SynSent2 as u8,
        State::SynSent | State::SynSent2 => state as u8,
        _ if reply => OUT_OF_STATE,
        _ => state as u8,
    }
}

/// The answer to a SYN, and its repetitions.
const fn syn_ack(state: State, reply: bool) -> u8 {
    match state {
        State::None => OUT_OF_STATE,
        State::SynSent if !reply => OUT_OF_STATE,
        State::SynSent | State::SynSent2 => State::SynRecv as u8,
        State::SynRecv => state as u8,
        _ if reply => state as u8,
        _ => OUT_OF_STATE,
    }
}

const fn fin(state: State) -> u8 {
    match state {
        State::None | State::SynSent | State::SynSent2 => OUT_OF_STATE,
        State::SynRecv | State::Established => State::FinWait as u8,
        State::FinWait | State::CloseWait => State::LastAck as u8,
        _ => state as u8,
    }
}

/// An acknowledgment, with data or without. Nothing but this picks up a connection that has begun
/// before.
const fn ack(state: State, reply: bool) -> u8 {
    match state {
        State::None if !reply => State::Established as u8,
        State::None | State::SynSent | State::SynSent2 => OUT_OF_STATE,
        State::SynRecv if !reply => State::Established as u8,
        State::FinWait => State::CloseWait as u8,
        State::LastAck => State::TimeWait as u8,
        _ => state as u8,
    }
}

const fn rst(state: State) -> u8 {
    match state {
        State::None => OUT_OF_STATE,
        _ => State::Close as u8,
    }
}
