//! The rate syntax of `-m`: `1.48mpps`, `500kpps`, `10%`, `1gbps`, `1gbpsl1`, `5`, `max`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::model::load::Load;
use crate::model::units::{Bits, Pps};

/// A wanted rate of one port, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Times the profile's own rate.
    Multiplier(f64),
    /// Packets a second.
    Packets(Pps),
    /// Layer 2 bits a second: frames with their frame check sequence.
    L2(Bits),
    /// Layer 1 bits a second: frames, preamble and inter-frame gap.
    L1(Bits),
    /// Percent of the line rate on layer 1.
    Percent(f64),
    /// As fast as the port takes packets, or the line carries them if its rate is known.
    Max,
}

/// Reason why a rate cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RateError {
    /// The text is not a rate.
    #[error(
        "rate `{0}`: expected a number above 0 with [k|m|g]pps, [k|m|g]bps (layer 2), [k|m|g]bpsl1 (layer 1), % \
         (of line rate) or nothing (times the profile's rate), for example 1.48mpps, 1gbps, 10%; or max, as \
         fast as the port takes packets"
    )]
    Syntax(String),
    /// A percentage, but the port's speed is not known.
    #[error(
        "rate `{0}` is a share of the line rate, but the port has no known speed: set its speed or give a rate in pps or bps"
    )]
    NoLine(Rate),
    /// More than the line carries.
    #[error("rate `{rate}` is {wanted} on the wire and exceeds the port's line rate of {line}")]
    AboveLine {
        /// The rate as given.
        rate: Rate,
        /// The rate on layer 1.
        wanted: Bits,
        /// The port's line rate.
        line: Bits,
    },
    /// More than [`HIGHEST`].
    #[error("rate `{rate}` is {pps:.2}, more than any port sends: at most {HIGHEST:.0}")]
    TooHigh {
        /// The rate as given.
        rate: Rate,
        /// Rate that it comes to.
        pps: Pps,
    },
    /// Nothing in the profile follows the rate.
    #[error(
        "rate `{0}`: no rate changes what this profile sends: its streams measure latency and keep \
         their own rate, or its bursts are single packets with gaps of their own; leave the rate \
         at 1, or change the profile (a capture has the settings speedup and ipg_usec)"
    )]
    NotScalable(Rate),
    /// Less than what keeps its own rate.
    #[error(
        "rate `{rate}`: streams that measure latency keep their own rate, which alone is {fixed}"
    )]
    BelowFixed {
        /// The rate as given.
        rate: Rate,
        /// Rate of the streams that keep their own.
        fixed: Pps,
    },
}

/// The highest rate in packets a second: ten times what a port of 800 Gbit/s carries of the smallest
/// frames.
pub const HIGHEST: Pps = Pps(1e10);

/// Rates that differ by less, relatively, are the same.
const SAME: f64 = 1e-3;

impl FromStr for Rate {
    type Err = RateError;

    /// Reads the syntax of `-m`, in lower or upper case.
    fn from_str(text: &str) -> Result<Self, RateError> {
        parse(&text.trim().to_ascii_lowercase()).ok_or_else(|| RateError::Syntax(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Rate> {
    if text == "max" {
        return Some(Rate::Max);
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let value: f64 = number
        .parse()
        .ok()
        .filter(|&v| v > 0.0 && f64::is_finite(v))?;
    match unit {
        "" => return Some(Rate::Multiplier(value)),
        "%" => return Some(Rate::Percent(value)),
        _ => {}
    }
    let (scale, unit) = match unit.as_bytes()[0] {
        b'k' => (1e3, &unit[1..]),
        b'm' => (1e6, &unit[1..]),
        b'g' => (1e9, &unit[1..]),
        _ => (1.0, unit),
    };
    let value = Some(value * scale).filter(|v| v.is_finite())?;
    match unit {
        "pps" => Some(Rate::Packets(Pps(value))),
        "bps" => Some(Rate::L2(Bits(value))),
        "bpsl1" => Some(Rate::L1(Bits(value))),
        _ => None,
    }
}

impl fmt::Display for Rate {
    /// Text that reads back as the same rate, such as `1.48mpps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Multiplier(v) => write!(f, "{v}"),
            Self::Percent(v) => write!(f, "{v}%"),
            Self::Max => f.write_str("max"),
            Self::Packets(Pps(v)) => write!(f, "{}pps", scaled(v)),
            Self::L2(Bits(v)) => write!(f, "{}bps", scaled(v)),
            Self::L1(Bits(v)) => write!(f, "{}bpsl1", scaled(v)),
        }
    }
}

/// The number with the greatest prefix that leaves 1 or more, if it reads back as the same.
fn scaled(value: f64) -> String {
    let prefixes = [(1e9, "g"), (1e6, "m"), (1e3, "k")];
    let fits = |(scale, _): &(f64, &str)| value >= *scale && value / scale * scale == value;
    match prefixes.into_iter().find(fits) {
        Some((scale, prefix)) => format!("{}{prefix}", value / scale),
        None => value.to_string(),
    }
}

impl Rate {
    /// The rate in packets a second, [`Pps::UNLIMITED`] for [`Rate::Max`] of an unknown line, for a profile's `load` on a line of `line` bits a second on
    /// layer 1 (None: not known).
    ///
    /// # Errors
    /// [`RateError::NoLine`] for a percentage of an unknown line; [`RateError::AboveLine`] where a
    /// known line cannot carry the rate (beyond 0.01 %, as T-Rex has it);
    /// [`RateError::TooHigh`] beyond any line; [`RateError::NotScalable`] and
    /// [`RateError::BelowFixed`] where the profile cannot be sent at it.
    pub fn resolve(self, load: &Load, line: Option<Bits>) -> Result<Pps, RateError> {
        let pps = match self {
            Self::Multiplier(v) => load.pps(v),
            Self::Packets(pps) => pps,
            Self::L2(bits) => load.l2_pps(bits),
            Self::L1(bits) => load.l1_pps(bits),
            Self::Max => match line {
                Some(line) => load.l1_pps(line),
                None if load.is_scalable => return Ok(Pps::UNLIMITED),
                None => return Err(RateError::NotScalable(self)),
            },
            Self::Percent(v) => {
                let line = line.ok_or(RateError::NoLine(self))?;
                load.l1_pps(Bits(line.0 * v / 100.0))
            }
        };
        if pps > HIGHEST {
            return Err(RateError::TooHigh { rate: self, pps });
        }
        let is_own = (pps.0 / load.base.0 - 1.0).abs() <= SAME;
        if !load.is_scalable && !is_own {
            return Err(RateError::NotScalable(self));
        }
        if pps.0 < load.fixed.0 * (1.0 - SAME) {
            let (rate, fixed) = (self, load.fixed);
            return Err(RateError::BelowFixed { rate, fixed });
        }
        let wanted = load.l1(pps);
        match line {
            Some(line) if wanted.0 > line.0 * 1.0001 => Err(RateError::AboveLine {
                rate: self,
                wanted,
                line,
            }),
            _ => Ok(pps),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> Load {
        Load::steady(1.0, 0.0, true, 64.0)
    }

    fn pps(text: &str, line: Option<Bits>) -> Result<f64, RateError> {
        text.parse::<Rate>()?.resolve(&small(), line).map(|p| p.0)
    }

    #[test]
    fn every_form() {
        let line = Some(Bits(1e10));
        assert_eq!(pps("1.48mpps", line), Ok(1_480_000.0));
        assert_eq!(pps("500kpps", line), Ok(500_000.0));
        assert_eq!(pps("1000pps", line), Ok(1000.0));
        assert_eq!(pps("5", line), Ok(5.0));
        assert_eq!(pps("10%", line).map(f64::floor), Ok(1_488_095.0));
        assert_eq!(pps("1gbpsl1", line).map(f64::floor), Ok(1_488_095.0));
        assert_eq!(pps("1Gbps", line), Ok(1_953_125.0));
        assert_eq!(pps("100mbps", None), Ok(195_312.5));
        assert_eq!(pps("512bps", None), Ok(1.0));
    }

    #[test]
    fn printed_as_people_write_them() {
        for text in [
            "11gbpsl1", "1.48mpps", "500kpps", "999pps", "1.5kbps", "5", "10%", "max",
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    /// What a line carries, where it is known; else there is no limit.
    #[test]
    fn max_is_what_the_port_takes() {
        assert_eq!(pps("max", None), Ok(f64::INFINITY));
        let line = Some(Bits(1e10));
        assert_eq!(pps("MAX", line), pps("100%", line));
        let mut fixed = small();
        fixed.is_scalable = false;
        let refused = Rate::Max.resolve(&fixed, None);
        assert_eq!(refused, Err(RateError::NotScalable(Rate::Max)));
    }

    /// The known figure of the imix profile: 10 Gbit/s on the line is 68,201 times its own rate.
    #[test]
    fn imix_at_line_rate() {
        let size = (28.0 * 64.0 + 16.0 * 594.0 + 4.0 * 1518.0) / 48.0;
        let load = Load::steady(48.0, 0.0, true, size);
        let pps = Rate::Percent(100.0)
            .resolve(&load, Some(Bits(1e10)))
            .unwrap();
        assert_eq!((pps.0 / 48.0).floor(), 68_201.0);
    }

    #[test]
    fn refused() {
        for text in [
            "", "pps", "-1pps", "+5", "1e6pps", "0", "0pps", "1..2", ".", "1kk", "1tpps",
            "1 pps x", "%", "5%%", "inf", "nan", "1µpps",
        ] {
            assert!(
                matches!(text.parse::<Rate>(), Err(RateError::Syntax(_))),
                "{text}"
            );
        }
        assert!(matches!(
            "9".repeat(400).parse::<Rate>(),
            Err(RateError::Syntax(_))
        ));
        let text = "5x".parse::<Rate>().unwrap_err().to_string();
        assert!(text.contains("5x") && text.contains("1.48mpps"), "{text}");
        assert!(matches!(pps("10%", None), Err(RateError::NoLine(_))));
        assert!(matches!(
            pps("2mpps", Some(Bits(1e9))),
            Err(RateError::AboveLine { .. })
        ));
        assert!(pps("1gbpsl1", Some(Bits(1e9))).is_ok());
    }

    /// A rate that the profile cannot be sent at is not taken for one that it is.
    #[test]
    fn what_keeps_its_own_rate_is_sent_at_no_other() {
        let of = |text: &str, fixed: f64, is_scalable: bool| {
            let load = Load::steady(1000.0, fixed, is_scalable, 64.0);
            let rate = text.parse::<Rate>().unwrap();
            rate.resolve(&load, Some(Bits(1e9))).map(|pps| pps.0)
        };
        for fixed in [0.0, 1000.0] {
            for text in ["1mpps", "999.5pps", "100%", "2", "0.5", "1gbps"] {
                let right = match (text, fixed) {
                    ("2" | "0.5", 1000.0) => Ok(1000.0),
                    ("999.5pps", _) => Ok(999.5),
                    _ => Err(RateError::NotScalable(text.parse().unwrap())),
                };
                assert_eq!(of(text, fixed, false), right, "{text} {fixed}");
            }
            assert_eq!(of("1", fixed, false), Ok(1000.0));
        }
        assert_eq!(of("301pps", 300.0, true), Ok(301.0));
        let (rate, fixed) = ("200pps".parse().unwrap(), Pps(300.0));
        let below = Err(RateError::BelowFixed { rate, fixed });
        assert_eq!(of("200pps", 300.0, true), below);
    }

    #[test]
    fn what_no_port_sends_is_refused() {
        let of = |text: &str| text.parse::<Rate>().unwrap().resolve(&small(), None);
        for text in ["100000gpps", "10.1gpps", "99999999999", "99999gbps"] {
            let why = of(text).unwrap_err();
            assert!(matches!(why, RateError::TooHigh { .. }), "{text}: {why}");
        }
        assert_eq!(of("10gpps"), Ok(HIGHEST));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            match text.parse::<Rate>() {
                Ok(rate) => prop_assert_eq!(rate.to_string().parse(), Ok(rate)),
                Err(error) => prop_assert!(error.to_string().contains(&text)),
            }
        }

        #[test]
        fn printed_rates_read_back(value in 1e-3..1e12f64, form in 0..5usize) {
            let rate = [Rate::Multiplier(value), Rate::Percent(value), Rate::Packets(Pps(value)), Rate::L2(Bits(value)), Rate::L1(Bits(value))][form];
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
    }
}
