//! A policy as workers ask it: for each state, a list of the rules that have it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use graph::counters::Counter;
use tables::acl::{Acl, IP4, IP6, Key, NONE, Rule as Match};
use tables::prefix::Prefix;

use super::{Action, Policy, Rule, State, States};
use crate::acl::Packets;
use crate::bucket::TokenBucket;
use crate::family::Ip;

/// A policy, compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(super) name: String,
    pub(super) policy: Policy,
    /// A rule asks for states.
    pub(super) is_stateful: bool,
    /// By [`State`].
    ip4: [Arc<Acl<IP4>>; 4],
    ip6: [Arc<Acl<IP6>>; 4],
    /// By worker, and behind them that of dry runs.
    workers: Box<[OfWorker]>,
}

/// What a worker has of a policy.
#[derive(Debug)]
struct OfWorker {
    /// How often each rule has decided, and behind them, how often none matched.
    hits: Box<[Counter]>,
    /// Its share of the limits of the rules.
    limits: Box<[Option<TokenBucket>]>,
}

/// What a policy says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It passes; if `always`, so do all packets of its flow in its state.
    Accept {
        always: bool,
    },
    Drop,
    Reject,
    /// It is over the limit of its rule.
    OverLimit,
}

/// What a policy has said of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided<'a> {
    /// Its name.
    pub policy: &'a str,
    /// The rule, from 0; `None`: none matched.
    pub rule: Option<usize>,
    pub action: Action,
    /// As [`Rule::limit`].
    pub limit: Option<u32>,
}

/// A family, whose rules a policy has in a list of their own.
pub(super) trait Rules<const W: usize> {
    /// The rules for packets of a state.
    fn of(policy: &Compiled, state: State) -> &Acl<W>;
}

impl Compiled {
    /// The IPv4 rules for packets of a state.
    #[inline(always)]
    pub(super) fn ip4(&self, state: State) -> &Acl<IP4> {
        &self.ip4[state as usize]
    }

    /// The IPv6 rules for packets of a state.
    #[inline(always)]
    pub(super) fn ip6(&self, state: State) -> &Acl<IP6> {
        &self.ip6[state as usize]
    }

    pub(super) fn new(name: &str, policy: Policy, workers: usize) -> Self {
        // A dry run takes nothing from a limit.
        let of_worker = |worker| OfWorker {
            hits: (0..=policy.rules.len())
                .map(|_| Counter::default())
                .collect(),
            limits: policy
                .rules
                .iter()
                .filter(|_| worker < workers)
                .map(|rule| bucket(rule, workers))
                .collect(),
        };
        Compiled {
            name: name.to_owned(),
            ip4: lists(&policy, |packets| match packets {
                Packets::V4(packets) => Some(packets),
                Packets::V6(_) => None,
            }),
            ip6: lists(&policy, |packets| match packets {
                Packets::V4(_) => None,
                Packets::V6(packets) => Some(packets),
            }),
            workers: (0..=workers).map(of_worker).collect(),
            is_stateful: policy.rules.iter().any(|rule| rule.states != States::ALL),
            policy,
        }
    }

    /// What becomes of a packet in a state, at TSC `now`; a worker counts it.
    pub(super) fn judge<F: Rules<W>, const W: usize>(
        &self,
        worker: usize,
        state: State,
        key: &Key<W>,
        now: u64,
    ) -> Verdict {
        let at = self.rule::<F, W>(state, key);
        let of_worker = self.workers.get(worker);
        if let Some(hits) = of_worker.and_then(|of| of.hits.get(at)) {
            hits.add(1);
        }
        let limit = of_worker.and_then(|of| of.limits.get(at)?.as_ref());
        if limit.is_some_and(|limit| !limit.take(now)) {
            return Verdict::OverLimit;
        }
        match self.action(at) {
            Action::Accept => Verdict::Accept {
                always: limit.is_none(),
            },
            Action::Drop => Verdict::Drop,
            Action::Reject => Verdict::Reject,
        }
    }

    /// True if such a packet may begin a flow, whatever the limit of its rule. It is not counted.
    pub(super) fn lets_begin<F: Rules<W>, const W: usize>(&self, key: &Key<W>) -> bool {
        self.action(self.rule::<F, W>(State::New, key)) == Action::Accept
    }

    /// The rule that decides about a packet; the number of rules, if none does.
    fn rule<F: Rules<W>, const W: usize>(&self, state: State, key: &Key<W>) -> usize {
        let mut found = [NONE];
        F::of(self, state).find(std::slice::from_ref(key), &mut found);
        self.policy.rules.len().min(found[0] as usize)
    }

    fn action(&self, rule: usize) -> Action {
        let rule = self.policy.rules.get(rule);
        rule.map_or(self.policy.default, |rule| rule.action)
    }

    /// How often a rule has decided; that behind the last one is what happens by default.
    pub(super) fn hits(&self, rule: usize) -> u64 {
        let [workers @ .., _] = &*self.workers else {
            return 0;
        };
        let workers = workers.iter().filter_map(|of| of.hits.get(rule));
        workers.fold(0, |sum, hits| sum.wrapping_add(hits.get()))
    }

    /// Forgets the last dry run.
    pub(super) fn rewind(&self) {
        let dry = self.workers.last();
        dry.into_iter()
            .flat_map(|of| &of.hits)
            .for_each(|hits| hits.set(0));
    }

    /// What it has said of an IPv4 packet of the last dry run; `None`: it was not asked.
    pub(crate) fn decided4(&self, key: &Key<IP4>) -> Option<Decided<'_>> {
        self.decided(|state| self.ip4(state), key)
    }

    /// The same of an IPv6 packet.
    pub(crate) fn decided6(&self, key: &Key<IP6>) -> Option<Decided<'_>> {
        self.decided(|state| self.ip6(state), key)
    }

    /// The state is what the nodes have found it to be: the rule is one that they have counted.
    fn decided<'a, const W: usize>(
        &'a self,
        rules: impl Fn(State) -> &'a Acl<W>,
        key: &Key<W>,
    ) -> Option<Decided<'a>> {
        let hits = &self.workers.last()?.hits;
        let at = State::ALL.into_iter().find_map(|state| {
            let mut found = [NONE];
            rules(state).find(std::slice::from_ref(key), &mut found);
            let at = self.policy.rules.len().min(found[0] as usize);
            (hits.get(at)?.get() > 0).then_some(at)
        })?;
        let rule = self.policy.rules.get(at);
        Some(Decided {
            policy: &self.name,
            rule: rule.map(|_| at),
            action: rule.map_or(self.policy.default, |rule| rule.action),
            limit: rule.and_then(|rule| rule.limit),
        })
    }
}

/// A worker's share of a rule's limit, of which it may use as much at once as in a second.
fn bucket(rule: &Rule, workers: usize) -> Option<TokenBucket> {
    let share = (u64::from(rule.limit?) / workers.max(1) as u64).max(1);
    Some(TokenBucket::new(share, share))
}

/// What rules match, with their numbers.
type Numbered<'a, A> = Vec<(u32, &'a Match<A>)>;

/// The rules of a family by state. States with the same rules share a list.
fn lists<'a, A, const W: usize>(
    policy: &'a Policy,
    of: impl Fn(&'a Packets) -> Option<&'a Match<A>>,
) -> [Arc<Acl<W>>; 4]
where
    A: Ip,
    Acl<W>: FromIterator<(u32, &'a Match<A>)>,
{
    let mut made: Vec<(Numbered<'_, A>, Arc<Acl<W>>)> = Vec::new();
    State::ALL.map(|state| {
        let rules = policy.rules.iter().zip(0..);
        let rules = rules.filter(|(rule, _)| rule.states.has(state));
        let mut list: Numbered<'_, A> = rules
            .flat_map(|(rule, number)| rule.packets.iter().map(move |packets| (number, packets)))
            .filter_map(|(number, packets)| Some((number, of(packets)?)))
            .collect();
        // No packet comes to what is behind a rule that matches all.
        if let Some(last) = list.iter().position(|(_, packets)| matches_all(packets)) {
            list.truncate(last + 1);
        }
        if let Some((_, same)) = made.iter().find(|(of, _)| *of == list) {
            return same.clone();
        }
        let acl = Arc::new(list.iter().copied().collect());
        made.push((list, Arc::clone(&acl)));
        acl
    })
}

fn matches_all<A: Ip>(packets: &Match<A>) -> bool {
    let any = |range: &RangeInclusive<u16>| *range == (0..=u16::MAX);
    packets.source == Prefix::DEFAULT
        && packets.destination == Prefix::DEFAULT
        && packets.protocol.is_none()
        && any(&packets.source_ports)
        && any(&packets.destination_ports)
}
