//! Caller that wants ports opened.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::Spec;

/// Caller that wants ports opened: it may give up meanwhile, and hears of what happens.
pub trait Caller {
    /// True to give up.
    fn is_interrupted(&self) -> bool;

    /// A socket exists because of us; it goes when its port is closed.
    fn made(&self, _socket: &str) {}

    /// Something that it may want to know.
    fn notice(&self, _notice: &Notice) {}
}

/// A flag that asks to give up when it is set.
impl Caller for AtomicBool {
    fn is_interrupted(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// Difference from what the caller may expect, though ports open.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Other ports stand in for those that were asked for.
    Fallback(Fallback),
    /// The kernel does not keep the program of live frames between two runs.
    Unregistered,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Fallback(fallback) => fallback.fmt(f),
            Notice::Unregistered => f.write_str(
                "the program of live frames cannot be kept registered, which takes CAP_SYS_ADMIN \
                 and veths: the kernel changes its own code every 0.1 s meanwhile",
            ),
        }
    }
}

/// Ports that send or receive instead of those that were asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Fallback {
    /// The ports that were asked for.
    pub asked: Vec<String>,
    /// The ports in their places.
    pub used: Vec<String>,
    /// Task that the first ones cannot do.
    pub why: String,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, used) = (self.asked.join(", "), self.used.join(", "));
        write!(
            f,
            "{used} in place of {asked}, which is slower: {}",
            self.why
        )
    }
}

impl Fallback {
    /// AF_XDP in place of ports whose work XDP programs do.
    pub(crate) fn to_af_xdp(asked: Vec<&Spec>, why: &impl fmt::Display) -> Self {
        let names = asked.iter().filter_map(|spec| spec.interface());
        Self {
            used: names.map(|name| format!("af_xdp:{name}")).collect(),
            asked: asked.iter().map(ToString::to_string).collect(),
            why: why.to_string(),
        }
    }

    /// Lets the caller know, and adds it to what there was before.
    pub(crate) fn add_to(self, all: &mut Option<Self>, caller: &dyn Caller) {
        caller.notice(&Notice::Fallback(self.clone()));
        match all {
            Some(all) => {
                all.asked.extend(self.asked);
                all.used.extend(self.used);
                all.why = format!("{}; {}", all.why, self.why);
            }
            None => *all = Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Keeps what it is told.
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Caller for Heard {
        fn is_interrupted(&self) -> bool {
            false
        }

        fn notice(&self, notice: &Notice) {
            self.0.lock().expect("no panic").push(notice.to_string());
        }
    }

    #[test]
    fn what_stands_in_for_what_is_said_together() {
        let (mut all, heard) = (None, Heard::default());
        let (tx, rx) = (Spec::Live("a".into()), Spec::Sink("b".into()));
        Fallback::to_af_xdp(vec![&rx], &"first").add_to(&mut all, &heard);
        Fallback::to_af_xdp(vec![&tx], &"second").add_to(&mut all, &heard);
        let all = all.expect("two");
        assert_eq!(
            all.to_string(),
            "af_xdp:b, af_xdp:a in place of sink:b, live:a, which is slower: first; second"
        );
        let heard = heard.0.into_inner().expect("no panic");
        assert_eq!(
            heard,
            [
                "af_xdp:b in place of sink:b, which is slower: first",
                "af_xdp:a in place of live:a, which is slower: second"
            ]
        );
    }
}
