//! Warnings about the kernel's setup or the configuration: logged when they come and when they go,
//! and shown.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{info, warn};

/// Time between looks at the kernel's settings: it announces some changes and not others.
/// Soon enough for a person who has just followed the advice; a look reads some files.
const EVERY: Duration = Duration::from_secs(5);

/// The warnings of the last look.
#[derive(Debug, Default)]
pub struct Warnings {
    warnings: Vec<String>,
    next: Option<Instant>,
}

impl Warnings {
    /// Returns true if it is time for the next look.
    pub fn are_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// These have been found.
    pub fn become_these(&mut self, found: Vec<String>, now: Instant) {
        self.next = Some(now + EVERY);
        for new in found.iter().filter(|text| !self.warnings.contains(text)) {
            warn!("{new}");
        }
        for gone in self.warnings.iter().filter(|text| !found.contains(text)) {
            info!("resolved: {gone}");
        }
        self.warnings = found;
    }

    /// All that is in the way, with what waits now.
    pub fn and(&self, waiting: Vec<String>) -> Shown {
        Shown {
            warnings: [&self.warnings[..], &waiting].concat(),
        }
    }
}

/// `show warnings`.
#[derive(Debug, Serialize)]
pub struct Shown {
    warnings: Vec<String>,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.warnings
            .iter()
            .try_for_each(|text| writeln!(f, "{text}"))
    }
}
