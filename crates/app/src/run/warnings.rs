//! What is in the way, in the kernel's setup or of the file: said when it comes and when it goes, and
//! shown.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use tracing::{info, warn};

/// How often the kernel's settings are looked at: it announces some changes and not others.
const EVERY: Duration = Duration::from_secs(5);

/// What was in the way when it was last looked for.
#[derive(Debug, Default)]
pub struct Warnings {
    warnings: Vec<String>,
    next: Option<Instant>,
}

impl Warnings {
    /// Looks at the settings of a namespace (`None`: our own), if it is time to. `refused`: why the
    /// configuration is not that of the file, in lines.
    pub fn look(&mut self, netns: Option<&Path>, refused: Option<&str>, now: Instant) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        let mut found = control::netlink::warnings(netns);
        found.extend(refused.into_iter().flat_map(str::lines).map(str::to_owned));
        for new in found.iter().filter(|text| !self.warnings.contains(text)) {
            warn!("{new}");
        }
        for gone in self.warnings.iter().filter(|text| !found.contains(text)) {
            info!("no longer: {gone}");
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
