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
/// Gap below which packets are at once, in microseconds. No line carries that many in that time.
const ONCE: f64 = 1.0;

/// Refuses streams that would send more than that at once, one alone or one after the other: if they
/// went on and on, nothing else would ever be sent. Those that nothing starts are fine.
pub(super) fn endless(streams: &[Stream]) -> Result<(), String> {
    let started = started(streams);
    let mut seen = vec![false; streams.len()];
    for begin in started {
        if !seen[begin] {
            stretch(streams, begin, &mut seen)?;
        }
    }
    Ok(())
}

/// The streams that start by themselves or follow one that does.
fn started(streams: &[Stream]) -> Vec<usize> {
    let mut known = vec![false; streams.len()];
    let mut started = Vec::new();
    for begin in (0..streams.len()).filter(|i| streams[*i].self_start) {
        let mut at = Some(begin);
        while let Some(i) = at.filter(|i| !std::mem::replace(&mut known[*i], true)) {
            started.push(i);
            at = streams[i].next;
        }
    }
    started
}

/// Follows what is sent at once from the first packet of `begin` on, and marks its streams as seen.
fn stretch(streams: &[Stream], begin: usize, seen: &mut [bool]) -> Result<(), String> {
    let mut actions: HashMap<usize, u32> = HashMap::new();
    let (mut at, mut packets, mut micros) = (begin, 0.0, 0.0);
    loop {
        let stream = &streams[at];
        seen[at] = true;
        let Some((burst, length)) = at_once(stream) else {
            return Ok(());
        };
        packets += burst;
        if burst > AT_ONCE as f64 {
            return Err(format!(
                "stream `{}`: its bursts take no time, and {burst:.0} packets would be sent at once; \
                 no more than {AT_ONCE} may: give it an ibg",
                stream.name
            ));
        }
        if packets > AT_ONCE as f64 {
            return Err(format!(
                "the chain of stream `{}` takes no time, and more than {AT_ONCE} packets would be \
                 sent at once; give one of its streams an isg",
                stream.name
            ));
        }
        let left = actions.entry(at).or_insert(stream.action_count);
        let Some(next) = stream.follower(left) else {
            return Ok(());
        };
        micros += length + streams[next].isg;
        if micros >= ONCE {
            // The next one begins another stretch, unless another walk has been there.
            return Ok(());
        }
        at = next;
    }
}

/// Packets that a stream sends at once, and the microseconds from its first packet to its last; None
/// if packets of a burst are apart from each other.
fn at_once(stream: &Stream) -> Option<(f64, f64)> {
    match stream.mode {
        Mode::SingleBurst { packets: 1 } => Some((1.0, 0.0)),
        Mode::MultiBurst {
            packets: 1,
            bursts,
            ibg,
        } => {
            let bursts = bursts as f64;
            Some((bursts.min(1.0 + ONCE / ibg), ibg * (bursts - 1.0).max(0.0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
