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

/// Refuses a chain that comes round without any time going by: nothing else would ever be sent.
pub(super) fn endless(streams: &[Stream]) -> Result<(), String> {
    let takes_none = |s: &Stream| {
        s.action_count == 0 && s.isg == 0.0 && s.mode == Mode::SingleBurst { packets: 1 }
    };
    for (begin, first) in streams.iter().enumerate() {
        let mut at = begin;
        for _ in 0..streams.len() {
            let stream = &streams[at];
            let Some(next) = stream.next.filter(|_| takes_none(stream)) else {
                break;
            };
            at = next;
            if at == begin {
                return Err(format!(
                    "stream `{}`: its chain comes back to it in no time; give one of them an isg",
                    first.name
                ));
            }
        }
    }
    Ok(())
}
