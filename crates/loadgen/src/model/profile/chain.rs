//! Links the streams of a profile: one starts when another has ended.

use std::collections::HashMap;

use crate::model::stream::{Mode, Stream};

/// A stream, and what links it to others.
pub(super) struct Link {
    pub name: Option<String>,
    pub id: Option<i64>,
    /// The next stream, as the file names it.
    pub next: Option<String>,
    pub next_id: i64,
    pub core: i64,
}

/// Links the streams to those that follow them.
pub(super) fn chain(streams: &mut [Stream], links: &[Link], off: &[Link]) -> Result<(), String> {
    let mut names: HashMap<&str, usize> = HashMap::new();
    for (i, link) in links.iter().enumerate() {
        let Some(name) = &link.name else { continue };
        if names.insert(name, i).is_some() {
            return Err(format!("two streams are called `{name}`"));
        }
    }
    let ids: HashMap<i64, usize> = links
        .iter()
        .enumerate()
        .filter_map(|(i, link)| Some((link.id?, i)))
        .collect();
    for (i, link) in links.iter().enumerate() {
        let (next, name, is_off) = match &link.next {
            Some(name) => {
                let is_off = off.iter().any(|o| o.name.as_ref() == Some(name));
                (names.get(name.as_str()).copied(), name.clone(), is_off)
            }
            None if link.next_id >= 0 => {
                let is_off = off.iter().any(|o| o.id == Some(link.next_id));
                let next = ids.get(&link.next_id).copied();
                (next, link.next_id.to_string(), is_off)
            }
            None => continue,
        };
        let stream = &mut streams[i];
        stream.next = next;
        if next.is_none() && !is_off {
            return Err(format!(
                "stream `{}`: next `{name}`: no such stream",
                stream.name
            ));
        }
        if next.is_some_and(|next| links[next].core != link.core) {
            return Err(format!(
                "stream `{}`: next `{name}` has another core_id",
                stream.name
            ));
        }
    }
    endless(streams)
}

/// Most packets of a capture: each is a stream.
pub(super) const MAX_PACKETS: usize = 65_536;

/// Most packets that a chain sends at once: as many as the longest capture has, whose packets may
/// all have one time.
const AT_ONCE: u64 = MAX_PACKETS as u64;
/// What is closer together is at once, in microseconds. No line carries that many in that time.
const ONCE: f64 = 1.0;

/// Refuses a chain that goes on and on without any time going by: nothing else would ever be sent.
/// One that its action counts soon end is fine.
pub(super) fn endless(streams: &[Stream]) -> Result<(), String> {
    let mut seen = vec![false; streams.len()];
    let mut actions: Vec<u32> = streams.iter().map(|s| s.action_count).collect();
    for (begin, first) in streams.iter().enumerate() {
        let (mut at, mut packets, mut micros) = (begin, 0u64, 0.0);
        // What follows a stream that another walk has seen was looked at then.
        while !seen[at] || packets > 0 {
            seen[at] = true;
            let stream = &streams[at];
            let Some((burst, length)) = at_once(stream) else {
                break;
            };
            micros += length;
            packets = packets.saturating_add(burst);
            if micros >= ONCE {
                break;
            }
            if packets > AT_ONCE {
                return Err(format!(
                    "the chain of stream `{}` takes no time; give one of its streams an isg",
                    first.name
                ));
            }
            let Some(next) = stream.follower(&mut actions[at]) else {
                break;
            };
            at = next;
        }
    }
    Ok(())
}

/// Packets of a stream and the microseconds from its start to its end; None if packets of a burst
/// are apart from each other.
fn at_once(stream: &Stream) -> Option<(u64, f64)> {
    match stream.mode {
        Mode::SingleBurst { packets: 1 } => Some((1, stream.isg)),
        Mode::MultiBurst {
            packets: 1,
            bursts,
            ibg,
        } => Some((bursts, stream.isg + ibg * bursts.saturating_sub(1) as f64)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
