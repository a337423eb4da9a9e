//! Does what a line says.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::{CommandFactory, Parser};
use loadgen::model::profile::{self, Tunables, Way};
use loadgen::model::rate::Rate;
use serde_json::{Value, json};
use trex::Local;

use super::refused::instead;
use super::split::split;
use super::words::{Line, Ports, Start, Switch, What, Word};
use crate::groups::{self, numbered};

/// Who has the ports.
const USER: &str = "console";

/// What a line comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// This is said; it may be nothing.
    Said(String),
    /// The console ends.
    Leave,
}

/// The ports, and what the console knows of them.
pub struct Act {
    tester: Local,
    /// What proves that a port is ours.
    handlers: Vec<Option<String>>,
    /// Counts at the last `clear`, by port and name.
    before: BTreeMap<(usize, &'static str), u64>,
    /// Ports that were started for a time.
    timed: Vec<bool>,
    is_quiet: bool,
    pub lines: Vec<String>,
}

/// The counts of a port.
const COUNTS: [&str; 4] = ["opackets", "ipackets", "obytes", "ibytes"];

impl Act {
    /// Acquires all ports.
    pub fn new(tester: Local) -> Result<Self, String> {
        let info = tester.ask("get_system_info", json!({}));
        let info = info.map_err(|why| why.to_string())?;
        let ports = info["port_count"].as_u64().unwrap_or(0);
        let ports = usize::try_from(ports).unwrap_or(0);
        let mut this = Self {
            tester,
            handlers: vec![None; ports],
            before: BTreeMap::new(),
            timed: vec![false; ports],
            is_quiet: false,
            lines: Vec::new(),
        };
        for port in 0..ports {
            this.acquire(port, false)?;
        }
        Ok(this)
    }

    /// Does a line.
    ///
    /// # Errors
    /// Why it is not done.
    pub fn line(&mut self, line: &str) -> Result<Next, String> {
        let words = split(line)?;
        let Some(first) = words.first() else {
            return Ok(Next::Said(String::new()));
        };
        self.lines.push(line.trim().to_owned());
        if let Some(why) = instead(first) {
            return Err(format!("`{first}`: {why}"));
        }
        if first == "help" || first == "?" {
            return help(words.get(1)).map(Next::Said);
        }
        let parsed = Line::try_parse_from(&words);
        let word = parsed
            .map_err(|why| why.to_string().trim_end().to_owned())?
            .word;
        if matches!(word, Word::Quit) {
            return Ok(Next::Leave);
        }
        self.word(word).map(Next::Said)
    }

    fn word(&mut self, word: Word) -> Result<String, String> {
        match word {
            Word::Start(start) => self.start(&start),
            Word::Update { mult, ports } => {
                let mul = multiplier(&mult)?;
                let ports = self.active(&ports, &["TX"], "sends")?;
                self.each(&ports, "update_traffic", &json!({"mul": mul}), "updated")
            }
            Word::Pause(ports) => {
                let ports = self.active(&ports, &["TX"], "sends")?;
                self.each(&ports, "pause_traffic", &json!({}), "paused")
            }
            Word::Resume(ports) => {
                let ports = self.active(&ports, &["PAUSE"], "pauses")?;
                self.each(&ports, "resume_traffic", &json!({}), "resumed")
            }
            Word::Stop(ports) => {
                let ports = self.active(&ports, &["TX", "PAUSE"], "sends or pauses")?;
                self.each(&ports, "stop_traffic", &json!({}), "stopped")
            }
            Word::Stats { what } => self.stats(&what),
            Word::Streams(ports) => self.streams(&ports),
            Word::Ports => self.ports(),
            Word::Clear(ports) => self.clear(&ports),
            Word::Reset(ports) => self.reset(&ports),
            Word::Acquire { force, ports } => {
                let ports = self.all_or(&ports)?;
                let taken = ports.iter().try_for_each(|port| self.acquire(*port, force));
                taken.map(|()| self.said(&ports, "acquired"))
            }
            Word::Release(ports) => {
                let said = self.each(&ports, "release", &json!({}), "released")?;
                for port in self.chosen(&ports)? {
                    self.handlers[port] = None;
                }
                Ok(said)
            }
            Word::Portattr { ports, prom, mult } => self.attributes(&ports, prom, mult),
            Word::Quiet { switch } => {
                self.is_quiet = switch != Some(Switch::Off);
                Ok(String::new())
            }
            Word::History => {
                let lines = self.lines.iter().enumerate();
                Ok(lines
                    .map(|(i, line)| format!("{:>4}  {line}\n", i + 1))
                    .collect())
            }
            Word::Quit => Ok(String::new()),
        }
    }

    fn ask(&self, port: usize, method: &str, params: &Value) -> Result<Value, String> {
        let mut params = params.clone();
        params["port_id"] = json!(port);
        params["handler"] = json!(self.handlers.get(port).cloned().flatten());
        let answer = self.tester.ask(method, params);
        answer.map_err(|why| of_port(port, &why.to_string()))
    }

    /// The ports that are named, or those of ours whose state is one of `states`.
    fn active(&self, ports: &Ports, states: &[&str], do_so: &str) -> Result<Ports, String> {
        if !ports.ports.is_empty() {
            return Ok(ports.clone());
        }
        let mut ports = self.chosen(ports)?;
        ports.retain(|port| states.contains(&&*self.state(*port)));
        match ports.is_empty() {
            true => Err(format!("no port {do_so}; `ports` shows what they do")),
            false => Ok(Ports { ports }),
        }
    }

    /// What became of a port's device.
    pub fn lost(&self) -> Option<String> {
        self.tester.fault()
    }

    /// The ports that are named, or those that are acquired.
    fn chosen(&self, ports: &Ports) -> Result<Vec<usize>, String> {
        if !ports.ports.is_empty() {
            return self.all_or(ports);
        }
        let all = self.handlers.iter().enumerate();
        let ours: Vec<usize> = all
            .filter_map(|(port, h)| h.is_some().then_some(port))
            .collect();
        match ours.is_empty() {
            true => Err("no port is acquired; `acquire` takes them".to_owned()),
            false => Ok(ours),
        }
    }

    /// The ports that are named, or all.
    fn all_or(&self, ports: &Ports) -> Result<Vec<usize>, String> {
        let there = self.handlers.len();
        match ports.ports.iter().find(|port| **port >= there) {
            Some(port) => Err(format!(
                "there is no port {port}: there are {there}, from 0 on"
            )),
            None if ports.ports.is_empty() => Ok((0..there).collect()),
            None => Ok(ports.ports.clone()),
        }
    }

    fn each(
        &self,
        ports: &Ports,
        method: &str,
        params: &Value,
        done: &str,
    ) -> Result<String, String> {
        let ports = self.chosen(ports)?;
        // All or none, as far as states tell.
        let needed: &[&str] = match method {
            "update_traffic" => &["TX", "PAUSE"],
            "pause_traffic" => &["TX"],
            "resume_traffic" => &["PAUSE"],
            _ => &[],
        };
        let wrong = |port: &&usize| !needed.is_empty() && !needed.contains(&&*self.state(**port));
        if let Some(port) = ports.iter().find(wrong) {
            // It says why not.
            self.ask(*port, method, params)?;
        }
        for port in &ports {
            self.ask(*port, method, params)?;
        }
        Ok(self.said(&ports, done))
    }

    fn said(&self, ports: &[usize], done: &str) -> String {
        let ports: Vec<String> = ports.iter().map(usize::to_string).collect();
        match self.is_quiet {
            true => String::new(),
            false => format!("{done}: port {}\n", ports.join(", ")),
        }
    }

    fn acquire(&mut self, port: usize, force: bool) -> Result<(), String> {
        let params = json!({"user": USER, "session_id": 1, "force": force});
        let handler = self.ask(port, "acquire", &params)?;
        self.handlers[port] = handler.as_str().map(str::to_owned);
        Ok(())
    }

    fn start(&mut self, start: &Start) -> Result<String, String> {
        let ports = self.chosen(&start.ports)?;
        let mul = multiplier(&start.mult)?;
        if mul["op"] != "abs" {
            return Err(format!(
                "-m {}: a start has a rate, not a change",
                start.mult
            ));
        }
        let mut tunables = Tunables::default();
        for text in &start.tunables {
            tunables = tunables.and(Tunables::parse(text).map_err(|why| format!("-t {why}"))?);
        }
        let of = |way| profile::open(&start.file, way, &tunables).map_err(|why| why.to_string());
        let ways = [of(Way::Out)?, of(Way::Back)?];
        for port in &ports {
            if start.force {
                self.ask(*port, "stop_traffic", &json!({}))?;
            }
            let handler = self.handlers[*port].clone().unwrap_or_default();
            let loaded = self.tester.load(*port, &handler, ways[port % 2].clone());
            loaded.map_err(|why| of_port(*port, &why.to_string()))?;
        }
        let duration = start.duration.unwrap_or(-1.0);
        for port in &ports {
            let params = json!({"mul": mul, "duration": duration, "force": start.force});
            self.ask(*port, "start_traffic", &params)?;
            self.timed[*port] = start.duration.is_some();
        }
        Ok(self.said(&ports, "started"))
    }

    /// Whether a port sends that was started for a time.
    pub fn runs_for_a_time(&self) -> bool {
        let timed = self.timed.iter().enumerate().filter(|(_, timed)| **timed);
        timed.into_iter().any(|(port, _)| self.state(port) == "TX")
    }

    /// Whether a port sends or pauses.
    pub fn runs(&self) -> bool {
        (0..self.handlers.len()).any(|port| ["TX", "PAUSE"].contains(&&*self.state(port)))
    }

    /// Stops all ports.
    pub fn stop(&self) {
        for port in 0..self.handlers.len() {
            // One that is not ours cannot be stopped; it goes with the process.
            let _ = self.ask(port, "stop_traffic", &json!({}));
        }
    }

    pub fn state(&self, port: usize) -> String {
        let status = self
            .ask(port, "get_port_status", &json!({}))
            .unwrap_or_default();
        status["state"].as_str().unwrap_or_default().to_owned()
    }

    fn reset(&mut self, ports: &Ports) -> Result<String, String> {
        let ports = self.all_or(ports)?;
        for port in &ports {
            self.acquire(*port, true)?;
            self.ask(*port, "stop_traffic", &json!({}))?;
            self.ask(*port, "remove_all_streams", &json!({}))?;
        }
        self.clear(&Ports {
            ports: ports.clone(),
        })?;
        Ok(self.said(&ports, "reset"))
    }

    fn clear(&mut self, ports: &Ports) -> Result<String, String> {
        let ports = self.all_or(ports)?;
        for port in &ports {
            let counts = self.ask(*port, "get_port_stats", &json!({}))?;
            for name in COUNTS {
                let count = counts[name].as_u64().unwrap_or(0);
                self.before.insert((*port, name), count);
            }
        }
        Ok(self.said(&ports, "cleared"))
    }

    fn ports(&self) -> Result<String, String> {
        let info = self.tester.ask("get_system_info", json!({}));
        let info = info.map_err(|why| why.to_string())?;
        let mut text = format!("{:<6}{:<9}{:<10}{}\n", "port", "state", "owner", "device");
        for port in 0..self.handlers.len() {
            let status = self.ask(port, "get_port_status", &json!({}))?;
            let owner = status["owner"].as_str().unwrap_or_default();
            let device = info["ports"][port]["description"]
                .as_str()
                .unwrap_or_default();
            let _ = writeln!(text, "{port:<6}{:<9}{owner:<10}{device}", self.state(port));
        }
        Ok(text)
    }

    fn streams(&self, ports: &Ports) -> Result<String, String> {
        let ports = self.all_or(ports)?;
        Ok(self.tester.streams(&ports))
    }

    fn attributes(
        &self,
        ports: &Ports,
        prom: Option<Switch>,
        mult: Option<Switch>,
    ) -> Result<String, String> {
        let mut attr = json!({});
        for (name, switch) in [("promiscuous", prom), ("multicast", mult)] {
            if let Some(switch) = switch {
                attr[name] = json!({"enabled": switch == Switch::On});
            }
        }
        if attr != json!({}) {
            return self.each(ports, "set_port_attr", &json!({"attr": attr}), "set");
        }
        let mut text = format!(
            "{:<6}{:<19}{:<19}{:>12}\n",
            "port", "source", "destination", "Gbit/s"
        );
        for port in self.all_or(ports)? {
            let status = self.ask(port, "get_port_status", &json!({}))?;
            let ether = &status["attr"]["layer_cfg"]["ether"];
            let mac = |name: &str| ether[name].as_str().unwrap_or_default().to_owned();
            let (src, dst) = (mac("src"), mac("dst"));
            let _ = writeln!(
                text,
                "{port:<6}{src:<19}{dst:<19}{:>12}",
                status["attr"]["speed"].as_f64().unwrap_or(0.0)
            );
        }
        Ok(text)
    }

    fn stats(&self, what: &What) -> Result<String, String> {
        match what {
            What { xstats: true, .. } => Err(
                "-x: devices have no counters of their own here; `ethtool -S` shows the \
                     kernel's"
                    .to_owned(),
            ),
            What { streams: true, .. } => self.groups(),
            What { latency: true, .. } => self.latency(),
            _ => self.port_stats(),
        }
    }

    fn port_stats(&self) -> Result<String, String> {
        let head = ["port", "state", "tx pps", "rx pps", "tx bps", "rx bps"];
        let mut text = format!("{:<6}{:<9}", head[0], head[1]);
        for name in &head[2..] {
            let _ = write!(text, "{name:>14}");
        }
        for name in COUNTS {
            let _ = write!(text, "{name:>16}");
        }
        text.push('\n');
        for port in 0..self.handlers.len() {
            let counts = self.ask(port, "get_port_stats", &json!({}))?;
            let _ = write!(text, "{port:<6}{:<9}", self.state(port));
            for name in ["tx_pps", "rx_pps", "tx_bps", "rx_bps"] {
                let rate = counts[format!("m_total_{name}")].as_f64().unwrap_or(0.0);
                let _ = write!(text, "{rate:>14.0}");
            }
            for name in COUNTS {
                let before = self.before.get(&(port, name)).copied().unwrap_or(0);
                let count = counts[name].as_u64().unwrap_or(0);
                let _ = write!(text, "{:>16}", count.saturating_sub(before));
            }
            text.push('\n');
        }
        Ok(text)
    }

    /// What the server says of all packet groups.
    fn all_groups(&self) -> Result<Value, String> {
        let all = groups::all(|method, params| self.tester.ask(method, params));
        all.map_err(|why| why.to_string())
    }

    fn groups(&self) -> Result<String, String> {
        let mut text = format!("{:<8}", "pgid");
        let names = ["tp", "rp", "tb", "rb"];
        for name in ["sent", "received", "sent B", "received B"] {
            let _ = write!(text, "{name:>16}");
        }
        text.push('\n');
        let all = self.all_groups()?;
        for (group, counts) in numbered(&all["flow_stats"]) {
            let _ = write!(text, "{group:<8}");
            for name in names {
                let ports = counts[name].as_object().into_iter().flatten();
                let sum: u64 = ports.filter_map(|(_, count)| count.as_u64()).sum();
                let _ = write!(text, "{sum:>16}");
            }
            text.push('\n');
        }
        Ok(text)
    }

    fn latency(&self) -> Result<String, String> {
        let mut text = format!("{:<8}", "pgid");
        for name in [
            "average",
            "least",
            "most",
            "jitter",
            "lost",
            "reordered",
            "duplicates",
        ] {
            let _ = write!(text, "{name:>12}");
        }
        text.push('\n');
        let all = self.all_groups()?;
        for (group, row) in numbered(&all["latency"]) {
            let _ = write!(text, "{group:<8}");
            for name in ["average", "total_min", "total_max", "jit"] {
                let _ = write!(text, "{:>12.1}", row["lat"][name].as_f64().unwrap_or(0.0));
            }
            for name in ["drp", "ooo", "dup"] {
                let _ = write!(text, "{:>12}", row["er"][name].as_u64().unwrap_or(0));
            }
            text.push('\n');
        }
        Ok(text)
    }
}

/// Why a port cannot do something; what begins with its name stays as it is.
fn of_port(port: usize, why: &str) -> String {
    let name = format!("port {port}");
    match why.strip_prefix(&*name) {
        Some(rest) if rest.starts_with([' ', ':']) => why.to_owned(),
        _ => format!("{name}: {why}"),
    }
}

/// A rate as the RPC has it; with + or - behind it, a change.
fn multiplier(text: &str) -> Result<Value, String> {
    let (rate, op) = match (text.strip_suffix('+'), text.strip_suffix('-')) {
        (Some(rate), _) => (rate, "add"),
        (None, Some(rate)) => (rate, "sub"),
        (None, None) => (text, "abs"),
    };
    if rate.starts_with('-') {
        return Err(format!(
            "-m {text}: a rate is above 0; what is less than before has its - behind it, as in 5%-"
        ));
    }
    let rate: Rate = rate.parse().map_err(|why| format!("-m: {why}"))?;
    let (kind, value) = match rate {
        Rate::Multiplier(value) => ("raw", value),
        Rate::Percent(value) => ("percentage", value),
        Rate::Packets(pps) => ("pps", pps.0),
        Rate::L2(bits) => ("bps", bits.0),
        Rate::L1(bits) => ("bpsl1", bits.0),
        Rate::Max => ("max", 1.0),
    };
    Ok(json!({"type": kind, "op": op, "value": value}))
}

/// All words, or one and its options.
fn help(word: Option<&String>) -> Result<String, String> {
    let mut line = Line::command();
    let Some(word) = word else {
        let words = line.get_subcommands().map(|word| {
            let about = word
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            format!("{:<10} {about}\n", word.get_name())
        });
        let all: String = words.collect();
        return Ok(all + "help [WORD] what a word does, and its options\n");
    };
    match (line.find_subcommand_mut(word), instead(word)) {
        (Some(found), _) => Ok(found.render_long_help().to_string()),
        (None, Some(why)) => Err(format!("`{word}`: {why}")),
        (None, None) => Err(format!("there is no word `{word}`; `help` lists all")),
    }
}
