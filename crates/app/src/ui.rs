//! `parshall ui`: the live page of a router, REST and metrics.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use web::{Options, Server};

use crate::load::Interrupt;
use crate::output;

/// Where the page is unless it is told: loopback, which only this machine reaches.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8411);
/// Time between checks for the end: nobody sees so short a delay.
const TICK: Duration = Duration::from_millis(50);

/// Serve a live page of the router, REST and Prometheus metrics, until Ctrl-C.
///
/// Whoever reaches the address sees interfaces, counters and history. What changes the router, and
/// its configuration with the secrets in it, needs the token in a file that only this user reads.
#[derive(Args)]
pub struct Ui {
    /// Address and port to listen on; port 0: any that is free. HTTP is not encrypted: beyond this
    /// machine, put a proxy with TLS before it, or come by `ssh -L`
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = LISTEN)]
    listen: SocketAddr,
    /// Control socket of the router, which need not run yet
    #[arg(long, value_name = "PATH", default_value = control::config::SOCKET)]
    socket: PathBuf,
    /// File to write the token to, anew at each start [default: ui-PORT.token beside the control
    /// socket]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Ui {
    /// Serves until a signal to end comes.
    ///
    /// # Errors
    /// The address is taken, or the token's file cannot be written.
    pub fn run(self) -> crate::Outcome {
        let interrupt = Interrupt::on_signal()?;
        let options = Options {
            listen: self.listen,
            socket: self.socket,
            token_file: self.token_file,
            program: std::env::current_exe()?,
        };
        let server = Server::start(options).map_err(|why| format!("ui: {why}"))?;
        if !self.listen.ip().is_loopback() {
            let address = server.address();
            output::tell(&format!(
                "parshall: anyone who can reach {address} sees the router's state, and HTTP is not encrypted\n"
            ));
        }
        output::print(&format!(
            "page at http://{}/, token for changes in {}\n",
            server.address(),
            server.token_file().display()
        ))?;
        while !interrupt.has_come() {
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}
