//! Divides a profile among the cores that send it, as T-Rex does.
//!
//! A stream that can be divided is on every core: core k of C sends the packets k, k + C, k + 2C
//! and so on, at the time that each has in the undivided profile, with its values. So all cores
//! together send what one would, except for what T-Rex leaves to each core: random variables
//! draw from a generator of the core's own, and a variable that is not to be divided goes through
//! its whole range on every core.
//!
//! Some streams cannot be divided and are on one core: a stream that the profile binds to one, that
//! measures latency (its sequence numbers are one sequence), that has a burst or a list of flows
//! shorter than the number of cores; and with it all streams that start it or that it starts.

use crate::model::fields::{Op, Variable};
use crate::model::share::Share;
use crate::model::stream::{Mode, Stream};
use crate::model::units::Pps;

/// The streams of each core, in their places: the place of a stream that a core does not send
/// stays, so that `next` means the same everywhere.
pub fn divide(streams: &[(Stream, Pps)], cores: u32) -> Vec<Vec<(Stream, Pps)>> {
    let homes = homes(streams, cores);
    let of = |core: u32| {
        let streams = streams.iter().zip(&homes);
        let streams = streams.map(|((stream, pps), home)| {
            let share = match *home {
                None => Some(Share { core, cores }),
                Some(home) => (home == core).then_some(Share::WHOLE),
            };
            let stream = stream.clone();
            (Stream { share, ..stream }, *pps)
        });
        streams.collect()
    };
    (0..cores).map(of).collect()
}

/// The core of each stream; None if it is divided among all.
fn homes(streams: &[(Stream, Pps)], cores: u32) -> Vec<Option<u32>> {
    let home = |stream: &Stream| match stream.core {
        Some(core) => Some(core.min(cores - 1)),
        None => (!is_divisible(stream, cores)).then_some(0),
    };
    let mut homes: Vec<Option<u32>> = streams.iter().map(|(s, _)| home(s)).collect();
    // Both ends of a link are at home on one core; a chain is no longer than there are streams.
    for _ in 0..streams.len() {
        for (i, (stream, _)) in streams.iter().enumerate() {
            let Some(next) = stream.next.filter(|next| *next < homes.len()) else {
                continue;
            };
            let both = homes[i].max(homes[next]);
            (homes[i], homes[next]) = (both, both);
        }
    }
    homes
}

fn is_divisible(stream: &Stream, cores: u32) -> bool {
    let enough = match stream.mode {
        Mode::Continuous => true,
        Mode::SingleBurst { packets } | Mode::MultiBurst { packets, .. } => packets >= cores.into(),
    };
    enough && !stream.is_fixed() && stream.variables.iter().all(|v| reaches(v, cores))
}

/// True if `cores` steps of a variable lead around its range once at most, which is all that those
/// that depend on it can follow.
fn reaches(variable: &Variable, cores: u32) -> bool {
    let cores = u128::from(cores);
    let steps = u128::from(variable.step) * cores;
    let range = u128::from(variable.max.saturating_sub(variable.min)) + 1;
    let follows = variable.next.is_none() || variable.op == Op::Random || steps <= range;
    follows && (variable.limit == 0 || u128::from(variable.limit) >= cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stream::{Mark, StreamRate};

    fn stream() -> Stream {
        Stream::new("s", vec![0; 60], StreamRate::Packets(Pps(1.0)))
    }

    fn burst(packets: u64, next: Option<usize>) -> Stream {
        Stream {
            mode: Mode::SingleBurst { packets },
            next,
            ..stream()
        }
    }

    fn shares(streams: Vec<Stream>, cores: u32) -> Vec<Vec<Option<(u32, u32)>>> {
        let streams: Vec<_> = streams.into_iter().map(|s| (s, Pps(1.0))).collect();
        let shares = |core: Vec<(Stream, Pps)>| {
            let shares = core.into_iter().map(|(s, _)| s.share);
            shares
                .map(|share| share.map(|s| (s.core, s.cores)))
                .collect()
        };
        divide(&streams, cores).into_iter().map(shares).collect()
    }

    #[test]
    fn what_cannot_be_divided_stays_in_one_place() {
        let (whole, half) = (Some((0, 1)), [Some((0, 2)), Some((1, 2))]);
        let latency = Stream {
            mark: Some(Mark {
                group: 1,
                latency: true,
            }),
            ..stream()
        };
        let bound = Stream {
            core: Some(1),
            ..stream()
        };
        let beyond = Stream {
            core: Some(7),
            ..stream()
        };
        assert_eq!(
            shares(vec![stream(), latency, bound, beyond, burst(1, None)], 2),
            [
                [half[0], whole, None, None, whole],
                [half[1], None, whole, whole, None]
            ]
        );
    }

    #[test]
    fn a_chain_stays_together() {
        let chain = vec![
            burst(9, Some(1)),
            burst(9, Some(2)),
            burst(2, None),
            burst(9, None),
        ];
        let whole = Some((0, 1));
        assert_eq!(
            shares(chain, 3),
            [
                [whole, whole, whole, Some((0, 3))],
                [None, None, None, Some((1, 3))],
                [None, None, None, Some((2, 3))]
            ]
        );
    }

    #[test]
    fn few_flows_are_not_divided() {
        let few = |limit, min, max, next| Stream {
            variables: vec![Variable {
                limit,
                next,
                ..Variable::range("v", 4, min, max)
            }],
            ..stream()
        };
        for (stream, is_divided) in [
            (few(0, 0, 0, None), true),
            (few(3, 0, 9, None), true),
            (few(2, 0, 9, None), false),
            (few(0, 0, 1, Some(0)), false),
            (few(0, 0, 2, Some(0)), true),
        ] {
            assert_eq!(
                is_divisible(&stream, 3),
                is_divided,
                "{:?}",
                stream.variables
            );
        }
    }
}
