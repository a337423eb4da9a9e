//! `parshall top`: a live view on the terminal.

use std::path::PathBuf;

use clap::Args;
use terminal::top::{self, Subject};

use crate::load::Interrupt;

/// Show a live view of the running router on the terminal: interfaces, drops, workers, nodes.
///
/// `?` says which keys there are, `q` leaves. Or, with --trex, of a load tester that serves T-Rex's
/// clients: ports, streams, latency. `c` counts from then on in this view only. Without a terminal,
/// use `parshall show`.
#[derive(Args)]
pub struct Top {
    /// Control socket of the router, which need not run yet
    #[arg(long, value_name = "PATH", default_value = control::config::SOCKET)]
    socket: PathBuf,
    /// Show the load tester whose requests come here, such as 127.0.0.1:4501 of `parshall
    /// trex-server`
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "socket", value_parser = host_and_port)]
    trex: Option<String>,
}

/// An address as it is, if it has both parts.
fn host_and_port(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':');
    match parts.filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        Some(_) => Ok(text.to_owned()),
        None => Err("expected HOST:PORT, such as 127.0.0.1:4501".to_owned()),
    }
}

impl Top {
    /// Shows it until a key or a signal ends it.
    ///
    /// # Errors
    /// There is no terminal.
    pub fn run(self) -> crate::Outcome {
        let interrupt = Interrupt::on_signal()?;
        let subject = match self.trex {
            Some(address) => Subject::Tester(address),
            None => Subject::Router(self.socket),
        };
        Ok(top::run(&subject, &interrupt.flag())?)
    }
}
