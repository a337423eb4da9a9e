//! A port of the load tester, as on the command line.

use std::fmt;
use std::str::FromStr;

use io::memif::Role;
use loadgen::device::Sender;

/// The forms, for `--help` and messages.
pub const FORMS: &str =
    "live:IF, af_xdp:IF, sink:IF, memif:PATH,id=N,role=client|server,secret-file=FILE or pcap:FILE";

/// A port to send or receive by. The same specification given twice is one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// XDP live frames through an interface; only sends.
    Live(String),
    /// AF_XDP sockets on an interface.
    AfXdp(String),
    /// An XDP program on an interface that counts and drops; only receives.
    Sink(String),
    /// Shared memory.
    Memif {
        /// Path of the unix socket; `@name` is in the abstract namespace.
        socket: String,
        /// Interface id on that socket.
        id: u32,
        /// Our side.
        role: Role,
        /// File whose first line is the secret that both sides know; not the secret itself, which
        /// everybody could read in the list of processes.
        secret_file: Option<String>,
    },
    /// A capture file: what is sent is written to it; what is in it is received.
    Pcap(String),
}

impl Spec {
    /// Name of the network interface that the port is on, if any.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Spec::Live(name) | Spec::AfXdp(name) | Spec::Sink(name) => Some(name),
            Spec::Memif { .. } | Spec::Pcap(_) => None,
        }
    }

    /// Way in which its packets are made; None if it only receives.
    pub fn sender(&self) -> Option<Sender> {
        match self {
            Spec::Live(_) => Some(Sender::Live),
            Spec::AfXdp(_) => Some(Sender::AfXdp),
            Spec::Sink(_) => None,
            Spec::Memif { .. } => Some(Sender::Memif),
            Spec::Pcap(_) => Some(Sender::Pcap),
        }
    }

    /// Clock that says when a packet came; None: the port only counts.
    pub fn timestamps(&self) -> Option<&'static str> {
        match self {
            Spec::Live(_) | Spec::Sink(_) => None,
            Spec::AfXdp(_) | Spec::Memif { .. } | Spec::Pcap(_) => Some("software"),
        }
    }

    /// The port for the way back: what sent receives, and what received sends.
    pub fn reversed(&self) -> Spec {
        match self.clone() {
            Spec::Live(name) => Spec::Sink(name),
            Spec::Sink(name) => Spec::Live(name),
            both => both,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Live(name) => write!(f, "live:{name}"),
            Spec::AfXdp(name) => write!(f, "af_xdp:{name}"),
            Spec::Sink(name) => write!(f, "sink:{name}"),
            Spec::Memif {
                socket,
                id,
                role,
                secret_file,
            } => {
                write!(f, "memif:{socket},id={id},role={role}")?;
                match secret_file {
                    Some(file) => write!(f, ",secret-file={file}"),
                    None => Ok(()),
                }
            }
            Spec::Pcap(file) => write!(f, "pcap:{file}"),
        }
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        if rest.is_empty() {
            return Err(format!("expected {FORMS}"));
        }
        let name = || rest.to_owned();
        match kind {
            "live" => Ok(Spec::Live(name())),
            "af_xdp" => Ok(Spec::AfXdp(name())),
            "sink" => Ok(Spec::Sink(name())),
            "memif" => memif(rest),
            "pcap" => Ok(Spec::Pcap(name())),
            _ => Err(format!("no port kind `{kind}`; there are {FORMS}")),
        }
    }
}

/// `PATH,id=N,role=client|server,secret-file=FILE`; by default, id is 0, the role is client, and
/// there is no secret.
fn memif(text: &str) -> Result<Spec, String> {
    let mut words = text.split(',');
    let socket = words.next().unwrap_or_default().to_owned();
    let (mut id, mut role, mut secret_file) = (0, Role::Client, None);
    for word in words {
        match word.split_once('=') {
            Some(("id", number)) => {
                id = number
                    .parse()
                    .map_err(|_| format!("id={number}: expected a number"))?
            }
            Some(("role", "client")) => role = Role::Client,
            Some(("role", "server")) => role = Role::Server,
            Some(("secret-file", file)) if !file.is_empty() => secret_file = Some(file.to_owned()),
            _ => {
                return Err(format!(
                    "`{word}`: expected id=N, role=client, role=server or secret-file=FILE"
                ));
            }
        }
    }
    if socket.is_empty() {
        return Err("memif needs the path of a socket".to_owned());
    }
    Ok(Spec::Memif {
        socket,
        id,
        role,
        secret_file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_ones_read_back() {
        for text in [
            "live:gen0",
            "af_xdp:eth0.100",
            "sink:gen1",
            "memif:/run/a.sock,id=3,role=server",
            "memif:@a,id=0,role=client,secret-file=/etc/secret",
            "pcap:a,b:c.pcap",
        ] {
            assert_eq!(
                text.parse::<Spec>().map(|spec| spec.to_string()),
                Ok(text.to_owned())
            );
        }
        let short: Spec = "memif:@x".parse().unwrap();
        assert_eq!(short.to_string(), "memif:@x,id=0,role=client");
    }

    #[test]
    fn wrong_ones_are_refused_with_what_is_accepted() {
        for (text, word) in [
            ("eth0", "live:IF"),
            ("live:", "live:IF"),
            ("dpdk:0", "dpdk"),
            ("memif:a,id=x", "number"),
            ("memif:a,mode=ip", "role=client"),
            ("memif:a,secret-file=", "secret-file=FILE"),
            ("memif:,id=1", "path"),
        ] {
            let error = text.parse::<Spec>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn who_only_counts_says_no_times() {
        let clock = |text: &str| text.parse::<Spec>().unwrap().timestamps();
        assert_eq!(
            ["live:a", "sink:a", "af_xdp:a", "memif:@a", "pcap:a"].map(clock),
            [
                None,
                None,
                Some("software"),
                Some("software"),
                Some("software")
            ]
        );
    }

    #[test]
    fn the_way_back_swaps_sender_and_sink() {
        assert_eq!(Spec::Live("a".into()).reversed(), Spec::Sink("a".into()));
        assert_eq!(Spec::AfXdp("a".into()).reversed(), Spec::AfXdp("a".into()));
    }
}
