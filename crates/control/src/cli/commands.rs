//! The table of commands.

use router::Family;
use serde::Serialize;

/// The effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the table says what each does")]
pub enum Verb {
    ShowRuntime,
    ShowErrors,
    ShowInterface,
    ShowInterfaceAddress,
    ShowHardware,
    ShowCpu,
    ShowPci,
    ShowBuffers,
    ShowMemory,
    ShowVersion,
    /// `show warnings`.
    ShowWarnings,
    ShowIpFib,
    ShowIpFibAfter,
    ShowIp6Fib,
    ShowIp6FibAfter,
    ShowNeighbors,
    ShowIp4Neighbors,
    ShowIp6Neighbors,
    ShowAdjacency,
    ShowBridgeDomain,
    ShowL2Fib,
    ShowAcl,
    ShowPolicy,
    ShowNat,
    ShowFlows,
    ShowFlowsTop,
    ShowFlowsSummary,
    ShowFlowsCounters,
    ShowMode,
    ShowBond,
    ShowLacp,
    ShowVxlan,
    ShowSflow,
    ShowTrace,
    ShowConfig,
    ShowThreads,
    ShowGraph,
    Explain,
    TraceAdd,
    ClearRuntime,
    ClearErrors,
    ClearInterface,
    ClearTrace,
    ClearFlows,
    Plan,
    Apply,
    Confirm,
    Rollback,
    History,
    Dump,
}

impl Verb {
    /// Returns true if it may take its time: a change of the configuration can have thousands of
    /// steps, and workers look through millions of flows beside their packets.
    pub fn is_long(self) -> bool {
        let asks_workers = matches!(
            self,
            Verb::ShowFlows | Verb::ShowFlowsTop | Verb::ShowFlowsSummary | Verb::ClearFlows
        );
        matches!(self, Verb::Apply | Verb::Rollback) || asks_workers
    }
}

/// An argument that may follow the words of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the help.
    pub name: &'static str,
    /// The form that it must have.
    pub form: Form,
    /// True if it may be left out.
    pub optional: bool,
}

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Any word.
    Name,
    /// A prefix or address of this family.
    Prefix(Family),
    /// This word, or a beginning of it.
    Word(&'static str),
    /// A prefix or address of any family.
    AnyPrefix,
    /// A number in this range.
    Number(u32, u32),
    /// All further words: a [packet](super::packet).
    Packet,
    /// An IP protocol: its number or name.
    Protocol,
    /// A port, or the first and the last of some.
    Ports,
    /// The state of a flow.
    State,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Form {
    /// What stands for a value in the help.
    pub fn value(self) -> String {
        match self {
            Form::Name => "NAME".to_owned(),
            Form::Prefix(_) | Form::AnyPrefix => "PREFIX".to_owned(),
            Form::Word(word) => word.to_owned(),
            Form::Number(..) => "N".to_owned(),
            Form::Protocol => "PROTOCOL".to_owned(),
            Form::Ports => "PORT".to_owned(),
            Form::State => "STATE".to_owned(),
            Form::Choice(words) => words.join("|"),
            Form::Packet => "PACKET".to_owned(),
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Its effect.
    pub verb: Verb,
    /// Its words.
    pub words: &'static [&'static str],
    /// Its arguments, which follow the words.
    pub arguments: &'static [Argument],
    /// Words that may follow those, in any order, each with a value of the form that it has here.
    pub options: &'static [&'static [Argument]],
    /// True if one of the options has to be there.
    pub needs_option: bool,
    /// True if it changes anything, which not everyone may do.
    pub write: bool,
    /// Its purpose, for the help.
    pub help: &'static str,
}

const fn row(verb: Verb, words: &'static [&'static str], help: &'static str) -> Spec {
    Spec {
        verb,
        words,
        arguments: &[],
        options: &[],
        needs_option: false,
        write: false,
        help,
    }
}

impl Spec {
    const fn with(mut self, arguments: &'static [Argument]) -> Self {
        self.arguments = arguments;
        self
    }

    const fn options(mut self, options: &'static [&'static [Argument]]) -> Self {
        self.options = options;
        self
    }

    const fn needs_option(mut self) -> Self {
        self.needs_option = true;
        self
    }

    const fn writes(mut self) -> Self {
        self.write = true;
        self
    }

    /// Its words and arguments as help prints them.
    pub fn usage(&self) -> String {
        let mut text = self.words.join(" ");
        for argument in self.arguments {
            let name = argument.name;
            text += &if argument.optional {
                format!(" [{name}]")
            } else {
                format!(" {name}")
            };
        }
        for options in self.options {
            text += &match options {
                [one] => format!(" [{} {}]", one.name, one.form.value()),
                _ if self.needs_option => " FILTER...".to_owned(),
                _ => " [FILTER...]".to_owned(),
            };
        }
        text
    }
}

const INTERFACE: Argument = Argument {
    name: "NAME",
    form: Form::Name,
    optional: true,
};
const fn prefix(family: Family) -> Argument {
    Argument {
        name: "PREFIX",
        form: Form::Prefix(family),
        optional: true,
    }
}
const fn after(family: Family) -> Argument {
    Argument {
        optional: false,
        ..prefix(family)
    }
}
const DOMAIN: Argument = Argument {
    name: "BD-ID",
    ..INTERFACE
};
const DETAIL: Argument = Argument {
    name: "detail",
    form: Form::Word("detail"),
    optional: true,
};
const VERBOSE: Argument = Argument {
    name: "verbose",
    form: Form::Word("verbose"),
    optional: true,
};
/// As operators of VPP write it.
const TUNNEL: Argument = Argument {
    name: "tunnel",
    form: Form::Word("tunnel"),
    optional: true,
};
const NODE: Argument = Argument {
    name: "NODE",
    form: Form::Name,
    optional: false,
};
const COUNT: Argument = Argument {
    name: "N",
    form: Form::Number(1, 10_000),
    optional: false,
};
const PACKET: Argument = Argument {
    name: "PACKET",
    form: Form::Packet,
    optional: false,
};
const ENTRY: Argument = Argument {
    name: "N",
    form: Form::Number(1, u32::MAX),
    optional: true,
};

const fn option(name: &'static str, form: Form) -> Argument {
    Argument {
        name,
        form,
        optional: true,
    }
}
/// Which flows are meant, by the words of a policy's rules.
pub(super) const FLOWS: &[Argument] = &[
    option("protocol", Form::Protocol),
    option("source", Form::AnyPrefix),
    option("destination", Form::AnyPrefix),
    option("address", Form::AnyPrefix),
    option("source-port", Form::Ports),
    option("destination-port", Form::Ports),
    option("port", Form::Ports),
    option("state", Form::State),
    option("interface", Form::Name),
    option("worker", Form::Number(0, router::WORKERS as u32 - 1)),
];
/// How many flows are shown.
const MANY: Form = Form::Number(1, router::firewall::flows::MOST as u32);
const LIMIT: &[Argument] = &[option("limit", MANY)];
const BY: &[Argument] = &[option("by", Form::Choice(&["bytes", "packets"]))];
const TOP: Argument = option("N", MANY);

/// Every command.
pub const COMMANDS: &[Spec] = &[
    row(
        Verb::ShowRuntime,
        &["show", "runtime"],
        "calls, packets and cycles of each node on each worker",
    ),
    row(
        Verb::ShowErrors,
        &["show", "errors"],
        "packets dropped, by node and reason, and what ports count themselves",
    ),
    row(
        Verb::ShowInterface,
        &["show", "interface"],
        "interfaces with state, MTU and counters; those whose device is absent, too",
    )
    .with(&[INTERFACE]),
    row(
        Verb::ShowInterfaceAddress,
        &["show", "interface", "address"],
        "addresses of interfaces",
    ),
    row(
        Verb::ShowHardware,
        &["show", "hardware"],
        "driver, queues, rings, link speed and offloads",
    )
    .with(&[INTERFACE]),
    row(Verb::ShowCpu, &["show", "cpu"], "the processor"),
    row(
        Verb::ShowPci,
        &["show", "pci"],
        "network devices on the PCI bus",
    ),
    row(
        Verb::ShowBuffers,
        &["show", "buffers"],
        "packet buffers in use and free",
    ),
    row(
        Verb::ShowMemory,
        &["show", "memory"],
        "memory in use, by purpose",
    ),
    row(Verb::ShowVersion, &["show", "version"], "version and build"),
    row(
        Verb::ShowWarnings,
        &["show", "warnings"],
        "what is in the way: kernel settings, absent devices, waiting routes",
    ),
    row(
        Verb::ShowIpFib,
        &["show", "ip", "fib"],
        "IPv4 routes as the router uses them",
    )
    .with(&[prefix(Family::V4)]),
    row(
        Verb::ShowIpFibAfter,
        &["show", "ip", "fib", "after"],
        "the routes after this one, if one answer cannot hold them all",
    )
    .with(&[after(Family::V4)]),
    row(
        Verb::ShowNeighbors,
        &["show", "neighbors"],
        "IPv4 and IPv6 neighbors",
    ),
    row(
        Verb::ShowNeighbors,
        &["show", "ip", "neighbors"],
        "the same as show neighbors",
    ),
    row(
        Verb::ShowIp4Neighbors,
        &["show", "ip4", "neighbors"],
        "IPv4 neighbors",
    ),
    row(
        Verb::ShowIp6Fib,
        &["show", "ip6", "fib"],
        "IPv6 routes as the router uses them",
    )
    .with(&[prefix(Family::V6)]),
    row(
        Verb::ShowIp6FibAfter,
        &["show", "ip6", "fib", "after"],
        "the routes after this one, if one answer cannot hold them all",
    )
    .with(&[after(Family::V6)]),
    row(
        Verb::ShowIp6Neighbors,
        &["show", "ip6", "neighbors"],
        "IPv6 neighbors",
    ),
    row(
        Verb::ShowAdjacency,
        &["show", "adjacency"],
        "next hops and the headers that packets to them get",
    ),
    row(
        Verb::ShowBridgeDomain,
        &["show", "bridge-domain"],
        "bridge domains, or one by its number; with detail their members, too",
    )
    .with(&[DOMAIN, DETAIL]),
    row(
        Verb::ShowAcl,
        &["show", "acl"],
        "rules of access lists, how often each has matched, and the interfaces that have them",
    )
    .with(&[INTERFACE]),
    row(
        Verb::ShowPolicy,
        &["show", "policy"],
        "rules of the firewall's policies, how often each has decided, and the interfaces that have them",
    )
    .with(&[INTERFACE]),
    row(
        Verb::ShowNat,
        &["show", "nat"],
        "rules of address translation, and how many flows each has begun",
    ),
    row(
        Verb::ShowFlows,
        &["show", "flows"],
        "flows of the firewall that match: 100 of them, or N",
    )
    .options(&[FLOWS, LIMIT]),
    row(
        Verb::ShowFlowsTop,
        &["show", "flows", "top"],
        "the 10 or N flows with the most bytes or packets since they began",
    )
    .with(&[TOP])
    .options(&[FLOWS, BY]),
    row(
        Verb::ShowFlowsSummary,
        &["show", "flows", "summary"],
        "how many flows each worker has, by state, and what became of others",
    )
    .options(&[FLOWS]),
    row(
        Verb::ShowFlowsCounters,
        &["show", "flows", "counters"],
        "the same without states, which workers need not be asked for",
    ),
    row(
        Verb::ShowL2Fib,
        &["show", "l2fib"],
        "how many stations bridge domains know; with verbose which, and where they are",
    )
    .with(&[VERBOSE]),
    row(
        Verb::ShowMode,
        &["show", "mode"],
        "whether interfaces route, bridge or cross-connect, or one interface",
    )
    .with(&[INTERFACE]),
    row(
        Verb::ShowBond,
        &["show", "bond"],
        "bonds; with detail their members, too",
    )
    .with(&[DETAIL]),
    row(
        Verb::ShowLacp,
        &["show", "lacp"],
        "what members of bonds and their other ends have agreed, or one member",
    )
    .with(&[INTERFACE]),
    row(
        Verb::ShowVxlan,
        &["show", "vxlan"],
        "VXLAN tunnels",
    )
    .with(&[TUNNEL]),
    row(
        Verb::ShowSflow,
        &["show", "sflow"],
        "samples of packets: rate, collector, interfaces, and how many there were",
    ),
    row(Verb::ShowTrace, &["show", "trace"], "traced packets"),
    row(
        Verb::ShowConfig,
        &["show", "config"],
        "the configuration in force",
    ),
    row(
        Verb::ShowThreads,
        &["show", "threads"],
        "workers and where they run",
    ),
    row(
        Verb::ShowGraph,
        &["show", "graph"],
        "nodes, and how many packets each hands on to which",
    ),
    row(
        Verb::Explain,
        &["explain"],
        "what the router would do with a packet, and why; nothing is sent, and nothing changes",
    )
    .with(&[PACKET]),
    row(
        Verb::TraceAdd,
        &["trace", "add"],
        "trace the next N packets that a node sees",
    )
    .with(&[NODE, COUNT])
    .writes(),
    row(
        Verb::ClearRuntime,
        &["clear", "runtime"],
        "reset the counters of nodes",
    )
    .writes(),
    row(
        Verb::ClearErrors,
        &["clear", "errors"],
        "reset the counters of drops, including those of ports",
    )
    .writes(),
    row(
        Verb::ClearInterface,
        &["clear", "interface"],
        "reset the counters of interfaces",
    )
    .writes(),
    row(
        Verb::ClearFlows,
        &["clear", "flows"],
        "remove those of the firewall's flows that match, as for show flows",
    )
    .options(&[FLOWS])
    .needs_option()
    .writes(),
    row(
        Verb::ClearFlows,
        &["clear", "flows", "all"],
        "remove all of the firewall's flows",
    )
    .writes(),
    row(
        Verb::ClearTrace,
        &["clear", "trace"],
        "discard traced packets",
    )
    .writes(),
    row(
        Verb::Plan,
        &["plan"],
        "what the configuration in the request would change",
    ),
    row(
        Verb::Apply,
        &["apply"],
        "change to the configuration in the request",
    )
    .writes(),
    row(
        Verb::Confirm,
        &["confirm"],
        "keep the configuration that waits for confirmation",
    )
    .writes(),
    row(
        Verb::Rollback,
        &["rollback"],
        "go back to the configuration before, or to number N of the history",
    )
    .with(&[ENTRY])
    .writes(),
    row(
        Verb::History,
        &["history"],
        "the configurations so far, or what number N changed",
    )
    .with(&[ENTRY]),
    // There are secrets in it.
    row(Verb::Dump, &["dump"], "the configuration in force, as YAML").writes(),
];
