//! `parshall show|trace|clear ...`, `explain`, `confirm`, `history` and `dump`: asks the running router.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;

use control::api::{Client, Output, Request};
use wire::pcap;

use crate::output;

/// The router to ask, and the form of its answer.
#[derive(Args)]
pub struct Router {
    /// Control socket of the router
    #[arg(long, value_name = "PATH", default_value = control::config::SOCKET)]
    socket: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Router {
    /// Asks, and prints the answer.
    pub fn ask(&self, request: Request) -> crate::Outcome {
        let request = Request {
            json: self.json,
            ..request
        };
        match Client::connect(&self.socket)?.ask(&request)? {
            Output::Text(text) => output::print(&text),
            Output::Json(json) => output::print(&output::json(&json)?),
        }
    }

    /// Asks with a command's words, and prints the answer.
    fn command(&self, verb: &str, words: impl IntoIterator<Item = String>) -> crate::Outcome {
        let mut command = vec![verb.to_owned()];
        command.extend(words);
        // The router would not understand it either: say so without asking.
        control::cli::parse(&command)?;
        self.ask(Request {
            command,
            ..Request::default()
        })
    }
}

/// Words of a command to the running router.
#[derive(Args)]
pub struct Ask {
    /// The command's further words; any unique beginning of a word is enough
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    #[command(flatten)]
    router: Router,
}

impl Ask {
    /// Asks, and prints the answer.
    pub fn run(self, verb: &str) -> crate::Outcome {
        self.router.command(verb, self.words)
    }
}

/// A packet in words.
#[derive(Args)]
#[command(after_help = PACKET)]
pub struct Explain {
    /// The packet: pairs of a word and its value; any unique beginning of a word is enough
    #[arg(value_name = "PACKET")]
    words: Vec<String>,
    #[command(flatten)]
    router: Router,
}

/// The words of a packet, for the help.
const PACKET: &str = "\
A packet:
  interface NAME [family ipv4|ipv6] source ADDRESS destination ADDRESS [protocol NAME|N]
    [source-port N] [destination-port N] [icmp-type N] [icmp-code N] [tcp-flags syn,ack]
    [length BYTES] [ttl N] [vlan N[,N]] [source-mac MAC] [destination-mac MAC]
  interface NAME hex BYTES             a whole frame, without its checksum
  interface NAME pcap FILE [frame N]   frame N of a capture, from 1 [default: 1]";

impl Explain {
    /// Asks, and prints the answer.
    pub fn run(self) -> crate::Outcome {
        self.router.command("explain", with_frame(self.words)?)
    }
}

/// The words, with the bytes of a frame in place of the capture that it is in: the router opens no
/// files for those who ask.
fn with_frame(words: Vec<String>) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let (mut file, mut number, mut others) = (None, None, Vec::new());
    for pair in words.chunks(2) {
        match pair {
            [word, value] if word == "pcap" => file = Some(value.clone()),
            [word, value] if word == "frame" => number = Some(value.clone()),
            _ => others.extend_from_slice(pair),
        }
    }
    let Some(file) = file else {
        return Ok(words);
    };
    let number = number.unwrap_or_else(|| "1".to_owned());
    let wrong = || format!("explain: frame: `{number}` is not a number from 1");
    let at = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let at = at.ok_or_else(wrong)?;
    let in_file = |why: String| format!("explain: {file}: {why}");
    let open = File::open(&file).map_err(|e| in_file(e.to_string()))?;
    let mut capture =
        pcap::Reader::new(BufReader::new(open)).map_err(|e| in_file(e.to_string()))?;
    if capture.link_type() != pcap::ETHERNET {
        return Err(in_file("its frames are not of Ethernet".to_owned()).into());
    }
    let frame = capture
        .nth(at)
        .ok_or_else(|| in_file(format!("it has no frame {number}")))?;
    let frame = frame.map_err(|e| in_file(e.to_string()))?;
    if frame.bytes.len() < frame.wire_len as usize {
        return Err(in_file(format!("frame {number} is not whole")).into());
    }
    let hex = frame.bytes.iter().map(|byte| format!("{byte:02x}"));
    others.extend(["hex".to_owned(), hex.collect()]);
    Ok(others)
}

/// A command without further words.
#[derive(Args)]
pub struct Alone {
    #[command(flatten)]
    router: Router,
}

impl Alone {
    /// Asks, and prints the answer.
    pub fn run(self, verb: &str) -> crate::Outcome {
        self.router.command(verb, [])
    }
}

/// The history of configurations.
#[derive(Args)]
pub struct History {
    /// Number of the one whose changes are shown [default: all are listed]
    #[arg(value_name = "N")]
    number: Option<u32>,
    #[command(flatten)]
    router: Router,
}

impl History {
    /// Asks, and prints the answer.
    pub fn run(self) -> crate::Outcome {
        let number = self.number.map(|number| number.to_string());
        self.router.command("history", number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_frame_of_a_capture_stands_for_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("in.pcap");
        let mut writer = pcap::Writer::new(File::create(&path).unwrap(), pcap::ETHERNET).unwrap();
        for (length, bytes) in [(2, [1, 2]), (2, [0xab, 0]), (9, [5, 6])] {
            writer.write(0, length, &bytes).unwrap();
        }
        writer.flush().unwrap();
        let asked = |rest: &str| {
            let line = format!("interface eth1 pcap {}{rest}", path.display());
            with_frame(words(&line)).map_err(|e| e.to_string())
        };
        assert_eq!(asked("").unwrap(), words("interface eth1 hex 0102"));
        assert_eq!(asked(" frame 2").unwrap(), words("interface eth1 hex ab00"));
        for (rest, why) in [
            (" frame 0", "`0` is not a number from 1"),
            (" frame 3", "frame 3 is not whole"),
            (" frame 4", "it has no frame 4"),
        ] {
            assert!(asked(rest).unwrap_err().contains(why), "{rest}");
        }
        let absent = with_frame(words("interface e pcap /nowhere")).unwrap_err();
        assert!(absent.to_string().contains("/nowhere: No such file"));
        let others = words("interface e source ::1 destination ::2 frame");
        assert_eq!(with_frame(others.clone()).unwrap(), others);
    }
}
