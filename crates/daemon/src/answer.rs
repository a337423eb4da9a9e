//! Answers to operators: the commands of `control::cli`, carried out by the control thread between
//! two batches of news. Those that only look it carries out between the steps of a change, too.

use std::time::Instant;

use control::api::Output;
use control::cli::Verb;
use control::config::Config;
use control::history::Transactions;
use router::show::{self, Clear};
use router::state::HasRoutes;
use router::{Family, Router, acl, bond, firewall, ip, l2, nat, neighbor, vxlan};
use tables::prefix::Prefix;

use crate::daemon::Daemon;
use crate::inbox::Urgent;
use crate::interfaces::{OpenInterface, Slot};
use crate::reply::{Reply, done, give};
use crate::request::ControlRequest;
use crate::{facts, sflow, transaction};

/// Routes that one answer to `show ip fib` lists at most; the client asks for the rest. The control
/// thread does nothing else while it lists them.
const ROUTES: usize = 10_000;

/// The configuration in force, and what may change it.
pub enum Running<'t> {
    /// Nothing does at the moment.
    Settled(&'t mut Transactions),
    /// A change is being made: it is in force until that is done.
    Changing(&'t Config),
}

impl Running<'_> {
    fn config(&self) -> &Config {
        match self {
            Running::Settled(transactions) => transactions.running(),
            Running::Changing(config) => config,
        }
    }
}

/// Carries a command out and sends the answer. In the middle of a change only those that
/// [look](ControlRequest::only_looks) have one.
pub fn reply(request: &ControlRequest, daemon: &mut Daemon, running: Running<'_>) {
    if let Some(answer) = answer(daemon, running, request).transpose() {
        // Whoever asked may have gone away.
        let _ = request.reply.send(answer);
    }
}

/// Looks after what waits for nothing, however long a change takes: what the kernel has said by
/// now, neighbors, and those who only look.
pub fn look_between(daemon: &mut Daemon, running: &Config) {
    for message in daemon.inbox.urgent() {
        match message {
            Urgent::Kernel(batch) => daemon.kernel(batch),
            Urgent::Ask(ask) => reply(&ask, daemon, Running::Changing(running)),
        }
    }
    let now = Instant::now();
    daemon.look_after_neighbors(now);
    daemon.look_after_samples(now);
    daemon.look_after_flows(now);
}

/// The answer; none yet if workers have to be asked.
fn answer(
    daemon: &mut Daemon,
    running: Running<'_>,
    ask: &ControlRequest,
) -> Result<Option<Output>, String> {
    let (command, json) = (&ask.command, ask.request.json);
    let first = command.argument(0);
    let router = &mut daemon.routing.router;
    let answer = match command.verb {
        Verb::ShowRuntime => give(&show::runtime(router), json),
        Verb::ShowErrors => give(
            &show::errors(&daemon.routing.router, &port_counters(daemon)),
            json,
        ),
        Verb::ShowInterface => interfaces(daemon, first, json),
        Verb::ShowBuffers => give(&show::buffers(router), json),
        Verb::ShowMemory => give(&show::memory(router), json),
        Verb::ShowInterfaceAddress => match named_like_address(daemon, &ask.request.command) {
            Some(name) => interfaces(daemon, Some(name), json),
            None => give(
                &show::addresses(&daemon.routing.router, &others(daemon)),
                json,
            ),
        },
        Verb::ShowIpFib => fib::<u32>(router, first, json),
        Verb::ShowIp6Fib => fib::<u128>(router, first, json),
        Verb::ShowIpFibAfter => fib_after::<u32>(router, first, json),
        Verb::ShowIp6FibAfter => fib_after::<u128>(router, first, json),
        Verb::ShowNeighbors => give(&neighbor::show::neighbors(router, None), json),
        Verb::ShowIp4Neighbors => give(&neighbor::show::neighbors(router, Some(Family::V4)), json),
        Verb::ShowIp6Neighbors => give(&neighbor::show::neighbors(router, Some(Family::V6)), json),
        Verb::ShowAdjacency => give(&ip::show::adjacencies(router), json),
        Verb::ShowBridgeDomain => {
            let (which, detail) = command.apart_from("detail");
            let shown = l2::show::bridge_domains(router, which, detail);
            give(&shown.map_err(|e| e.to_string())?, json)
        }
        Verb::ShowAcl => {
            let shown = acl::show::acls(router, first);
            give(&shown.map_err(|e| e.to_string())?, json)
        }
        Verb::ShowPolicy => {
            let shown = firewall::show::policies(router, first);
            give(&shown.map_err(|e| e.to_string())?, json)
        }
        Verb::ShowNat => give(&nat::show::nat(router), json),
        Verb::ShowFlows | Verb::ShowFlowsTop | Verb::ShowFlowsSummary | Verb::ClearFlows => {
            return daemon.flows.ask(ask, router).map(|()| None);
        }
        Verb::ShowFlowsCounters => give(&firewall::flows::show::counters(router), json),
        Verb::ShowL2Fib => give(&l2::show::l2fib(router, first.is_some()), json),
        Verb::ShowBond => give(&bond::show::bonds(router, first.is_some()), json),
        Verb::ShowLacp => {
            let shown = bond::lacp::show::members_of_all(router, first);
            give(&shown.map_err(|e| e.to_string())?, json)
        }
        Verb::ShowSflow => {
            let slots = &daemon.interfaces.slots;
            give(&sflow::show(&daemon.sflow, slots, router), json)
        }
        Verb::ShowVxlan => give(&vxlan::show::tunnels(router), json),
        Verb::ShowMode => modes(router, first, json),
        Verb::ShowTrace => give(&show::trace(router), json),
        Verb::ShowThreads => give(&show::threads(router), json),
        Verb::ShowGraph => give(&show::graph(router), json),
        Verb::Explain => explain(daemon, &command.arguments, json),
        Verb::ShowHardware => give(&facts::hardware(daemon, first)?, json),
        Verb::ShowCpu => give(&facts::or_say(control::machine::cpu::Cpu::read())?, json),
        Verb::ShowPci => give(&facts::or_say(control::machine::pci::Bus::read())?, json),
        Verb::ShowWarnings => {
            if let Running::Settled(transactions) = running {
                daemon.look_at_settings_now(transactions.refused());
            }
            give(&daemon.warnings.and(daemon.waiting()), json)
        }
        Verb::ShowVersion => give(&facts::Version::default(), json),
        Verb::ShowConfig => Ok(if json {
            Output::Json(running.config().shown())
        } else {
            Output::Text(running.config().text())
        }),
        Verb::TraceAdd => trace_add(router, first, command.argument(1), json),
        Verb::ClearRuntime => clear(daemon, Clear::Runtime, json),
        Verb::ClearErrors => clear(daemon, Clear::Errors, json),
        Verb::ClearInterface => clear(daemon, Clear::Interface, json),
        Verb::ClearTrace => {
            router.trace_clear();
            done("traced packets are discarded", json)
        }
        Verb::Plan | Verb::Apply | Verb::Confirm | Verb::Rollback | Verb::History | Verb::Dump => {
            let Running::Settled(transactions) = running else {
                return Err("a change is being made; try again".to_owned());
            };
            transaction::answer(transactions, daemon, command, &ask.request, &ask.who)
        }
    };
    answer.map(Some)
}

/// Traces so many packets from a node on.
fn trace_add(router: &mut Router, node: Option<&str>, packets: Option<&str>, json: bool) -> Reply {
    let packets = packets
        .and_then(|n| n.parse().ok())
        .ok_or("trace add: how many packets? give a number after the node")?;
    let added = router.trace_add(node.unwrap_or_default(), packets);
    added.map_err(|e| e.to_string())?;
    done("", json)
}

/// What the router would do with a packet, and what is done before it comes there.
fn explain(daemon: &Daemon, words: &[String], json: bool) -> Reply {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let question = control::cli::packet::read(&words)?;
    let explained = router::explain::explain(&daemon.routing.router, &question);
    let mut explained = explained.map_err(|e| e.to_string())?;
    let mut slots = daemon.interfaces.slots.iter();
    let slot = slots.find(|slot| slot.config.name == explained.interface);
    if slot.is_some_and(|slot| daemon.interfaces.program_counters(slot).is_some()) {
        explained.notes.push(format!(
            "{} has an XDP program, which leaves to the kernel what is for the host or for other \
             Ethernet addresses, and may forward by itself, out of the same tables, what no feature \
             of an interface waits for.",
            explained.interface
        ));
    }
    give(&explained, json)
}

/// One route of a family, or the first of all.
fn fib<A: HasRoutes>(router: &Router, prefix: Option<&str>, json: bool) -> Reply {
    match prefix {
        Some(prefix) => give(&ip::show::fib::<A>(router, prefix.parse()?), json),
        None => give(&ip::show::fib_list::<A>(router, None, ROUTES), json),
    }
}

/// The routes of a family that follow one.
fn fib_after<A: HasRoutes>(router: &Router, prefix: Option<&str>, json: bool) -> Reply {
    let after = match prefix.unwrap_or_default().parse()? {
        ip::show::Query::Exact(prefix) => prefix,
        ip::show::Query::Longest(address) => Prefix::host(address),
    };
    give(&ip::show::fib_list::<A>(router, Some(after), ROUTES), json)
}

fn clear(daemon: &mut Daemon, what: Clear, json: bool) -> Reply {
    if what == Clear::Errors {
        for (_, counters) in port_counters(daemon) {
            counters.clear();
        }
    }
    daemon.routing.router.clear(what);
    let cleared = match what {
        Clear::Runtime => "the counters of nodes count from 0",
        Clear::Errors => "the counters of errors count from 0",
        Clear::Interface => "the counters of interfaces count from 0",
    };
    done(cleared, json)
}

/// One interface, or all.
fn interfaces(daemon: &Daemon, name: Option<&str>, json: bool) -> Reply {
    let shown = show::interfaces(&daemon.routing.router, name, &others(daemon));
    give(&shown.map_err(|e| e.to_string())?, json)
}

/// What one interface does with what comes in, or each.
fn modes(router: &Router, name: Option<&str>, json: bool) -> Reply {
    let mut shown = l2::show::modes(router);
    if let Some(name) = name {
        show::number_of(router, name).map_err(|e| e.to_string())?;
        shown.interfaces.retain(|mode| mode.interface == name);
    }
    give(&shown, json)
}

/// The interface that is meant where its exact name stands for `address`, shortened: `show
/// interface a`.
fn named_like_address<'w>(daemon: &Daemon, words: &'w [String]) -> Option<&'w str> {
    let word = words.get(2).filter(|word| *word != "address")?;
    let mut slots = daemon.interfaces.slots.iter();
    slots
        .any(|slot| slot.config.name == *word)
        .then_some(word.as_str())
}

/// The interfaces that the router itself does not know.
fn others(daemon: &Daemon) -> Vec<show::Other> {
    daemon.interfaces.others(&daemon.routing.translator)
}

/// The counters of all ports, by name.
fn port_counters(daemon: &Daemon) -> Vec<(String, graph::PortCounters)> {
    let open = daemon.interfaces.slots.iter().filter_map(Slot::open);
    open.flat_map(OpenInterface::counters).cloned().collect()
}
