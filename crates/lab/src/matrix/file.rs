//! The file of a matrix: what it says, and the configurations that follow from it.

use std::time::Duration;

use indexmap::IndexMap;
use report::matrix::{Axis, combinations};
use report::setup::{Direction, Dut, Family, Flows, Forwarding, Io, Load, Size};
use sandbox::Error;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value};

use serde_saphyr::Spanned;

use super::command::Command;
use crate::compare::{Case, device};
use crate::script::Script;

/// A scalar of YAML as text: a word or a number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
struct Text(String);

/// A scalar, and its line.
type Scalar = Spanned<Text>;

/// The file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    title: String,
    axes: IndexMap<String, Vec<Text>>,
    along: Option<Spanned<String>>,
    rounds: Option<Spanned<u32>>,
    device: Scalar,
    io: Option<Scalar>,
    size: Option<Scalar>,
    flows: Option<Scalar>,
    direction: Option<Scalar>,
    family: Option<Scalar>,
    forwarding: Option<Scalar>,
    routes: Option<Scalar>,
    budget: Option<Scalar>,
    router: Option<Scalar>,
    prepare: Option<Spanned<String>>,
    measure: Option<Spanned<String>>,
    teardown: Option<Spanned<String>>,
    figure: Option<Scalar>,
    unit: Option<Scalar>,
    limit: Option<Scalar>,
    warm_up: Option<Scalar>,
}

/// Most configurations of a matrix: at the shortest run there is, a week of five runs of each.
const MOST: usize = 10_000;

/// Runs of each configuration where the file says nothing.
const ROUNDS: u32 = 5;

/// A matrix to be measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is asked, in a few words.
    pub title: String,
    /// The axes, in the order of the file.
    pub axes: Vec<Axis>,
    /// Name of the axis that curves run along.
    pub along: String,
    /// Unit of the figures.
    pub unit: String,
    /// Runs that each configuration is to have.
    pub rounds: u32,
    /// All configurations.
    pub configurations: Vec<Configuration>,
    /// Names of axes that nothing in the file refers to.
    pub unused: Vec<String>,
}

/// One configuration.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// A value of each axis, in their order.
    pub at: Vec<String>,
    /// What is measured.
    pub device: Device,
}

/// A device under test.
#[derive(Debug, Clone)]
pub enum Device {
    /// One that the laboratory sets up.
    Lab(Case),
    /// One that commands set up and measure.
    Command(Command),
}

impl Plan {
    /// Reads the text of the file called `name`. Commands have the path `parshall` in the variable
    /// `PARSHALL`.
    ///
    /// # Errors
    /// [`Error::Asked`] with the name, the line and the key of what is wrong.
    pub fn read(name: &str, text: &str, parshall: &str) -> Result<Self, Error> {
        let plan = Self::of(text, parshall);
        let mut plan = plan.map_err(|e| Error::Asked(format!("{name}{e}")))?;
        if plan.title.is_empty() {
            name.clone_into(&mut plan.title);
        }
        Ok(plan)
    }

    fn of(text: &str, parshall: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|e| format!(": {e}"))?;
        if let Some(rounds) = file.rounds.as_ref().filter(|rounds| rounds.value == 0) {
            return Err(wrong(rounds, "rounds", "at least one is needed"));
        }
        let axes = file.axes().map_err(|e| format!(": {e}"))?;
        let lengths = axes.iter().map(|axis| axis.values.len());
        let count = lengths.fold(1, usize::saturating_mul);
        if count > MOST {
            return Err(format!(
                ": `axes`: they have {count} combinations, and {MOST} are the most: leave out values"
            ));
        }
        let refers = |name: &str| [format!("${{{name}"), format!("${name}")];
        let is_unused = |name: &&String| !refers(name).iter().any(|word| text.contains(word));
        let names = axes.iter().map(|axis| &axis.name);
        let unused = names.filter(is_unused).cloned().collect();
        let last = axes.last().map(|axis| axis.name.clone());
        let along = match &file.along {
            None => last.unwrap_or_default(),
            Some(name) if axes.iter().any(|axis| axis.name == name.value) => name.value.clone(),
            Some(name) => return Err(wrong(name, "along", "it names no axis")),
        };
        let configurations = combinations(&axes).into_iter().map(|at| {
            let at: Vec<String> = at.into_iter().map(str::to_owned).collect();
            let names = axes.iter().map(|axis| axis.name.clone());
            let variables: Vec<_> = names.zip(at.iter().cloned()).collect();
            let device = Values {
                file: &file,
                axes: &variables,
                parshall,
            }
            .device()?;
            Ok(Configuration { at, device })
        });
        let configurations = configurations.collect::<Result<Vec<_>, String>>()?;
        let routers = |of: &Configuration| matches!(&of.device, Device::Lab(case) if case.dut == Dut::Parshall);
        if let (Some(router), false) = (&file.router, configurations.iter().any(routers)) {
            return Err(wrong(
                router,
                "router",
                "only Parshall reads it, and no device is one",
            ));
        }
        let is_command = matches!(configurations[0].device, Device::Command(_));
        let unit = match &file.unit {
            Some(unit) => unit.value.0.clone(),
            None if is_command => String::new(),
            None => "pps".to_owned(),
        };
        Ok(Self {
            title: file.title,
            along,
            unit,
            rounds: file.rounds.map_or(ROUNDS, |rounds| rounds.value),
            configurations,
            axes,
            unused,
        })
    }
}

impl File {
    /// The axes, if they can be used.
    fn axes(&self) -> Result<Vec<Axis>, String> {
        if self.axes.is_empty() {
            return Err("`axes`: at least one is needed".to_owned());
        }
        let axes = self.axes.iter().map(|(name, values)| {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_name) {
                return Err(format!(
                    "axis `{name}`: a name has small letters, digits and `_`, as commands have it \
                     as a variable"
                ));
            }
            let values: Vec<String> = values.iter().map(|value| value.0.clone()).collect();
            let doubled = (1..values.len()).find(|i| values[..*i].contains(&values[*i]));
            match (doubled, values.is_empty()) {
                (Some(i), _) => Err(format!(
                    "axis `{name}`: the value `{}` is given twice",
                    values[i]
                )),
                (_, true) => Err(format!("axis `{name}`: it has no value")),
                _ => Ok(Axis {
                    name: name.clone(),
                    values,
                }),
            }
        });
        axes.collect()
    }
}

/// An error at a key.
fn wrong<T>(at: &Spanned<T>, key: &str, why: &str) -> String {
    format!(":{}: `{key}`: {why}", at.referenced.line())
}

/// An error if the file has a key that is of no use.
fn absent<T>(key: &str, value: &Option<Spanned<T>>, why: &str) -> Result<(), String> {
    match value {
        Some(value) => Err(wrong(value, key, why)),
        None => Ok(()),
    }
}

/// What the file says of one configuration.
struct Values<'a> {
    file: &'a File,
    axes: &'a [(String, String)],
    parshall: &'a str,
}

impl Values<'_> {
    /// The text of a key with the values of the axes in place of `${axis}`.
    fn text(&self, key: &str, scalar: &Scalar) -> Result<String, String> {
        let mut rest = scalar.value.0.as_str();
        let mut text = String::new();
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| wrong(scalar, key, "a `${` has no `}`"))?;
            let axis = self.axes.iter().find(|(axis, _)| axis == name);
            let (_, value) =
                axis.ok_or_else(|| wrong(scalar, key, &format!("there is no axis `{name}`")))?;
            text += before;
            text += value;
            rest = after;
        }
        Ok(text + rest)
    }

    /// A key's value, or the one where the file says nothing.
    fn value<T>(
        &self,
        key: &str,
        scalar: &Option<Scalar>,
        default: T,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, String> {
        let Some(scalar) = scalar else {
            return Ok(default);
        };
        let text = self.text(key, scalar)?;
        read(&text).map_err(|why| wrong(scalar, key, &format!("`{text}`: {why}")))
    }

    fn device(&self) -> Result<Device, String> {
        let device = self.text("device", &self.file.device)?;
        if device == "command" {
            return self.command().map(Device::Command);
        }
        let dut = word::<Dut>(&device);
        let dut =
            dut.map_err(|e| wrong(&self.file.device, "device", &format!("{e} or `command`")))?;
        self.case(dut).map(Device::Lab)
    }

    /// A device that the laboratory sets up.
    fn case(&self, dut: Dut) -> Result<Case, String> {
        let file = self.file;
        let why = "only for `device: command`";
        for (key, script) in [("measure", &file.measure), ("teardown", &file.teardown)] {
            absent(key, script, why)?;
        }
        for (key, value) in [
            ("figure", &file.figure),
            ("limit", &file.limit),
            ("warm-up", &file.warm_up),
        ] {
            absent(key, value, why)?;
        }
        let io = self.value("io", &file.io, Io::Veth, word)?;
        if let (false, Some(scalar)) = (device::has(dut, io), &file.io) {
            return Err(wrong(scalar, "io", &format!("{dut} has no {io}")));
        }
        let load = self.load()?;
        let router = match &file.router {
            None => String::new(),
            Some(text) => self.text("router", text)? + "\n",
        };
        Ok(Case {
            dut,
            io,
            load,
            budget: self.value("budget", &file.budget, Duration::from_secs(8), seconds)?,
            router,
            prepare: file
                .prepare
                .as_ref()
                .map(|text| self.script("prepare", text)),
        })
    }

    fn load(&self) -> Result<Load, String> {
        let file = self.file;
        let family = self.value("family", &file.family, Family::Ip4, word)?;
        let routes = self.value("routes", &file.routes, 0, number)?;
        let forwarding = self.value(
            "forwarding",
            &file.forwarding,
            Forwarding::Routed,
            |text| match (family, word(text)?) {
                (Family::Ip6, Forwarding::Vlan) => Err("only with `family: ip4`".to_owned()),
                (_, forwarding) => Ok(forwarding),
            },
        )?;
        if let (Forwarding::Bridged, Some(scalar), true) = (forwarding, &file.routes, routes > 0) {
            return Err(wrong(scalar, "routes", "a bridge has none"));
        }
        if let (Family::Ip4, Some(scalar), true) = (family, &file.routes, routes > 0) {
            return Err(wrong(scalar, "routes", "only with `family: ip6`"));
        }
        let least = match family {
            Family::Ip4 => 64,
            Family::Ip6 => crate::compare::plan::IP6_SIZE,
        };
        let size = self.value("size", &file.size, Size::Bytes(least), |text| {
            let size: Size = text.parse()?;
            match (family, size) {
                (Family::Ip6, size) if size != Size::Bytes(least) => {
                    Err(format!("frames of IPv6 have {least} bytes"))
                }
                (_, Size::Bytes(bytes)) if !(64..=1518).contains(&bytes) => {
                    Err("frames have 64 to 1518 bytes".to_owned())
                }
                _ => Ok(size),
            }
        })?;
        Ok(Load {
            size,
            flows: self.value("flows", &file.flows, Flows::Many, word)?,
            direction: self.value("direction", &file.direction, Direction::OneWay, word)?,
            family,
            routes,
            forwarding,
        })
    }

    fn command(&self) -> Result<Command, String> {
        let file = self.file;
        let Some(measure) = &file.measure else {
            return Err(wrong(&file.device, "device", "a command needs `measure`"));
        };
        for (key, value) in [
            ("io", &file.io),
            ("size", &file.size),
            ("flows", &file.flows),
            ("direction", &file.direction),
            ("family", &file.family),
            ("forwarding", &file.forwarding),
            ("routes", &file.routes),
            ("budget", &file.budget),
            ("router", &file.router),
        ] {
            absent(key, value, "not for `device: command`")?;
        }
        let script = |key, text: &Option<_>| text.as_ref().map(|text| self.script(key, text));
        Ok(Command {
            prepare: script("prepare", &file.prepare),
            measure: self.script("measure", measure),
            teardown: script("teardown", &file.teardown),
            figure: self.value("figure", &file.figure, None, |text| {
                Ok(Some(text.to_owned()))
            })?,
            limit: self.value("limit", &file.limit, Duration::from_secs(600), seconds)?,
            warm_up: self.value("warm-up", &file.warm_up, 1, number)?,
        })
    }

    fn script(&self, name: &'static str, text: &Spanned<String>) -> Script {
        let parshall = ("PARSHALL".to_owned(), self.parshall.to_owned());
        Script {
            name,
            text: text.value.clone(),
            variables: self.axes.iter().cloned().chain([parshall]).collect(),
        }
    }
}

/// One of the known words.
fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let read = T::deserialize(text.into_deserializer());
    read.map_err(|e: value::Error| e.to_string())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "expected a whole number".to_owned())
}

/// Seconds, at least one.
fn seconds(text: &str) -> Result<Duration, String> {
    match number(text) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds.into())),
        _ => Err("expected seconds, a whole number".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        Plan::read("m.yaml", text, "/bin/parshall").map_err(|e| e.to_string())
    }

    const ROUTES: &str = "title: Cost of routes
axes:
  dut: [kernel, parshall]
  routes: [0, 1000]
device: ${dut}
family: ip6
routes: ${routes}
router: |
  # ${routes} of them
";

    #[test]
    fn axes_are_multiplied() {
        let plan = read(ROUTES).unwrap();
        assert_eq!(
            (plan.rounds, plan.along.as_str(), plan.unit.as_str()),
            (5, "routes", "pps")
        );
        let at = plan.configurations.iter().map(|c| c.at.join(" "));
        assert_eq!(
            at.collect::<Vec<_>>(),
            ["kernel 0", "kernel 1000", "parshall 0", "parshall 1000"]
        );
        let Device::Lab(case) = &plan.configurations[3].device else {
            panic!("{plan:?}");
        };
        assert_eq!(
            (case.dut, case.load.routes, case.load.size),
            (Dut::Parshall, 1000, Size::Bytes(66))
        );
        assert_eq!(case.router, "# 1000 of them\n\n");
    }

    #[test]
    fn axes_that_nothing_uses_and_too_many_configurations_are_told() {
        assert!(read(ROUTES).unwrap().unused.is_empty());
        let more = ROUTES.replace("  dut:", "  idle: [a, b]\n  dut:");
        assert_eq!(read(&more).unwrap().unused, ["idle"]);
        let numbers: Vec<String> = (0..101).map(|n| n.to_string()).collect();
        let values = numbers.join(", ");
        let huge = ROUTES.replace(
            "  dut:",
            &format!("  a: [{values}]\n  b: [{values}]\n  dut:"),
        );
        let refused = read(&huge).unwrap_err();
        assert!(refused.contains("40804 combinations"), "{refused}");
    }

    #[test]
    fn commands_have_axes_as_variables() {
        let text = "axes: { rules: [1, 2.5, on] }\ndevice: command\nmeasure: echo ${rules}\nfigure: a\nunit: W\nwarm-up: 0\n";
        let plan = read(text).unwrap();
        let at = plan.configurations.iter().map(|c| c.at.join(" "));
        assert_eq!(at.collect::<Vec<_>>(), ["1", "2.5", "on"]);
        let Device::Command(command) = &plan.configurations[1].device else {
            panic!("{plan:?}");
        };
        assert_eq!(command.measure.text, "echo ${rules}");
        assert_eq!(command.measure.variables[0], ("rules".into(), "2.5".into()));
        assert_eq!(command.measure.variables[1].1, "/bin/parshall");
        assert_eq!((command.warm_up, plan.unit.as_str()), (0, "W"));
        assert_eq!(plan.title, "m.yaml");
    }

    #[test]
    fn mistakes_are_named_with_line_and_key() {
        let command = "axes: { n: [1] }\ndevice: command\nmeasure: echo 1\n";
        let kernel = "axes: { n: [1] }\ndevice: kernel\n";
        for (text, said) in [
            (
                ROUTES.replace("routes: ${routes}", "routes: ${rout}"),
                "m.yaml:7: `routes`: there is no axis `rout`",
            ),
            (
                ROUTES.replace("routes: ${routes}", "routes: ${routes"),
                "m.yaml:7: `routes`: a `${` has no `}`",
            ),
            (
                ROUTES.replace("parshall]", "vpp]"),
                "m.yaml:5: `device`: unknown variant `vpp`, expected `kernel` or `parshall` or `command`",
            ),
            (
                ROUTES.replace("ip6", "ip4"),
                "m.yaml:7: `routes`: only with `family: ip6`",
            ),
            (
                ROUTES.replace("0, 1000", "0, 0"),
                "m.yaml: axis `routes`: the value `0` is given twice",
            ),
            (
                ROUTES.replace("0, 1000", ""),
                "m.yaml: axis `routes`: it has no value",
            ),
            (
                ROUTES.replace("dut", "Dut"),
                "m.yaml: axis `Dut`: a name has small letters",
            ),
            (
                format!("{ROUTES}along: size\n"),
                "m.yaml:10: `along`: it names no axis",
            ),
            (format!("{ROUTES}sise: 64\n"), "sise"),
            (
                format!("{ROUTES}io: memif\n"),
                "m.yaml:10: `io`: kernel has no memif",
            ),
            (
                format!("{ROUTES}rounds: 0\n"),
                "m.yaml:10: `rounds`: at least one is needed",
            ),
            (
                format!("{ROUTES}budget: soon\n"),
                "m.yaml:10: `budget`: `soon`: expected seconds",
            ),
            (
                format!("{kernel}router: \"workers: 2\"\n"),
                "m.yaml:3: `router`: only Parshall reads it, and no device is one",
            ),
            (
                format!("{kernel}measure: true\n"),
                "m.yaml:3: `measure`: only for `device: command`",
            ),
            (
                format!("{kernel}limit: 4\n"),
                "m.yaml:3: `limit`: only for `device: command`",
            ),
            (
                format!("{kernel}size: 63\n"),
                "m.yaml:3: `size`: `63`: frames have 64 to 1518 bytes",
            ),
            (
                format!("{command}size: 64\n"),
                "m.yaml:4: `size`: not for `device: command`",
            ),
            (
                command.replace("measure", "prepare"),
                "m.yaml:2: `device`: a command needs `measure`",
            ),
            (
                "axes: {}\ndevice: kernel\n".to_owned(),
                "m.yaml: `axes`: at least one is needed",
            ),
            ("axes: [1]\n".to_owned(), "m.yaml: "),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(said), "{error}\nfor\n{text}");
        }
        let error = read(&format!("{ROUTES}sise: 64\n")).unwrap_err();
        assert!(error.contains("line 10"), "{error}");
    }
}
