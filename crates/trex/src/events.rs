//! Events: a queue for each client's session, and a word to all that there is something in it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use serde_json::{Value, json};

use crate::zmtp::Publisher;

/// Sessions whose events are kept, and events that are kept for each.
const SESSIONS: usize = 64;
const EVENTS: usize = 1024;

/// What happens to a port, with T-Rex's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Started = 0,
    Stopped = 1,
    Paused = 2,
    Resumed = 3,
    JobDone = 4,
    Acquired = 5,
    Released = 6,
    Failed = 7,
    AttributesChanged = 8,
    ProfileStarted = 10,
    ProfileStopped = 11,
    ProfilePaused = 12,
    ProfileResumed = 13,
    ProfileFinished = 14,
    ProfileFailed = 17,
}

impl Event {
    /// Whether it names a profile beside the port.
    pub fn is_of_profile(self) -> bool {
        self as u8 >= Self::ProfileStarted as u8
    }
}

/// The events of all clients' sessions.
pub struct Sessions {
    queues: BTreeMap<u64, Queue>,
    publisher: Publisher,
}

/// The events that a client has not fetched. Its numbers rise by one; a client that finds a gap
/// knows that it missed something, and connects anew.
struct Queue {
    sequence: u64,
    events: VecDeque<Value>,
    asked: Instant,
}

impl Sessions {
    pub fn new(publisher: Publisher) -> Self {
        Self {
            queues: BTreeMap::new(),
            publisher,
        }
    }

    /// Wakes all clients.
    pub fn wake(&self) {
        self.publisher.publish();
    }

    /// Tells all of an event.
    pub fn tell(&mut self, event: Event, data: &Value) {
        for queue in self.queues.values_mut() {
            if queue.events.len() == EVENTS {
                queue.events.clear();
            }
            queue.events.push_back(json!({
                "name": "trex-event",
                "type": event as u8,
                "data": data,
                "seq": queue.sequence,
            }));
            queue.sequence += 1;
        }
        self.wake();
    }

    /// What has happened since a session asked before; from its first question on. Where there are
    /// too many sessions, the one that has not asked for longest is forgotten.
    pub fn fetch(&mut self, session_id: u64) -> Vec<Value> {
        if !self.queues.contains_key(&session_id) && self.queues.len() == SESSIONS {
            let oldest = self.queues.iter().min_by_key(|(_, queue)| queue.asked);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.queues.remove(&oldest);
            }
        }
        let queue = self.queues.entry(session_id).or_insert_with(|| Queue {
            sequence: 0,
            events: VecDeque::new(),
            asked: Instant::now(),
        });
        queue.asked = Instant::now();
        queue.events.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_by_one_but_for_what_is_lost() {
        let mut sessions = Sessions::new(Publisher::new(b"{}"));
        assert!(sessions.fetch(7).is_empty());
        let numbers = |sessions: &mut Sessions| -> Vec<u64> {
            let events = sessions.fetch(7).into_iter();
            events.map(|event| event["seq"].as_u64().unwrap()).collect()
        };
        let tell = |sessions: &mut Sessions, count| {
            (0..count).for_each(|_| sessions.tell(Event::Started, &json!({"port_id": 0})));
        };
        tell(&mut sessions, 2);
        assert_eq!(numbers(&mut sessions), [0, 1]);
        tell(&mut sessions, 1);
        assert_eq!(numbers(&mut sessions), [2]);
        tell(&mut sessions, EVENTS + 1);
        assert_eq!(numbers(&mut sessions), [3 + EVENTS as u64]);
    }

    #[test]
    fn there_are_so_many_sessions() {
        let mut sessions = Sessions::new(Publisher::new(b"{}"));
        for id in 0..1000 {
            sessions.fetch(id);
        }
        assert_eq!(sessions.queues.len(), SESSIONS);
        sessions.tell(Event::Stopped, &Value::Null);
        assert_eq!(sessions.fetch(999).len(), 1);
        assert_eq!(sessions.fetch(0).len(), 0, "it is forgotten");
    }
}
