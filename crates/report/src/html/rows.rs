//! The rows of the result table: the runs of several rounds together.

use crate::model::Run;
use crate::setup::{Dut, Flows, Io, Lane, Load, Placement, Spread, Word};
use crate::stats::Summary;

/// A load test, the same for every device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    profile: String,
    load: Load,
}

/// A device under test, and how it is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub dut: Word<Dut>,
    pub io: Word<Io>,
    pub lane: Word<Lane>,
    pub spread: Option<Spread>,
    pub placement: Option<Placement>,
    pub is_disturbed: bool,
}

/// All rounds of one device under one load test.
pub(crate) struct Row<'a> {
    pub test: Test,
    pub device: Device,
    pub runs: Vec<&'a Run>,
}

impl Test {
    fn of(run: &Run) -> Self {
        Self {
            profile: run.profile.clone(),
            load: run.load,
        }
    }

    /// Short text in the words of the published tables, such as `one way, 64 B many flows`.
    pub fn label(&self) -> String {
        let Load {
            size,
            flows,
            direction,
            ..
        } = self.load;
        let flows = match flows {
            Flows::Many => "many flows",
            Flows::One => "one flow",
        };
        let profile = match self.profile.as_str() {
            "" | "bench" => String::new(),
            profile if profile == size.to_string() => String::new(),
            profile => format!(" ({profile})"),
        };
        let (frames, routes) = (self.load.frames(), self.load.spread());
        let forwarding = self.load.forwarding.in_words();
        format!("{direction}, {frames} {flows}{routes}{forwarding}{profile}")
    }
}

impl Device {
    fn of(run: &Run) -> Self {
        Self {
            dut: run.dut.clone(),
            io: run.io.clone(),
            lane: run.lane.clone(),
            spread: run.spread,
            placement: run.placement,
            is_disturbed: run.disturbed().is_some(),
        }
    }

    /// Short text, such as `parshall, memif, userspace, two CPUs far`.
    pub fn label(&self) -> String {
        let (dut, lane) = (self.dut.to_string(), self.lane.to_string());
        let mut label = format!("{dut}, {}", self.io);
        if lane != dut && !lane.is_empty() {
            label = format!("{label}, {lane}");
        }
        label = match (self.spread, self.placement) {
            (None, _) => label,
            (Some(Spread::Shared), _) => label + ", one CPU",
            (Some(Spread::Apart), None) => label + ", two CPUs",
            (Some(Spread::Apart), Some(placement)) => format!("{label}, two CPUs {placement}"),
        };
        match (self.is_disturbed, self.placement) {
            (true, Some(Placement::Flipped)) | (false, _) => label,
            (true, _) => label + ", disturbed",
        }
    }
}

/// One row for each load test and device, grouped by load test, both in the order in which they
/// first ran.
pub(crate) fn rows(runs: &[Run]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for run in runs {
        let (test, device) = (Test::of(run), Device::of(run));
        match rows
            .iter_mut()
            .find(|r| r.test == test && r.device == device)
        {
            Some(row) => row.runs.push(run),
            None => rows.push(Row {
                test,
                device,
                runs: vec![run],
            }),
        }
    }
    let mut tests: Vec<Test> = Vec::new();
    for row in &rows {
        if !tests.contains(&row.test) {
            tests.push(row.test.clone());
        }
    }
    rows.sort_by_key(|row| tests.iter().position(|t| *t == row.test));
    rows
}

impl Row<'_> {
    /// Rounds that have a result.
    pub fn valid(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().copied().filter(|r| r.valid)
    }

    /// Summary of a figure over the rounds that have a result.
    pub fn summary(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Summary> {
        Summary::of(self.valid().filter_map(of).collect())
    }

    /// The remarks of all rounds, each once.
    pub fn remarks(&self) -> Vec<&str> {
        let mut remarks: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !run.why.is_empty() && !remarks.contains(&run.why.as_str()) {
                remarks.push(&run.why);
            }
        }
        remarks
    }
}
