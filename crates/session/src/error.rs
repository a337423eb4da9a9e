//! Reasons why a session cannot do what it is asked to.

use std::io;
use std::time::Duration;

use loadgen::device::Failure;
use loadgen::model::rate::RateError;
use ports::OpenError;
use xdp::LiveError;

use crate::spec::{FORMS, Spec};

/// Error that says what is wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such interface.
    #[error("{0}: there is no network device {0}; `ip link` shows which there are")]
    NoInterface(String),
    /// The kernel does not say what the interface is.
    #[error("{name}: {source}; `ip link` shows which there are")]
    Interface {
        /// Its name.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The kernel does not tell when devices go down.
    #[error("watching network devices: {0}")]
    Links(io::Error),
    /// The file with a memif's secret cannot be read.
    #[error("{file}, which is to have the secret of the memif: {source}")]
    Secret {
        /// The file.
        file: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The interface is down.
    #[error("{0} is down; `ip link set {0} up` first")]
    Down(String),
    /// Live frames are to receive.
    #[error("live:{0} only sends; to receive use sink:{0} or af_xdp:{0} ({FORMS})")]
    OnlySends(String),
    /// A sink is to send.
    #[error("sink:{0} only receives; to send use live:{0} or af_xdp:{0} ({FORMS})")]
    OnlyReceives(String),
    /// The receiver could not know a stream's packets when they come back.
    #[error(
        "stream `{stream}` is neither IPv4 without options nor IPv6, or its lengths vary: {port} could not tell its packets from others when they come back; {}",
        by_other_means(.port, *.marked)
    )]
    Unrecognizable {
        /// Name of the stream.
        stream: String,
        /// The port that is to receive it.
        port: Spec,
        /// True if the stream has a mark.
        marked: bool,
    },
    /// A port is given for two directions that need one each.
    #[error("{port} is given for two directions; each needs its own {option}")]
    Twice {
        /// The port.
        port: Spec,
        /// The option of the command line that names such ports.
        option: &'static str,
    },
    /// The generator of live frames cannot be had, and nothing stands in for it.
    #[error("{ports}: {source}")]
    Live {
        /// The ports that it was to serve.
        ports: String,
        /// Reason.
        source: LiveError,
    },
    /// The XDP program that counts cannot be on the interface.
    #[error(transparent)]
    Sink(#[from] xdp::Error),
    /// No port sends.
    #[error("nothing to send by")]
    NoSender,
    /// There is no memory for packets.
    #[error("no packet memory ({mebibytes} MiB): {source}")]
    Memory {
        /// Memory that was asked for, in MiB.
        mebibytes: u64,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// Several cores are to write one file.
    #[error("{0}: one core writes a file; leave out --cores, or use --dry-run")]
    FileOfManyCores(Spec),
    /// A capture file is to be read while it is written.
    #[error("{0} is to be read and written; give two files")]
    FileBothWays(Spec),
    /// An interface has fewer queues than cores that are to send.
    #[error(
        "{port}: {cores} cores are to send, but {interface} has queues for {queues}; see `ethtool -L {interface}`, or lower --cores"
    )]
    FewQueues {
        /// The port.
        port: Spec,
        /// Its interface.
        interface: String,
        /// Cores that are to send.
        cores: u32,
        /// Queues that there are.
        queues: u32,
    },
    /// A port cannot be opened.
    #[error("{port}: {source}")]
    Open {
        /// The port.
        port: Spec,
        /// Reason.
        source: Box<OpenError>,
    },
    /// Nobody came to the other side of a memif.
    #[error(
        "memif: no connection within {} s ({reason}); is the device running, and are path, id and roles right?",
        .within.as_secs()
    )]
    NoConnection {
        /// Time that it was waited for.
        within: Duration,
        /// Reason why there is none.
        reason: String,
    },
    /// The other side of a memif has fewer queues than cores that are to send.
    #[error(
        "memif: {cores} cores are to send, but the other side ({peer}) has queues for {queues}; give it more, or lower --cores"
    )]
    FewRings {
        /// Name of the other side.
        peer: String,
        /// Cores that are to send.
        cores: u32,
        /// Queues that there are.
        queues: u16,
    },
    /// A session has no port of that number.
    #[error("there is no port {port}: the session has {ports}, from 0 on")]
    NoPort {
        /// The number.
        port: usize,
        /// Number of ports.
        ports: usize,
    },
    /// A session is to have a port twice.
    #[error("{0} is given twice; a session has each port once")]
    GivenTwice(Spec),
    /// Two ports send to one receiver.
    #[error("ports {0} and {1} have one receiver; give each its own")]
    OneReceiver(usize, usize),
    /// Somebody else has acquired the port.
    #[error("port {port} is {owner}'s; wait until it is released, or acquire it by force")]
    Acquired {
        /// The port.
        port: usize,
        /// Name of its owner.
        owner: String,
    },
    /// The one who asks has not acquired the port.
    #[error("port {port} is not {owner}'s; acquire it first")]
    NotAcquired {
        /// The port.
        port: usize,
        /// Name of the one who asks.
        owner: String,
    },
    /// The port sends or pauses, and would have to be stopped.
    #[error("port {0} is running; stop it first")]
    Running(usize),
    /// The port does not send.
    #[error("port {0} is not sending; start it first")]
    NotRunning(usize),
    /// The port does not pause.
    #[error("port {0} does not pause; there is nothing to resume")]
    NotPaused(usize),
    /// The port has nothing to send.
    #[error("port {0} has no streams; set some first")]
    NoStreams(usize),
    /// A stream's rate is a share of the line rate, which nobody knows.
    #[error(
        "a stream's rate is a share of the line rate, but port {0} has no known speed; give one when it is opened"
    )]
    NoLine(usize),
    /// The port cannot send at that rate.
    #[error("port {port}: {source}")]
    Rate {
        /// The port.
        port: usize,
        /// Reason.
        source: RateError,
    },
    /// The thread that serves the port has ended.
    #[error("port {port}: {source}; open the session anew")]
    Device {
        /// The port.
        port: usize,
        /// Failure of the device.
        source: Failure,
    },
    /// The caller gave up.
    #[error("interrupted before the other side of a memif was there")]
    Interrupted,
}

/// Advice on how to send a stream whose packets `port` does not know.
fn by_other_means(port: &Spec, marked: bool) -> String {
    match (port, marked) {
        (Spec::Sink(name), true) => format!("af_xdp:{name} knows them by their marks"),
        _ => "send it by `parshall send`, or give it flow statistics".to_owned(),
    }
}
