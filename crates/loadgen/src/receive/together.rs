//! Streams that a receiver cannot tell apart.

use super::Match;
use crate::model::stream::Stream;

/// Means by which a receiver knows the stream of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knows {
    /// By its mark if the stream has one, otherwise by its headers.
    Marks,
    /// By its headers alone.
    Headers,
}

/// Parts the streams of one port into those that are counted together: those of one packet group,
/// and those whose headers a packet may have of either. Each part is in order, and the parts are in
/// that of their first streams.
pub fn together(streams: &[&Stream], knows: Knows) -> Vec<Vec<usize>> {
    let matches: Vec<Option<Match>> = streams
        .iter()
        .map(|stream| match (knows, stream.mark) {
            (Knows::Marks, Some(_)) => None,
            _ => Match::of(stream),
        })
        .collect();
    let alike = |a: usize, b: usize| {
        let is_group = streams[a].mark.is_some() && streams[a].mark == streams[b].mark;
        is_group || matches[a].is_some_and(|a| matches[b].is_some_and(|b| a.overlaps(&b)))
    };
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for stream in 0..streams.len() {
        let joins = |part: &Vec<usize>| part.iter().any(|other| alike(stream, *other));
        let (joined, apart): (Vec<_>, Vec<_>) = parts.into_iter().partition(joins);
        let mut part = [joined.concat(), vec![stream]].concat();
        part.sort_unstable();
        parts = apart;
        parts.push(part);
    }
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::profile::{self, Tunables, Way};
    use crate::model::stream::Mark;

    fn bench(tunables: &str) -> Vec<Stream> {
        profile::open("bench", Way::Out, &Tunables::parse(tunables).unwrap()).unwrap()
    }

    fn parts(streams: &[Stream], knows: Knows) -> Vec<Vec<usize>> {
        together(&streams.iter().collect::<Vec<_>>(), knows)
    }

    #[test]
    fn groups_and_equal_headers_are_counted_together() {
        let imix = bench("size=imix,flow=fs");
        assert_eq!(parts(&imix, Knows::Marks), [[0, 1, 2]]);
        let plain = bench("size=imix");
        assert_eq!(parts(&plain, Knows::Headers), [[0], [1], [2]]);
        let [one, other] = ["size=64", "size=128"].map(|size| bench(size).remove(0));
        let mark = |group| {
            let mark = Some(Mark {
                group,
                latency: true,
            });
            Stream {
                mark,
                ..one.clone()
            }
        };
        // The fifth joins the first by its headers.
        let streams = [one.clone(), mark(1), other, mark(2), one.clone()];
        assert_eq!(
            parts(&streams, Knows::Marks),
            [vec![0, 4], vec![1], vec![2], vec![3]]
        );
        assert_eq!(parts(&streams, Knows::Headers), [vec![0, 1, 3, 4], vec![2]]);
    }

    /// A stream whose addresses vary joins those that it meets.
    #[test]
    fn ranges_that_overlap_are_joined() {
        let fixed = bench("size=64").remove(0);
        let varying = bench("size=64,vm=var2").remove(0);
        let mut far = fixed.clone();
        far.packet[26] = 99;
        assert_eq!(
            parts(&[fixed, far, varying], Knows::Headers),
            [vec![0, 2], vec![1]]
        );
    }
}
