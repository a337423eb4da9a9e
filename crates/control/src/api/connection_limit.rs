//! Limits on connections at a time: those who may do less cannot keep out those who may do more.

use std::sync::{Arc, Mutex, PoisonError};

use super::access::Access;

/// Connections at a time, a thread each: more than operators and monitoring need. The limits below
/// leave eight to each group with more rights, so that nobody can lock these out.
pub(super) const ALL: usize = 32;
/// For users other than root there is room up to this many.
const OTHERS: usize = 24;
/// For users who may only ask there is room up to this many.
const SHOW: usize = 16;
/// A single user other than root has this many at most.
const EACH: usize = 8;

/// The users that are connected, once for each connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionLimit(Mutex<Vec<u32>>);

/// A connection's place, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<ConnectionLimit>,
    uid: u32,
}

impl ConnectionLimit {
    /// A place for one more connection of a user, if there is one.
    pub fn take(self: &Arc<Self>, uid: u32, access: Access) -> Option<Seat> {
        let (all, each) = match access {
            _ if uid == 0 => (ALL, ALL),
            Access::Change => (OTHERS, EACH),
            Access::Show => (SHOW, EACH),
            Access::None => (0, 0),
        };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.iter().filter(|other| **other == uid).count();
        (taken.len() < all && own < each).then(|| {
            taken.push(uid);
            let seats = self.clone();
            Seat { seats, uid }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = taken.iter().position(|uid| *uid == self.uid) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_places_are_for_those_who_may_more() {
        let seats = Arc::new(ConnectionLimit::default());
        let all = |access, users: std::ops::Range<u32>| -> Vec<Seat> {
            users
                .flat_map(|uid| std::iter::from_fn(move || Some(uid)).take(ALL))
                .filter_map(|uid| seats.take(uid, access))
                .collect()
        };
        assert_eq!(all(Access::None, 1..9).len(), 0);
        assert_eq!(all(Access::Show, 1..2).len(), EACH);
        let shows = all(Access::Show, 1..9);
        assert_eq!(shows.len(), SHOW);
        let changes = all(Access::Change, 10..19);
        assert_eq!(changes.len(), OTHERS - SHOW);
        let roots = all(Access::Change, 0..1);
        assert_eq!(roots.len(), ALL - OTHERS);
        drop((shows, changes));
        assert_eq!(all(Access::Change, 0..1).len(), OTHERS);
        drop(roots);
        assert!(seats.0.lock().expect("whole").is_empty());
    }
}
