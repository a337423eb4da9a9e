//! A question's way through the flows of a worker.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use graph::ring::{Consumer, Producer, ring};
use tables::flow::{Annex, Entry, Flows};

use super::filter::Filter;
use crate::firewall::entry::outside;
use crate::flow::state::STATES;
use crate::flow::tcp::Session;
use crate::flow::{State, Timeouts};

/// Entries that a worker looks at each time that its nodes are polled: once a millisecond while it
/// has packets, and when something is published.
const STEP: u32 = 4096;
/// The removal of a flow takes as long as a look at so many entries.
const REMOVAL: u32 = 16;

/// Most flows that an answer has.
pub const MOST: usize = 10_000;

/// Walks that are on their way to a worker or back, at most.
pub(super) const WALKS: usize = 4;

/// What is asked of workers about their flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Which ones.
    pub filter: Filter,
    /// What of them.
    pub what: What,
}

/// What is asked about flows, beside how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The first that are found, so many at most; [`MOST`] at most.
    Some(usize),
    /// Those that have had the most since they began; likewise.
    Top(usize, By),
    /// How many are in each state.
    Count,
    /// They are to be removed.
    Remove,
}

/// What flows are ranked by, both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Bytes from the IP header on.
    Bytes,
    /// Packets.
    Packets,
}

/// A flow as it was when it was seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub entry: Entry,
    pub session: Session,
    /// The places that its ends are seen as, in the order of its first packet.
    pub outside: [u64; 2],
    /// Seconds since its last packet.
    pub idle: u32,
    /// Seconds after which it goes unless there is another one.
    pub left: u32,
}

impl Row {
    /// Its rank, larger where there is more.
    pub fn rank(&self, what: What) -> u64 {
        match what {
            What::Top(_, By::Bytes) => self.session.bytes.iter().sum(),
            What::Top(_, By::Packets) => self.session.packets.iter().sum(),
            What::Some(_) | What::Count | What::Remove => 0,
        }
    }
}

/// A question on its way through the flows of a worker, with room for the answer.
pub(crate) struct Walk {
    /// Number of the question.
    pub(super) question: u64,
    what: What,
    filter: Filter,
    /// The number that is looked at next.
    at: u32,
    /// The flows that match, by number of their state.
    pub(super) states: [u64; STATES],
    most: usize,
    pub(super) rows: Vec<Row>,
    /// Rank and place of each, the lowest rank first.
    ranks: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Walk {
    pub(super) fn new(question: u64, asked: &Question) -> Box<Self> {
        let most = match asked.what {
            What::Some(most) | What::Top(most, _) => most.min(MOST),
            What::Count | What::Remove => 0,
        };
        Box::new(Walk {
            question,
            what: asked.what,
            filter: asked.filter.clone(),
            at: 0,
            states: [0; STATES],
            most,
            rows: Vec::with_capacity(most),
            ranks: BinaryHeap::with_capacity(most),
        })
    }

    /// Looks at some more entries at second `now`; true if these were the last ones.
    fn step(&mut self, flows: &mut Flows, now: u32, timeouts: &Timeouts) -> bool {
        let mut budget = STEP;
        while self.at < flows.used() {
            if budget == 0 {
                return false;
            }
            budget -= 1;
            let number = self.at;
            self.at += 1;
            let Some((entry, annex)) = flows.live(number) else {
                continue;
            };
            if !self.filter.matches(entry) {
                continue;
            }
            let state = State::from_number(entry.state);
            self.states[state as usize] += 1;
            if self.what == What::Remove {
                flows.remove(number);
                budget = budget.saturating_sub(REMOVAL);
            } else if self.most > 0 {
                let outside = outside(flows, number);
                self.keep((entry, annex, outside), now, timeouts.of(state));
            }
        }
        true
    }

    /// Keeps a flow if there is room, or in place of one with a lower rank.
    fn keep(
        &mut self,
        (entry, annex, outside): (&Entry, &Annex, [u64; 2]),
        now: u32,
        timeout: u32,
    ) {
        // Clocks of workers differ: one may have been seen in the future.
        let idle = (now.wrapping_sub(entry.seen) as i32).max(0) as u32;
        let row = Row {
            entry: *entry,
            session: *Session::of(annex),
            outside,
            idle,
            left: timeout.saturating_sub(idle),
        };
        let rank = row.rank(self.what);
        if self.rows.len() < self.most {
            self.ranks.push(Reverse((rank, self.rows.len())));
            self.rows.push(row);
        } else if let Some(mut lowest) = self.ranks.peek_mut()
            && lowest.0.0 < rank
        {
            let place = lowest.0.1;
            *lowest = Reverse((rank, place));
            self.rows[place] = row;
        }
    }
}

/// A worker's end.
pub(crate) struct Walker {
    asked: Consumer<Box<Walk>>,
    done: Producer<Box<Walk>>,
    /// The walk that it is on.
    walk: Option<Box<Walk>>,
}

/// The control thread's end.
pub(crate) struct Ends {
    pub ask: Producer<Box<Walk>>,
    pub done: Consumer<Box<Walk>>,
}

/// Rings for the walks of a worker, there and back.
pub(crate) fn walks() -> (Walker, Ends) {
    let (ask, asked) = ring(WALKS);
    let (done, returned) = ring(WALKS);
    let walker = Walker {
        asked,
        done,
        walk: None,
    };
    let ends = Ends {
        ask,
        done: returned,
    };
    (walker, ends)
}

impl Walker {
    /// There is something left to be looked at.
    pub fn is_asked(&mut self) -> bool {
        self.walk.is_some() || !self.asked.is_empty()
    }

    /// Goes on with the walk, or begins the next one.
    #[inline]
    pub fn poll(&mut self, flows: &mut Flows, now: u32, timeouts: &Timeouts) {
        let walk = self.walk.take().or_else(|| self.asked.pop());
        self.walk = walk.and_then(|walk| self.go_on(walk, flows, now, timeouts));
    }

    /// The walk, unless it is done.
    #[cold]
    fn go_on(
        &mut self,
        mut walk: Box<Walk>,
        flows: &mut Flows,
        now: u32,
        timeouts: &Timeouts,
    ) -> Option<Box<Walk>> {
        if !walk.step(flows, now, timeouts) {
            return Some(walk);
        }
        // There is room: no more are on their way than the ring holds.
        let _ = self.done.push(walk);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tables::flow::{Hasher, Memory, Sizes};

    use super::*;
    use crate::firewall::entry::SWAPPED;
    use crate::flow::key;

    /// A table that is full of so many UDP flows.
    fn full(flows: u32) -> Flows {
        let sizes = Sizes {
            embryonic: flows,
            ..Sizes::of(flows)
        };
        let memory = Memory::mapped(sizes).expect("memory");
        let mut flows = Flows::new(memory, Hasher::new([3, 1, 4, 1, 5, 9]));
        for n in 0..sizes.flows {
            let (key, swapped) = key::key4(n, 0x3000_0001, n << 16 | 53, wire::ip::UDP);
            let hash = flows.hasher().one(&key);
            let number = flows.insert(key, hash, 0, |_, _, _| ());
            let (entry, annex) = flows.at_mut(number.expect("there is room"));
            entry.state = State::Udp as u8;
            entry.flags = if swapped { SWAPPED } else { 0 };
            Session::of_mut(annex).bytes[0] = u64::from(n.wrapping_mul(0x9e37_79b9));
        }
        flows
    }

    /// Each step of a walk, in order.
    fn walk(flows: &mut Flows, question: &Question) -> (Box<Walk>, Vec<Duration>) {
        let mut walk = Walk::new(1, question);
        let mut steps = Vec::new();
        loop {
            let begin = Instant::now();
            let done = walk.step(flows, 1, &Timeouts::default());
            steps.push(begin.elapsed());
            if done {
                return (walk, steps);
            }
        }
    }

    #[test]
    fn no_step_is_longer_than_the_others() {
        let mut flows = full(40_000);
        let all = |what| Question {
            filter: Filter::default(),
            what,
        };
        let (found, steps) = walk(&mut flows, &all(What::Count));
        assert_eq!(
            (found.states[State::Udp as usize], steps.len()),
            (40_000, 10)
        );
        let (found, _) = walk(&mut flows, &all(What::Top(MOST + 1, By::Bytes)));
        assert_eq!(found.rows.len(), MOST);
        let (found, steps) = walk(&mut flows, &all(What::Remove));
        let removals = STEP.div_ceil(1 + REMOVAL) as usize;
        assert_eq!(found.states[State::Udp as usize], 40_000);
        assert_eq!(steps.len(), 40_000_usize.div_ceil(removals));
        assert!(flows.is_empty());
    }

    /// Figures of the largest table.
    #[test]
    #[ignore = "takes 2.3 GB"]
    fn time_of_the_largest_table() {
        let mut flows = full(Sizes::MOST);
        let some = Filter {
            source: "0.128.0.0/9".parse().ok(),
            port: Some(53..=53),
            ..Filter::default()
        };
        let all = Filter::default();
        for (name, filter, what) in [
            ("count", &all, What::Count),
            ("filter", &some, What::Some(100)),
            ("top 10", &some, What::Top(10, By::Bytes)),
            ("top 10000", &all, What::Top(10_000, By::Bytes)),
            ("remove", &all, What::Remove),
        ] {
            let filter = filter.clone();
            let (found, mut steps) = walk(&mut flows, &Question { filter, what });
            let matching: u64 = found.states.iter().sum();
            let total: Duration = steps.iter().sum();
            steps.sort();
            let [median, most] = [steps.len() / 2, steps.len() * 999 / 1000].map(|n| steps[n]);
            println!(
                "{name}: {matching} match, {} steps, {total:?}; a step: {median:?}, 99.9 %: {most:?}",
                steps.len()
            );
        }
    }
}
