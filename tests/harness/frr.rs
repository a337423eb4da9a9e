//! FRR's daemons, wherever a shell can be had: in a namespace, or on another machine.

use std::fmt::Write;

/// Where the daemons of one router have their files.
pub struct Frr {
    directory: String,
}

impl Frr {
    /// In this directory, which is made.
    pub fn new(directory: impl Into<String>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The script that starts zebra and then these daemons, each with its configuration. It ends
    /// once all of them run and listen.
    pub fn start(&self, daemons: &[(&str, &str)]) -> String {
        let directory = &self.directory;
        // The daemons become their own user, and write their sockets here. A socket left by a
        // killed zebra must not pass for the new one's.
        let mut script = format!(
            "set -e; mkdir -p {directory} /run/frr; chown frr:frrvty {directory} /run/frr; rm -f {directory}/zserv.api\n"
        );
        script += &self.daemon("zebra", "", "-K 120");
        for (name, configuration) in daemons {
            script += &self.daemon(name, configuration, "");
        }
        script
    }

    /// The script that starts one daemon.
    fn daemon(&self, name: &str, configuration: &str, options: &str) -> String {
        let d = &self.directory;
        let mut script = String::new();
        let _ = write!(
            script,
            "cat > {d}/{name}.conf <<'END'\n{configuration}END\n\
             /usr/lib/frr/{name} -d -f {d}/{name}.conf -z {d}/zserv.api -i {d}/{name}.pid \
             --vty_socket {d} -P 0 {options} --log file:{d}/{name}.log </dev/null >/dev/null 2>&1\n"
        );
        script
    }

    /// The script that ends a daemon at once, without a word to its peers.
    pub fn kill(&self, name: &str) -> String {
        format!("kill -9 $(cat {}/{name}.pid)\n", self.directory)
    }

    /// The script that gives commands to a daemon, as in vtysh.
    pub fn vtysh(&self, daemon: &str, commands: &[&str]) -> String {
        let commands: String = commands.iter().map(|c| format!(" -c '{c}'")).collect();
        let directory = &self.directory;
        format!("vtysh --vty_socket {directory} -d {daemon}{commands}\n")
    }

    /// The script that shows what the daemons have logged.
    pub fn log(&self) -> String {
        format!("tail -n 50 {}/*.log\n", self.directory)
    }
}
