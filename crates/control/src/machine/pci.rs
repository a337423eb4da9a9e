//! Network devices on the PCI bus, from /sys/bus/pci/devices.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

/// A network device on the PCI bus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// PCI address, as in `0000:03:00.0`.
    pub address: String,
    /// The NUMA node that it is near, if any.
    pub numa: Option<u32>,
    /// Vendor and device, as in `15b3:1019`.
    pub id: String,
    /// Link of the card, as in `8.0 GT/s PCIe x16`.
    pub link: Option<String>,
    /// Driver that is bound to it.
    pub driver: Option<String>,
    /// Names of its network devices in our namespace.
    pub netdevs: Vec<String>,
}

/// The table that `show pci` prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bus {
    /// Network devices in the order of their addresses.
    pub functions: Vec<Function>,
}

impl Bus {
    /// Reads the bus. A machine without one has nothing on it.
    ///
    /// # Errors
    /// It is there but cannot be read.
    pub fn read() -> io::Result<Bus> {
        Self::read_from(Path::new("/sys/bus/pci/devices"))
    }

    fn read_from(directory: &Path) -> io::Result<Bus> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Bus::default()),
            entries => entries?,
        };
        let mut functions: Vec<Function> = entries
            .filter_map(|entry| function(&entry.ok()?.path()))
            .collect();
        functions.sort_by(|a, b| a.address.cmp(&b.address));
        Ok(Bus { functions })
    }
}

/// A function if it is of class 02, network controllers.
fn function(path: &Path) -> Option<Function> {
    let text = |name: &str| Some(fs::read_to_string(path.join(name)).ok()?.trim().to_owned());
    let class = text("class")?;
    if !class.starts_with("0x02") {
        return None;
    }
    let id = |name| {
        text(name)
            .map(|id| id.trim_start_matches("0x").to_owned())
            .unwrap_or_default()
    };
    let speed = text("current_link_speed").zip(text("current_link_width"));
    let mut netdevs = names_in(&path.join("net"));
    for child in names_in(path)
        .into_iter()
        .filter(|name| name.starts_with("virtio"))
    {
        netdevs.extend(names_in(&path.join(child).join("net")));
    }
    netdevs.sort();
    Some(Function {
        address: path.file_name()?.to_string_lossy().into_owned(),
        numa: text("numa_node").and_then(|node| node.parse().ok()),
        id: format!("{}:{}", id("vendor"), id("device")),
        link: speed.map(|(speed, width)| format!("{speed} x{width}")),
        driver: fs::read_link(path.join("driver"))
            .ok()
            .and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
        netdevs,
    })
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.functions.is_empty() {
            return writeln!(f, "No network device is on the PCI bus");
        }
        writeln!(
            f,
            "{:<14}{:<6}{:<12}{:<22}{:<18}Device",
            "Address", "Sock", "VID:PID", "Link Speed", "Driver"
        )?;
        for function in &self.functions {
            let numa = function.numa.map_or("-".into(), |node| node.to_string());
            let link = function.link.as_deref().unwrap_or("unknown");
            let driver = function.driver.as_deref().unwrap_or("-");
            let netdevs = function.netdevs.join(" ");
            writeln!(
                f,
                "{:<14}{numa:<6}{:<12}{link:<22}{driver:<18}{netdevs}",
                function.address, function.id
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_devices_are_listed_and_others_not() {
        let bus = tempfile::tempdir().expect("a directory");
        for (address, class, net) in [
            ("0000:03:00.1", "0x020000", "eth1"),
            ("0000:03:00.0", "0x020000", "eth0"),
            ("0000:00:1f.0", "0x060100", "x"),
        ] {
            let path = bus.path().join(address);
            fs::create_dir_all(path.join("net").join(net)).expect("made");
            for (name, text) in [
                ("class", class),
                ("vendor", "0x15b3"),
                ("device", "0x1019"),
                ("numa_node", "-1"),
            ] {
                fs::write(path.join(name), format!("{text}\n")).expect("written");
            }
        }
        let read = Bus::read_from(bus.path()).expect("read");
        let names: Vec<&str> = read
            .functions
            .iter()
            .map(|function| function.netdevs[0].as_str())
            .collect();
        assert_eq!(names, ["eth0", "eth1"]);
        assert_eq!(
            (read.functions[0].id.as_str(), read.functions[0].numa),
            ("15b3:1019", None)
        );
        assert!(
            read.to_string()
                .contains("0000:03:00.0  -     15b3:1019   unknown"),
            "{read}"
        );
    }

    #[test]
    fn a_machine_without_the_bus_has_nothing_on_it() {
        assert_eq!(
            Bus::read_from(Path::new("/nonexistent")).expect("read"),
            Bus::default()
        );
    }
}
