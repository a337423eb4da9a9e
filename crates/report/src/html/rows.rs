//! The result table: runs of several rounds brought together.

use crate::model::{Direction, Flows, Placement, Run, Spread};
use crate::stats::Summary;

/// What is measured, the same for every device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    profile: String,
    size: String,
    flows: Flows,
    direction: Direction,
}

/// Who is measured, and how it is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub dut: String,
    pub io: String,
    pub lane: String,
    pub spread: Spread,
    pub placement: Option<Placement>,
}

/// All rounds of one device under one load test.
pub(super) struct Row<'a> {
    pub test: Test,
    pub device: Device,
    pub runs: Vec<&'a Run>,
}

impl Test {
    fn of(run: &Run) -> Test {
        let Run {
            profile,
            size,
            flows,
            direction,
            ..
        } = run.clone();
        Test {
            profile,
            size,
            flows,
            direction,
        }
    }

    /// Short text in the words of the published tables, as `one way, 64 B many flows`.
    pub fn label(&self) -> String {
        let way = match self.direction {
            Direction::OneWay => "one way",
            Direction::BothWays => "both ways",
        };
        let size = if self.size.parse::<u32>().is_ok() {
            format!("{} B", self.size)
        } else {
            self.size.clone()
        };
        let flows = match self.flows {
            Flows::Many => "many flows",
            Flows::One => "one flow",
        };
        let profile =
            if self.profile.is_empty() || self.profile == "bench" || self.profile == self.size {
                String::new()
            } else {
                format!(" ({})", self.profile)
            };
        format!("{way}, {size} {flows}{profile}")
    }
}

impl Device {
    fn of(run: &Run) -> Device {
        let Run {
            dut,
            io,
            lane,
            spread,
            placement,
            ..
        } = run.clone();
        Device {
            dut,
            io,
            lane,
            spread,
            placement,
        }
    }

    /// Short text, as `parshall, memif, userspace, far`.
    pub fn label(&self) -> String {
        let mut label = format!("{}, {}", self.dut, self.io);
        if self.lane != self.dut && !self.lane.is_empty() {
            label = format!("{label}, {}", self.lane);
        }
        match self.spread {
            Spread::Shared => label += ", one CPU",
            Spread::Apart => {
                label += &format!(
                    ", two CPUs{}",
                    self.placement
                        .map_or(String::new(), |p| format!(" {}", word(p)))
                )
            }
        }
        label
    }
}

/// `near`, `far` or `flipped`.
pub(super) fn word(placement: Placement) -> &'static str {
    match placement {
        Placement::Near => "near",
        Placement::Far => "far",
        Placement::Flipped => "flipped",
    }
}

/// One row for each load test and device, load tests together, both in the order in which they first ran.
pub(super) fn rows(runs: &[Run]) -> Vec<Row<'_>> {
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
        Summary::of(&self.valid().filter_map(of).collect::<Vec<_>>())
    }

    /// Remarks of all rounds, each once.
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
