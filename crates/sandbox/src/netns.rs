//! Network namespaces with a name that says who made them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use kernel::netns::within;

use crate::cleanup::{self, PREFIX};
use crate::{Error, Spawn, command};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A network namespace of our own with loopback up and, except by [`Netns::with_ipv6`], IPv6 off
/// (no router solicitations between measurements). When dropped, it is deleted with all links in
/// it.
#[derive(Debug)]
pub struct Netns {
    name: String,
    _registered: cleanup::Registered,
}

impl Netns {
    /// Makes a namespace `parshall-lab-<pid>-<number>-<label>`.
    ///
    /// # Errors
    /// Needs root and `ip`.
    pub fn create(label: &str) -> Result<Self, Error> {
        let netns = Self::with_ipv6(label)?;
        // A kernel without IPv6 has no such file, which is as good.
        netns.sh("for f in all default; do f=/proc/sys/net/ipv6/conf/$f/disable_ipv6; [ ! -e $f ] || echo 1 > $f; done")?;
        Ok(netns)
    }

    /// As [`Netns::create`], with IPv6 as the kernel has it in a new namespace.
    ///
    /// # Errors
    /// As [`Netns::create`].
    pub fn with_ipv6(label: &str) -> Result<Self, Error> {
        let registered = cleanup::register()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}-{label}", std::process::id());
        command::run(&["ip", "netns", "add", &name])?;
        let netns = Self {
            name,
            _registered: registered,
        };
        netns.ip("link set lo up")?;
        Ok(netns)
    }

    /// Name as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file, as setns(2) takes it.
    pub fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// Runs `work` on a thread of its own inside and returns its result; a panic continues in the
    /// caller.
    ///
    /// # Panics
    /// If the namespace is gone.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(Some(&self.path()), || Ok(work())).expect("it exists, and root may enter it")
    }

    /// Runs `ip -n <this> ARGUMENTS` (separated by blanks) and returns what it prints.
    ///
    /// # Errors
    /// As [`command::run`].
    pub fn ip(&self, arguments: &str) -> Result<String, Error> {
        let argv: Vec<&str> = ["ip", "-n", &self.name]
            .into_iter()
            .chain(arguments.split_whitespace())
            .collect();
        command::run(&argv)
    }

    /// Runs the lines as one `ip -batch`: thousands of routes take milliseconds.
    ///
    /// # Errors
    /// As [`command::run`]; lines before the wrong one are done.
    pub fn ip_batch(&self, lines: &str) -> Result<(), Error> {
        command::run_with(&["ip", "-n", &self.name, "-batch", "-"], lines).map(drop)
    }

    /// Runs `argv` inside and returns what it prints.
    ///
    /// # Errors
    /// As [`command::run`].
    pub fn exec(&self, argv: &[&str]) -> Result<String, Error> {
        let argv: Vec<&str> = ["ip", "netns", "exec", &self.name]
            .into_iter()
            .chain(argv.iter().copied())
            .collect();
        command::run(&argv)
    }

    /// Runs a shell script inside; `/sys/class/net` shows the interfaces of this namespace there.
    ///
    /// # Errors
    /// As [`command::run`].
    pub fn sh(&self, script: &str) -> Result<String, Error> {
        self.exec(&["sh", "-e", "-c", script])
    }

    /// Turns forwarding by the kernel on or off, of IPv4 packets and, where it has IPv6, of IPv6.
    /// Off is the kernel's default in a new namespace.
    ///
    /// # Errors
    /// As [`command::run`].
    pub fn set_forwarding(&self, on: bool) -> Result<(), Error> {
        self.sh(&format!(
            "cd /proc/sys/net; for f in ipv4/ip_forward ipv6/conf/all/forwarding; do [ ! -e $f ] || echo {} > $f; done",
            u8::from(on)
        ))
        .map(drop)
    }
}

impl Spawn {
    /// Starts it inside a namespace.
    pub fn inside(self, netns: &Netns) -> Self {
        self.through(["ip", "netns", "exec", netns.name()])
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        cleanup::delete_netns(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::is_root;

    #[test]
    fn namespace_lives_and_goes() {
        if !is_root() {
            println!("SKIP namespace_lives_and_goes: needs root");
            return;
        }
        let netns = Netns::create("test").unwrap();
        assert!(netns.ip("-br link").unwrap().starts_with("lo"));
        netns.set_forwarding(true).unwrap();
        assert_eq!(
            netns
                .exec(&["cat", "/proc/sys/net/ipv4/ip_forward"])
                .unwrap()
                .trim(),
            "1"
        );
        let path = netns.path();
        assert!(path.exists());
        let links = netns.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        assert_eq!(
            links.unwrap().lines().count(),
            3,
            "two lines of headings, and lo"
        );
        let ipv6 = |netns: &Netns| {
            netns
                .ip("-6 address show dev lo")
                .unwrap()
                .contains("::1/128")
        };
        assert!(!ipv6(&netns) && ipv6(&Netns::with_ipv6("six").unwrap()));
        drop(netns);
        assert!(!path.exists());
    }

    #[test]
    fn wrong_batch_is_refused() {
        if !is_root() {
            println!("SKIP wrong_batch_is_refused: needs root");
            return;
        }
        let netns = Netns::create("batch").unwrap();
        assert!(netns.ip_batch("route add nonsense\n").is_err());
    }
}
