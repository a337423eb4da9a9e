//! The ports of a load test, and its directions.

use clap::{Args, ValueEnum};

use session::Spec;

/// Ports to send by and to receive by.
#[derive(Args, Debug)]
pub struct Pairs {
    /// Port to send by, once for each direction
    #[arg(long, value_name = "PORT", required = true)]
    tx: Vec<Spec>,
    /// Port that receives the direction of the --tx before it
    #[arg(long, value_name = "PORT", required = true)]
    rx: Vec<Spec>,
    /// Number of directions; both-ways with one pair of ports also sends from the second to the
    /// first
    #[arg(long, value_enum)]
    direction: Option<Direction>,
}

/// One way or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    OneWay,
    BothWays,
}

impl Pairs {
    /// The port to send by and the one to receive by of each direction.
    ///
    /// # Errors
    /// The numbers of ports do not fit.
    pub fn pairs(&self) -> Result<Vec<(Spec, Spec)>, String> {
        let (tx, rx) = (self.tx.len(), self.rx.len());
        if tx != rx || tx > 2 {
            return Err(format!(
                "{tx} --tx and {rx} --rx: expected one pair of them, or two pairs for both ways"
            ));
        }
        let mut pairs: Vec<(Spec, Spec)> = self.tx.iter().cloned().zip(self.rx.clone()).collect();
        match (self.direction, pairs.len()) {
            (Some(Direction::OneWay), 2) => {
                return Err("--direction one-way, but there are two pairs of --tx and --rx".into());
            }
            (Some(Direction::BothWays), 1) => {
                let back = (pairs[0].1.reversed(), pairs[0].0.reversed());
                pairs.push(back);
            }
            _ => {}
        }
        Ok(pairs)
    }
}
