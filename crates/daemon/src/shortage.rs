//! Changes that found a table full: said when it begins, now and then while it lasts, and when it
//! is over, however many there are.

use std::time::{Duration, Instant};

use tracing::{info, warn};

/// From one line about full tables to the next, at least: routes that do not fit come by thousands.
const EVERY: Duration = Duration::from_secs(10);

/// Messages about full tables.
#[derive(Debug, Default)]
pub struct Shortage {
    /// Changes without room that have not been said yet.
    unsaid: usize,
    /// Time of the last message.
    last: Option<Instant>,
    /// It has been said, and not yet that it is over.
    said: bool,
}

impl Shortage {
    /// So many changes have found a table full.
    pub fn more(&mut self, full: usize) {
        self.unsaid += full;
    }

    /// Says what is to be said by now; `waiting`: there are changes that wait for room.
    pub fn say(&mut self, waiting: bool, now: Instant) {
        if let Some(full) = self.due(now) {
            warn!(
                "{full} changes do not fit into the tables: the old routes stay until there is room (show memory)"
            );
        }
        if self.is_over(waiting) {
            info!("the tables have room again: all routes are in");
        }
    }

    /// The number of changes that found a table full since the last message, if the next one is
    /// due.
    fn due(&mut self, now: Instant) -> Option<usize> {
        let is_time = self.last.is_none_or(|last| now >= last + EVERY);
        if self.unsaid == 0 || !is_time {
            return None;
        }
        (self.last, self.said) = (Some(now), true);
        Some(std::mem::take(&mut self.unsaid))
    }

    /// Returns true if the end of the shortage is to be announced. A shortage that was too short to
    /// be announced is forgotten.
    fn is_over(&mut self, waiting: bool) -> bool {
        if !waiting {
            self.unsaid = 0;
        }
        !waiting && std::mem::take(&mut self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_said_when_it_begins_and_every_ten_seconds() {
        let (mut shortage, begin) = (Shortage::default(), Instant::now());
        let mut lines = Vec::new();
        for tick in 0..2500 {
            shortage.more(20);
            let now = begin + Duration::from_millis(10) * tick;
            lines.extend(shortage.due(now));
            assert!(!shortage.is_over(true));
        }
        assert_eq!(lines, [20, 20_000, 20_000]);
        // What came since is said when it lasts, though nothing more comes.
        let later = begin + 3 * EVERY;
        assert_eq!(shortage.due(later), Some(9980));
        assert_eq!(shortage.due(later + EVERY), None);
        assert!(shortage.is_over(false) && !shortage.is_over(false));
    }

    #[test]
    fn tables_that_are_now_full_and_now_not_are_no_flood() {
        let (mut shortage, begin) = (Shortage::default(), Instant::now());
        let mut lines = 0;
        for tick in 0..1000 {
            shortage.more(1);
            let now = begin + Duration::from_millis(10) * tick;
            lines += usize::from(shortage.due(now).is_some());
            lines += usize::from(shortage.is_over(false));
        }
        assert_eq!(lines, 2, "that it begins, and that it is over");
        shortage.more(3);
        assert_eq!(shortage.due(begin + EVERY), Some(3));
    }
}
