//! `parshall rss`: how a card would spread a profile's packets over its queues.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use loadgen::dry::Dry;
use loadgen::model::rate::Rate;
use loadgen::queues::{Card, Shares};
use wire::rss::KEY_LEN;

use super::text::percent;
use super::traffic::Traffic;
use crate::output::{self, write_json};

/// Predict how a card spreads a profile's packets over its receive queues.
///
/// The first packets of the profile are made and hashed as cards with receive-side scaling do
/// (Toeplitz); nothing is sent. `ethtool -x IF` shows the key and the table of a card.
#[derive(Args, Debug)]
pub struct Rss {
    #[command(flatten)]
    traffic: Traffic,
    /// Receive queues of the card
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    queues: u16,
    /// Key of the hash, 40 bytes or more, as ethtool prints it [default: that of the published
    /// examples, 6d:5a:56:da...]
    #[arg(long, value_name = "HEX", value_parser = key)]
    key: Option<[u8; KEY_LEN]>,
    /// Entries of the indirection table, a power of two; they name the queues in turn
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    indirection: u32,
    /// Hash UDP by addresses alone, as a card does for which `ethtool -n IF rx-flow-hash udp4` names
    /// no ports
    #[arg(long)]
    udp_by_addresses: bool,
    /// Packets to make
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    packets: u64,
    /// Write the result as JSON; with -, to standard output, and the text to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

impl Rss {
    /// Predicts, and prints a table.
    ///
    /// # Errors
    /// The mistake in the command line or the profile, or the file cannot be written.
    pub fn run(self) -> crate::Outcome {
        let card = self.card()?;
        if let Some(file) = &self.json {
            output::check(file)?;
        }
        let unbound = self.traffic.unbound(Rate::Multiplier(1.0))?;
        let mut dry = Dry::divided(&unbound.streams, self.traffic.cores, unbound.rate);
        let shares = card.deal(&mut dry, self.packets);
        if let Some(file) = &self.json {
            write_json(file, &document(&self.traffic.profile, &shares))?;
        }
        // Perhaps nobody reads it anymore.
        let _ = output::say(self.json.as_deref(), &self.text(&shares));
        Ok(())
    }

    fn card(&self) -> Result<Card, String> {
        let mut card = Card::new(self.queues.into(), self.indirection as usize)
            .map_err(|e| format!("--indirection: {e}"))?;
        card.udp_ports = !self.udp_by_addresses;
        if let Some(key) = self.key {
            card.key = key;
        }
        Ok(card)
    }

    fn text(&self, shares: &Shares) -> String {
        let all = shares.packets();
        let mut out = String::from("queue     packets    share\n");
        for (queue, packets) in shares.queues.iter().enumerate() {
            let share = share(*packets, all) * 100.0;
            let _ = writeln!(out, "{queue:5}  {packets:10}  {share:5.1} %");
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
        if let Some(line) = self.warning(shares) {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// What is wrong if one queue gets all packets, and what to do.
    fn warning(&self, shares: &Shares) -> Option<String> {
        if self.queues == 1 || shares.used() != 1 {
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
            self.queues
        ))
    }
}

/// The part of `all` packets that `packets` are.
fn share(packets: u64, all: u64) -> f64 {
    packets as f64 / all.max(1) as f64
}

fn document(profile: &str, shares: &Shares) -> Value {
    let all = shares.packets();
    let queues = shares.queues.iter().enumerate();
    let queues = queues.map(|(queue, packets)| {
        json!({ "queue": queue, "packets": packets, "share": share(*packets, all) })
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
        rss.text(&rss.card().unwrap().deal(&mut dry, rss.packets))
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
        assert!(four.card().unwrap_err().contains("--indirection"));
    }

    #[test]
    fn programs_get_the_same_figures() {
        let shares = Shares {
            queues: vec![3, 1],
            hashes: 2,
            unhashed: 1,
        };
        let document = document("bench", &shares);
        assert_eq!(
            (&document["packets"], &document["imbalance"]),
            (&json!(4), &json!(1.5))
        );
        assert_eq!(
            document["queues"][0],
            json!({ "queue": 0, "packets": 3, "share": 0.75 })
        );
    }
}
