//! FRR's daemons, wherever a shell can be had: in a namespace, or on another machine.

use std::path::Path;

use super::{Netns, Process, Spawn, cleanup, patience, until};

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

    /// Starts zebra and then these daemons in a namespace, each with its configuration. They end with
    /// what is returned.
    pub fn spawn(netns: &Netns, daemons: &[(&str, &str)]) -> Vec<Process> {
        let directory = cleanup::directory().join(format!("{}-frr", netns.name()));
        let frr = Self::new(directory.display().to_string());
        netns.sh(&frr.prepare()).expect("root may write to /run");
        let start = |&(daemon, configuration): &(&str, &str)| {
            std::fs::write(frr.file(daemon, "conf"), configuration).expect("it is ours");
            let command = frr.command(daemon);
            let daemon = Spawn::new(&command[0]).args(&command[1..]);
            daemon.inside(netns).start().expect("FRR is installed")
        };
        let zebra = start(&("zebra", "hostname zebra\n"));
        assert!(
            until(patience(), || Path::new(&frr.zebra()).exists()),
            "zebra: {}",
            zebra.log()
        );
        let mut all = vec![zebra];
        all.extend(daemons.iter().map(start));
        all
    }

    /// The configuration of an OSPF router with one neighbor on this device, and these networks.
    pub fn ospf(device: &str, id: &str, networks: &[&str]) -> String {
        let lines = networks
            .iter()
            .map(|network| format!(" network {network} area 0\n"));
        format!(
            "interface {device}\n ip ospf hello-interval 1\n ip ospf dead-interval 20\n \
             ip ospf network point-to-point\n!\nrouter ospf\n ospf router-id {id}\n{}",
            lines.collect::<String>()
        )
    }

    /// The script that starts zebra and then these daemons, each with its configuration. It ends
    /// once all of them run and listen.
    pub fn start(&self, daemons: &[(&str, &str)]) -> String {
        // Where ospfd writes down that it is to be started again.
        let mut script = self.prepare() + "mkdir -p /run/frr; chown frr:frrvty /run/frr\n";
        script += &self.daemon("zebra", "", "-K 120");
        for (name, configuration) in daemons {
            script += &self.daemon(name, configuration, "");
        }
        script
    }

    /// The script that makes the directory ready for daemons.
    pub fn prepare(&self) -> String {
        let directory = &self.directory;
        // The daemons become their own user, and write their sockets here. A socket left by a
        // killed zebra must not pass for the new one's.
        format!(
            "set -e; mkdir -p {directory}; chown frr:frrvty {directory}; rm -f {directory}/zserv.api\n"
        )
    }

    /// One of the files of a daemon: its configuration (conf), its process id (pid), its log.
    pub fn file(&self, daemon: &str, kind: &str) -> String {
        format!("{}/{daemon}.{kind}", self.directory)
    }

    /// Zebra's socket, by which the other daemons reach it.
    pub fn zebra(&self) -> String {
        format!("{}/zserv.api", self.directory)
    }

    /// The program of a daemon and its arguments.
    pub fn command(&self, daemon: &str) -> Vec<String> {
        let (conf, pid) = (self.file(daemon, "conf"), self.file(daemon, "pid"));
        let program = format!("/usr/lib/frr/{daemon}");
        let files = ["-f", &conf, "-z", &self.zebra(), "-i", &pid].map(String::from);
        let terminal = ["--vty_socket", &self.directory, "-P", "0"].map(String::from);
        [vec![program], files.into(), terminal.into()].concat()
    }

    /// The script that starts one daemon.
    fn daemon(&self, name: &str, configuration: &str, options: &str) -> String {
        let (conf, log) = (self.file(name, "conf"), self.file(name, "log"));
        let command = self.command(name).join(" ");
        format!(
            "cat > {conf} <<'END'\n{configuration}END\n\
             {command} -d {options} --log file:{log} </dev/null >/dev/null 2>&1\n"
        )
    }

    /// The script that ends a daemon at once, without a word to its peers.
    pub fn kill(&self, name: &str) -> String {
        format!("kill -9 $(cat {})\n", self.file(name, "pid"))
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
