//! The words and their options.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A line.
#[derive(Parser, Debug)]
#[command(
    name = "",
    multicall = true,
    disable_help_flag = true,
    max_term_width = 100
)]
pub struct Line {
    #[command(subcommand)]
    pub word: Word,
}

/// A word.
#[derive(Subcommand, Debug)]
pub enum Word {
    /// Replace the streams of ports by a profile's, and send them
    Start(Start),
    /// Change the rate of ports; those that send, unless others are named
    Update {
        /// Rate, or max, as fast as the port takes packets; with + or - behind a rate, so much more or
        /// less
        #[arg(short, allow_hyphen_values = true)]
        mult: String,
        #[command(flatten)]
        ports: Ports,
    },
    /// Stop ports for a while; all that send, unless some are named
    Pause(Ports),
    /// Let ports go on that pause; all of them, unless some are named
    Resume(Ports),
    /// Stop ports; all that send or pause, unless some are named
    Stop(Ports),
    /// Show counters since the start or the last `clear`
    Stats {
        #[command(flatten)]
        what: What,
    },
    /// List the streams of ports
    Streams(Ports),
    /// List ports and what they do
    Ports,
    /// Count from 0 again
    Clear(Ports),
    /// Stop ports, take them by force, remove their streams
    Reset(Ports),
    /// Take ports, so that they can be changed
    Acquire {
        /// Also if somebody else has them
        #[arg(short, long)]
        force: bool,
        #[command(flatten)]
        ports: Ports,
    },
    /// Give ports back
    Release(Ports),
    /// Show attributes of ports, or set one
    Portattr {
        #[command(flatten)]
        ports: Ports,
        /// Promiscuous mode
        #[arg(long, value_name = "on|off")]
        prom: Option<Switch>,
        /// Multicast mode
        #[arg(long, value_name = "on|off")]
        mult: Option<Switch>,
    },
    /// Say nothing of what succeeds, or say it
    Quiet { switch: Option<Switch> },
    /// List the lines so far
    History,
    /// Leave; what sends is stopped
    #[command(alias = "exit", alias = "q")]
    Quit,
}

/// What to send, and how.
#[derive(Args, Debug)]
pub struct Start {
    /// Profile: a built-in name or a file (.py, .json, .yaml, .pcap)
    #[arg(short, value_name = "FILE")]
    pub file: String,
    /// Rate: times the profile's, %, pps, bps, bpsl1
    #[arg(short, default_value = "1", allow_hyphen_values = true)]
    pub mult: String,
    /// A setting of the profile, such as size=64; several are separated by commas
    #[arg(short, value_name = "KEY=VALUE")]
    pub tunables: Vec<String>,
    /// Seconds [default: until they are stopped, or the profile ends]
    #[arg(short, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Stop ports that send before
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub ports: Ports,
}

/// Numbers of ports.
#[derive(Args, Debug, Clone, Default)]
pub struct Ports {
    /// Numbers of ports [default: those that are acquired, and of update, pause, resume and stop
    /// those of them that it is about]
    #[arg(short, long, num_args = 1.., value_delimiter = ',', value_name = "N")]
    pub ports: Vec<usize>,
}

/// Which counters.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct What {
    /// Of ports, which is the default
    #[arg(short)]
    pub ports: bool,
    /// Of packet groups
    #[arg(short)]
    pub streams: bool,
    /// Latency of packet groups
    #[arg(short)]
    pub latency: bool,
    /// Counters of the device
    #[arg(short)]
    pub xstats: bool,
}

/// On or off.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("expected seconds above 0".to_owned()),
    }
}
