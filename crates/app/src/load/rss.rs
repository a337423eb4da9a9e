//! `parshall rss`: how a card would spread a profile's packets over its queues, and how one does.

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use kernel::{netdev, rx_queues};
use loadgen::clock::{Clock, Interruptible};
use loadgen::dry::Dry;
use loadgen::model::{rate::Rate, units::Pps};
use loadgen::queues::{Card, Shares};
use session::Spec;
use wire::rss::KEY_LEN;

use super::interrupt::Interrupt;
use super::text::percent;
use super::traffic::{Sending, Traffic};
use crate::output::{self, write_json};

/// Predict how a card spreads a profile's packets over its receive queues, and count what arrives at
/// those of a card of this machine.
///
/// The first packets of the profile are made and hashed as cards with receive-side scaling do
/// (Toeplitz); nothing is sent. `ethtool -x IF` shows the key and the table of a card. With
/// `--interface`, while a test runs, the queues of that device are counted every second.
#[derive(Args, Debug)]
pub struct Rss {
    #[command(flatten)]
    traffic: Traffic,
    /// Receive queues of the card [default: those of --interface, or 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    queues: Option<u16>,
    /// Key of the hash, 40 bytes or more, as ethtool prints it [default: that of the published
    /// examples, 6d:5a:56:da...]
    #[arg(long, value_name = "HEX", value_parser = key)]
    key: Option<[u8; KEY_LEN]>,
    /// Entries of the indirection table, a power of two; they name the queues in turn
    #[arg(long, value_name = "N", default_value_t = ENTRIES, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    indirection: u32,
    /// Hash UDP by addresses alone, as a card does for which `ethtool -n IF rx-flow-hash udp4` names
    /// no ports
    #[arg(long)]
    udp_by_addresses: bool,
    /// Packets to make
    #[arg(long, value_name = "N", default_value_t = PACKETS, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    packets: u64,
    /// Count what arrives at the receive queues of this device of our namespace, and compare
    #[arg(long, value_name = "IF")]
    interface: Option<String>,
    /// Seconds to count
    #[arg(long, value_name = "N", default_value_t = 10, requires = "interface", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Write the result as JSON; with -, to standard output, and the text to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Queues of a card of which nothing is known.
const QUEUES: u16 = 8;

/// Entries of its indirection table.
const ENTRIES: u32 = 128;

/// Packets that show how they are spread.
const PACKETS: u64 = 10_000;

/// Packets that came, by receive queue; `None`: not counted.
type Arrived = Vec<Option<u64>>;

impl Rss {
    /// Predicts, and prints a table.
    ///
    /// # Errors
    /// The mistake in the command line or the profile, or the file cannot be written.
    pub fn run(self) -> crate::Outcome {
        self.card(self.queues.unwrap_or(QUEUES))?;
        if let Some(file) = &self.json {
            output::check(file)?;
            output::all_apart([
                ("--profile", self.traffic.file()),
                ("--json", Some(&**file)),
            ])?;
        }
        let unbound = self.traffic.unbound(Rate::Multiplier(1.0))?;
        let mut dry = Dry::divided(&unbound.streams, self.traffic.cores, unbound.rate);
        let arrived = match &self.interface {
            Some(name) => Some(self.count(name)?),
            None => None,
        };
        let counted = arrived.as_ref().map(|arrived| arrived.len());
        let queues = self.queues.or(counted.and_then(|n| u16::try_from(n).ok()));
        let card = self.card(queues.unwrap_or(QUEUES))?;
        let shares = card.deal(&mut dry, self.packets);
        if let Some(file) = &self.json {
            let document = document(&self.traffic.profile, &shares, arrived.as_deref());
            write_json(file, &document)?;
        }
        self.say(&self.text(&shares, arrived.as_deref()));
        Ok(())
    }

    /// Counts for some time, and says every second what came. Ctrl-C ends it early.
    fn count(&self, name: &str) -> Result<Arrived, Box<dyn Error>> {
        let index = netdev::index(name).ok_or_else(|| format!("there is no device {name}"))?;
        let now = || rx_queues::packets(name, index).map_err(|e| format!("{name}: {e}"));
        let interrupt = Interrupt::on_signal()?;
        let clock = Interruptible::new(interrupt.flag());
        let (begin, first) = (clock.now(), now()?);
        let mut before = first.clone();
        for second in 1..=self.seconds {
            clock.wait_until(begin.after(Duration::from_secs(second.into())));
            if clock.is_interrupted() {
                break;
            }
            let after = now()?;
            self.say(&line(second, &since(&before, &after)));
            before = after;
        }
        Ok(since(&first, &before))
    }

    /// Prints text, unless nobody reads it anymore.
    fn say(&self, text: &str) {
        let _ = output::say(self.json.as_deref(), text);
    }

    fn card(&self, queues: u16) -> Result<Card, String> {
        let mut card = Card::new(queues.into(), self.indirection as usize)
            .map_err(|e| format!("--indirection: {e}"))?;
        card.udp_ports = !self.udp_by_addresses;
        if let Some(key) = self.key {
            card.key = key;
        }
        Ok(card)
    }

    fn text(&self, shares: &Shares, arrived: Option<&[Option<u64>]>) -> String {
        let all = shares.packets();
        let mut out = String::from("queue     packets    share");
        out += if arrived.is_some() {
            "     arrived    share\n"
        } else {
            "\n"
        };
        let came = sum(arrived.unwrap_or_default());
        for queue in 0..shares.queues.len().max(arrived.map_or(0, <[_]>::len)) {
            let _ = match shares.queues.get(queue) {
                Some(packets) => write!(out, "{}", row(queue, *packets, all)),
                None => write!(out, "{queue:5}  {:>10}  {:>5}  ", "-", "-"),
            };
            match arrived.map(|arrived| arrived.get(queue).copied().flatten()) {
                Some(Some(packets)) => {
                    let share = share(packets, came) * 100.0;
                    let _ = write!(out, "  {packets:10}  {share:5.1} %");
                }
                Some(None) => out += "           -      -",
                None => {}
            }
            out.push('\n');
        }
        let profile = &self.traffic.profile;
        let hashes = match shares.hashes {
            1 => "1 hash".to_owned(),
            n => format!("{n} different hashes"),
        };
        let _ = write!(out, "{profile}: {all} packets, {hashes}");
        if let Some(imbalance) = shares.imbalance() {
            let _ = write!(out, "; the busiest queue has {imbalance:.2} times the mean");
        }
        match shares.queues.len() - shares.used() {
            0 => out.push('\n'),
            1 => out.push_str("; 1 queue gets nothing\n"),
            idle => {
                let _ = writeln!(out, "; {idle} queues get nothing");
            }
        }
        if shares.unhashed > 0 {
            let part = percent(share(shares.unhashed, all));
            let _ = writeln!(out, "{part} are not IP and go to the first queue");
        }
        for line in [
            self.warning(shares),
            arrived.and_then(one_queue),
            arrived.and_then(none_counted),
        ]
        .into_iter()
        .flatten()
        {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// What is wrong if one queue gets all packets, and what to do.
    fn warning(&self, shares: &Shares) -> Option<String> {
        if shares.queues.len() == 1 || shares.used() != 1 {
            return None;
        }
        let todo = match shares.hashes {
            0 => "no packet is IP, so no card can tell them apart: send IP",
            1 if self.udp_by_addresses => {
                "all packets have one hash: vary addresses (--tunable vm=var1 of bench), or let the \
                 card hash ports: ethtool -N IF rx-flow-hash udp4 sdfn"
            }
            1 => {
                "all packets have one hash: vary addresses or ports, such as by --tunable vm=var1 of \
                 bench"
            }
            _ => {
                "the hashes differ, but not in the bits that the table has entries for: vary more \
                 addresses or ports, or set another key"
            }
        };
        Some(format!(
            "Warning: one queue of {} gets all packets, so one processor of the device does all \
             the work; {todo}",
            shares.queues.len()
        ))
    }
}

/// Says which directions have packets that a card with several receive queues gives to one of them; a
/// line each.
pub fn of_one_flow(ways: &[(Sending, Spec)]) -> String {
    let Ok(card) = Card::new(QUEUES.into(), ENTRIES as usize) else {
        return String::new();
    };
    let one = ways.iter().filter(|(sending, _)| {
        let mut dry = Dry::new(&sending.streams, Pps::UNLIMITED);
        card.is_one_queue(&mut dry, PACKETS)
    });
    let lines = one.map(|(sending, _)| {
        format!(
            "{}: the packets are of one flow, so a device with several receive queues uses one of \
             them (`parshall rss` predicts which)\n",
            sending.tx
        )
    });
    lines.collect()
}

/// What is predicted of a queue.
fn row(queue: usize, packets: u64, all: u64) -> String {
    format!(
        "{queue:5}  {packets:10}  {:5.1} %",
        share(packets, all) * 100.0
    )
}

/// What came between two counts; a queue that is counted only once is not known.
fn since(before: &[Option<u64>], after: &[Option<u64>]) -> Arrived {
    let before = before.iter().copied().chain(std::iter::repeat(None));
    let pairs = after.iter().zip(before);
    pairs
        .map(|(after, before)| Some(after.as_ref()?.wrapping_sub(before?)))
        .collect()
}

fn sum(arrived: &[Option<u64>]) -> u64 {
    arrived.iter().flatten().sum()
}

/// The packets of one second.
fn line(second: u32, arrived: &[Option<u64>]) -> String {
    let mut out = format!("{second:4} s ");
    for (queue, packets) in arrived.iter().enumerate() {
        let _ = match packets {
            Some(packets) => write!(out, " [Q{queue} {packets}/s]"),
            None => write!(out, " [Q{queue} -]"),
        };
    }
    out + &format!(" [all {}/s]\n", sum(arrived))
}

/// What is wrong if all that came is in one of several queues.
fn one_queue(arrived: &[Option<u64>]) -> Option<String> {
    let all = sum(arrived);
    let most = arrived.iter().flatten().max()?;
    // What else comes, such as neighbor discovery, takes its own queue.
    (arrived.len() > 1 && all > 0 && share(*most, all) > 0.99).then(|| {
        format!(
            "Warning: one queue of {} got all packets, so one processor of the device did all the work",
            arrived.len()
        )
    })
}

/// Why none may have been counted where none was.
fn none_counted(arrived: &[Option<u64>]) -> Option<String> {
    (sum(arrived) == 0).then(|| {
        "No packet was counted: none came, or the driver does not count those that an XDP program or \
         an AF_XDP socket takes, as that of veth does not. What such a program takes is not known here"
            .to_owned()
    })
}

/// The part of `all` packets that `packets` are.
fn share(packets: u64, all: u64) -> f64 {
    packets as f64 / all.max(1) as f64
}

fn document(profile: &str, shares: &Shares, arrived: Option<&[Option<u64>]>) -> Value {
    let (all, came) = (shares.packets(), sum(arrived.unwrap_or_default()));
    let queues = 0..shares.queues.len().max(arrived.map_or(0, <[_]>::len));
    let queues = queues.map(|queue| {
        let packets = shares.queues.get(queue).copied();
        let arrived = arrived.and_then(|arrived| arrived.get(queue).copied().flatten());
        json!({
            "queue": queue,
            "packets": packets,
            "share": packets.map(|packets| share(packets, all)),
            "arrived": arrived,
            "arrived_share": arrived.map(|arrived| share(arrived, came)),
        })
    });
    json!({
        "profile": profile,
        "packets": all,
        "hashes": shares.hashes,
        "unhashed": shares.unhashed,
        "imbalance": shares.imbalance(),
        "queues": queues.collect::<Vec<_>>(),
    })
}

/// A key of 40 bytes or more, in hexadecimal digits with or without colons between bytes.
fn key(text: &str) -> Result<[u8; KEY_LEN], String> {
    let wrong = || format!("expected {KEY_LEN} bytes or more, such as 6d:5a:56:da...");
    let digits = text.replace(':', "");
    if !digits.bytes().all(|c| c.is_ascii_hexdigit()) || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let mut key = [0; KEY_LEN];
    for (i, byte) in key.iter_mut().enumerate() {
        let two = digits.get(2 * i..2 * i + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(two, 16).map_err(|_| wrong())?;
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        rss: Rss,
    }

    fn read(line: &str) -> Result<Rss, String> {
        let argv = std::iter::once("rss").chain(line.split_whitespace());
        let command = Command::try_parse_from(argv).map_err(|e| e.to_string())?;
        Ok(command.rss)
    }

    /// The text of a prediction.
    fn predict(line: &str) -> String {
        let rss = read(line).unwrap();
        let unbound = rss.traffic.unbound(Rate::Multiplier(1.0)).unwrap();
        let mut dry = Dry::divided(&unbound.streams, rss.traffic.cores, unbound.rate);
        let card = rss.card(rss.queues.unwrap_or(QUEUES)).unwrap();
        rss.text(&card.deal(&mut dry, rss.packets), None)
    }

    #[test]
    fn a_table_says_what_each_queue_gets() {
        let text = predict("-t vm=var2 --packets 4000 --queues 4");
        assert_eq!(text.lines().count(), 1 + 4 + 1, "{text}");
        assert!(text.contains("bench: 4000 packets") && !text.contains("Warning"));
        assert!(text.contains("times the mean"), "{text}");
    }

    #[test]
    fn one_queue_is_a_warning_that_says_what_to_do() {
        for (line, advice) in [
            ("--packets 9", "vary addresses or ports"),
            ("--packets 9 --udp-by-addresses", "rx-flow-hash"),
        ] {
            let text = predict(line);
            assert!(text.contains("one queue of 8 gets all packets"), "{text}");
            assert!(text.contains(advice), "{text}");
            assert!(
                text.contains("100.0 %") && text.contains("8.00 times"),
                "{text}"
            );
        }
        // A key without a bit gives every packet the hash 0.
        let zero = "0".repeat(80);
        assert!(predict(&format!("-t vm=var2 --key {zero}")).contains("Warning"));
        assert!(!predict("--queues 1").contains("Warning"));
    }

    #[test]
    fn keys_are_read_as_ethtool_prints_them() {
        let colons = |n: usize| vec!["a5"; n].join(":");
        assert_eq!(key(&colons(40)), Ok([0xa5; 40]));
        assert_eq!(key(&colons(52)), Ok([0xa5; 40]));
        assert_eq!(key(&"a5".repeat(40)), Ok([0xa5; 40]));
        for wrong in [
            colons(39),
            "zz".repeat(40),
            "a".repeat(81),
            "é".repeat(80),
            String::new(),
        ] {
            assert!(key(&wrong).is_err(), "{wrong}");
        }
        let four = read("--indirection 4").unwrap();
        assert!(four.card(8).unwrap_err().contains("--indirection"));
    }

    #[test]
    fn programs_get_the_same_figures() {
        let shares = Shares {
            queues: vec![3, 1],
            hashes: 2,
            unhashed: 1,
        };
        let arrived = [Some(30), Some(5), Some(5)];
        let document = document("bench", &shares, Some(&arrived));
        assert_eq!(
            (&document["packets"], &document["imbalance"]),
            (&json!(4), &json!(1.5))
        );
        assert_eq!(
            document["queues"][0],
            json!({
                "queue": 0, "packets": 3, "share": 0.75, "arrived": 30, "arrived_share": 0.75
            })
        );
        assert_eq!(document["queues"][2]["packets"], Value::Null);
    }

    #[test]
    fn what_came_stands_beside_what_was_predicted() {
        let rss = read("--queues 2 --packets 4").unwrap();
        let shares = Shares {
            queues: vec![3, 1],
            hashes: 2,
            unhashed: 0,
        };
        let text = rss.text(&shares, Some(&[Some(999), None, Some(1)]));
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1], ["0", "3", "75.0", "%", "999", "99.9", "%"]);
        assert_eq!(rows[2], ["1", "1", "25.0", "%", "-", "-"]);
        assert_eq!(rows[3], ["2", "-", "-", "1", "0.1", "%"]);
        assert!(text.contains("one queue of 3 got all packets"), "{text}");
        assert_eq!(one_queue(&[Some(9), Some(1)]), None);
        assert_eq!(one_queue(&[Some(9)]), None);
        assert_eq!(one_queue(&[Some(0), Some(0)]), None);
        assert_eq!(since(&[Some(4)], &[Some(9), Some(2)]), [Some(5), None]);
        assert_eq!(
            line(3, &[Some(5), None]),
            "   3 s  [Q0 5/s] [Q1 -] [all 5/s]\n"
        );
    }
}
