//! Starts, changes and stops what a port sends.

use std::time::Duration;

use loadgen::model::load::Load;
use loadgen::model::rate::Rate;
use loadgen::model::stream::Mode;
use loadgen::model::units::{Bits, Pps, WIRE_OVERHEAD};
use serde::Deserialize;
use serde_json::{Value, json};
use session::LinkState;

use super::{Call, server};
use crate::events::Event;
use crate::rpc::Refusal;
use crate::state::State;

/// A rate as clients write it.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Multiplier {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    op: Op,
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Raw,
    Percentage,
    Pps,
    Bps,
    BpsL1,
    /// Of ours: as fast as the port takes packets. Its value is of no meaning.
    Max,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    #[default]
    Abs,
    Add,
    Sub,
}

impl Multiplier {
    fn rate(self) -> Result<Rate, Refusal> {
        let value = self.value;
        if value <= 0.0 || !value.is_finite() {
            let why = format!("mul: {value} is no rate: it has to be above 0");
            return Err(Refusal::Params(why));
        }
        Ok(match self.kind {
            Kind::Raw => Rate::Multiplier(value),
            Kind::Percentage => Rate::Percent(value),
            Kind::Pps => Rate::Packets(Pps(value)),
            Kind::Bps => Rate::L2(Bits(value)),
            Kind::BpsL1 => Rate::L1(Bits(value)),
            Kind::Max => Rate::Max,
        })
    }

    /// The rate that it makes of the one before.
    fn change(self, load: &Load, before: Pps, line: Option<Bits>) -> Result<Rate, Refusal> {
        let by = self.rate()?;
        let sign = match self.op {
            Op::Abs => return Ok(by),
            Op::Add => 1.0,
            Op::Sub => -1.0,
        };
        if self.kind == Kind::Max {
            let why = "mul: max is a rate, not a change; leave out the + or -";
            return Err(Refusal::Params(why.to_owned()));
        }
        if !before.is_limited() {
            let why =
                "mul: the port sends as fast as it can, which has no rate to change; give one";
            return Err(Refusal::Failed(why.to_owned()));
        }
        let factor = load.factor(before);
        let after = match self.kind {
            // Of what is sent now, not of the line.
            Kind::Percentage => Rate::Multiplier(factor * (1.0 + sign * self.value / 100.0)),
            Kind::Raw => Rate::Multiplier(factor + sign * self.value),
            Kind::Pps | Kind::Bps | Kind::BpsL1 | Kind::Max => {
                let by = by.resolve(load, line);
                let by = by.map_err(|why| Refusal::Failed(why.to_string()))?;
                Rate::Packets(Pps(before.0 + sign * by.0))
            }
        };
        match after {
            Rate::Multiplier(left) | Rate::Packets(Pps(left)) if left <= 0.0 => Err(
                Refusal::Failed("mul: nothing would be left of the rate; pause or stop".to_owned()),
            ),
            after => Ok(after),
        }
    }
}

#[derive(Deserialize)]
struct Start {
    mul: Multiplier,
    #[serde(default = "endless")]
    duration: f64,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    start_at_ts: f64,
    /// Any: threads are bound to processors when the server starts.
    #[serde(default)]
    #[expect(dead_code, reason = "it is only to be a number")]
    core_mask: Option<u64>,
}

fn endless() -> f64 {
    -1.0
}

pub fn start(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let start: Start = call.read()?;
    let port = call.port;
    if start.start_at_ts != 0.0 {
        let why = "start_at_ts: ports start at once; there is no start at a time";
        return Err(Refusal::Failed(why.to_owned()));
    }
    if start.mul.op != Op::Abs {
        return Err(Refusal::Params("mul: a start has op abs".to_owned()));
    }
    let rate = start.mul.rate()?;
    let duration = match start.duration {
        -1.0 => None,
        seconds => {
            let duration = Duration::try_from_secs_f64(seconds).ok();
            let duration = duration.filter(|duration| !duration.is_zero());
            let wrong =
                || Refusal::Params("duration: seconds above 0, or -1 for no end".to_owned());
            Some(duration.ok_or_else(wrong)?)
        }
    };
    check_link(state, port, start.force)?;
    if state.activity(port).runs() {
        match start.force {
            true => stop(state, call).map(drop)?,
            false => return Err(session::Error::Running(port).into()),
        }
    }
    let line = state.ports[port].facts.line;
    let set = state.set(port)?;
    let resolved = rate.resolve(&set.load, line);
    let resolved = resolved.map_err(|source| session::Error::Rate { port, source })?;
    set.rate = resolved;
    let multiplier = set.load.factor(resolved);
    let key = state.key(port);
    state.session.start(port, &key, rate, duration)?;
    state.ports[port].runs = true;
    state.tell_of_port(Event::Started, port);
    state.tell_of_port(Event::ProfileStarted, port);
    Ok(json!({"multiplier": multiplier, "ts": server::now()}))
}

/// Nothing is sent by a device that is gone, and by one that is down only by force.
fn check_link(state: &State, port: usize, force: bool) -> Result<(), Refusal> {
    let this = &state.ports[port];
    let fault = this.facts.link.as_ref().and_then(session::Link::fault);
    let advice = match this.link_state() {
        LinkState::Gone => "start the load tester anew when it is back",
        LinkState::Down if !force => "set it up first, or start by force",
        LinkState::Down | LinkState::Up => return Ok(()),
    };
    let fault = fault.unwrap_or_default();
    Err(Refusal::Failed(format!("port {port}: {fault}; {advice}")))
}

/// Also where nothing runs: clients stop to be sure.
pub fn stop(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let (port, key) = (call.port, state.key(call.port));
    state.watch();
    state.session.stop(port, &key)?;
    if std::mem::take(&mut state.ports[port].runs) {
        state.tell_of_port(Event::Stopped, port);
        state.tell_of_port(Event::ProfileStopped, port);
    }
    Ok(json!({}))
}

pub fn pause(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let (port, key) = (call.port, state.key(call.port));
    state.session.pause(port, &key)?;
    state.tell_of_port(Event::Paused, port);
    state.tell_of_port(Event::ProfilePaused, port);
    Ok(json!({}))
}

pub fn resume(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let (port, key) = (call.port, state.key(call.port));
    state.session.resume(port, &key)?;
    state.tell_of_port(Event::Resumed, port);
    state.tell_of_port(Event::ProfileResumed, port);
    Ok(json!({}))
}

#[derive(Deserialize)]
struct Update {
    mul: Multiplier,
}

pub fn update(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let Update { mul } = call.read()?;
    let (port, key) = (call.port, state.key(call.port));
    if !state.activity(port).runs() {
        return Err(session::Error::NotRunning(port).into());
    }
    let this = &mut state.ports[port];
    let line = this.facts.line;
    let set = this.set.as_mut();
    let set = set.ok_or(session::Error::NotRunning(port))?;
    let rate = mul.change(&set.load, set.rate, line)?;
    let resolved = rate.resolve(&set.load, line);
    let resolved = resolved.map_err(|source| session::Error::Rate { port, source })?;
    state.session.update(port, &key, rate)?;
    set.rate = resolved;
    Ok(json!({"multiplier": set.load.factor(resolved)}))
}

/// What a profile comes to at multiplier 1. When it ends is not worked out.
pub fn validate(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let line = state.ports[call.port].facts.line;
    let set = state.set(call.port)?;
    let rate = |pps: Pps| {
        let l1 = set.load.l1(pps).0;
        let share = line.map_or(0.0, |line| l1 / line.0 * 100.0);
        (l1, l1 - pps.0 * WIRE_OVERHEAD * 8.0, share)
    };
    let (max_l1, max_l2, max_share) = rate(set.load.base);
    let (min_l1, min_l2, min_share) = rate(set.load.fixed);
    let ends = |(stream, _): &(loadgen::model::stream::Stream, Pps)| {
        stream.mode != Mode::Continuous && stream.next.is_none()
    };
    let duration = match set.streams.iter().all(ends) {
        true => set
            .streams
            .iter()
            .map(|(s, pps)| length(s.mode, s.isg, *pps))
            .fold(0.0, f64::max),
        false => -1.0,
    };
    Ok(json!({
        "rate": {
            "max_bps_l1": max_l1, "max_bps_l2": max_l2,
            "max_pps": set.load.base.0, "max_line_util": max_share,
            "min_bps_l1": min_l1, "min_bps_l2": min_l2,
            "min_pps": set.load.fixed.0, "min_line_util": min_share,
        },
        "graph": {"expected_duration": duration, "events_count": 0, "events": []},
    }))
}

/// How long a stream sends, in microseconds.
fn length(mode: Mode, isg: f64, pps: Pps) -> f64 {
    let packets = |packets: u64| packets as f64 / pps.0 * 1e6;
    isg + match mode {
        Mode::Continuous => f64::INFINITY,
        Mode::SingleBurst { packets: n } => packets(n),
        Mode::MultiBurst {
            packets: n,
            bursts,
            ibg,
        } => bursts as f64 * (packets(n) + ibg) - ibg,
    }
}
