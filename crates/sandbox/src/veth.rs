//! Pairs of virtual Ethernet links between namespaces.

use kernel::cpu::pin_thread;

use crate::{Error, Netns};

/// One end of a pair.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Namespace that the end is in.
    pub netns: &'a Netns,
    /// Interface name, at most 15 characters.
    pub name: &'a str,
    /// Ethernet address as `ip` writes it.
    pub mac: &'a str,
    /// Address with prefix length, if it has one.
    pub address: Option<&'a str>,
}

/// Makes a pair, both ends up, with an MTU of `mtu` bytes and the addresses given.
///
/// # Errors
/// Needs root and `ip`.
pub fn pair(a: End<'_>, b: End<'_>, mtu: u16) -> Result<(), Error> {
    a.netns.ip(&format!(
        "link add {} address {} mtu {mtu} type veth peer name {} netns {} address {} mtu {mtu}",
        a.name,
        a.mac,
        b.name,
        b.netns.name(),
        b.mac
    ))?;
    for end in [a, b] {
        let address = end.address.map_or(String::new(), |address| {
            format!("addr add {address} dev {}\n", end.name)
        });
        end.netns
            .ip_batch(&format!("{address}link set {} up\n", end.name))?;
    }
    Ok(())
}

/// Makes the interface a host's: checksums and segments are finished by the kernel before a packet
/// leaves, because whoever redirects it (XDP, AF_XDP) cannot finish them.
///
/// # Errors
/// Needs root and `ethtool`.
pub fn host_end(netns: &Netns, name: &str) -> Result<(), Error> {
    netns.exec(&["ethtool", "-K", name, "tx", "off"]).map(drop)
}

/// Lets frames be redirected into this interface's peer: a veth refuses them unless the receiving
/// end polls (GRO on, or an XDP program attached; `veth_xdp_xmit` in the kernel's
/// drivers/net/veth.c).
///
/// # Errors
/// Needs root and `ethtool`.
pub fn device_end(netns: &Netns, name: &str) -> Result<(), Error> {
    netns.exec(&["ethtool", "-K", name, "gro", "on"]).map(drop)
}

/// Gives the interface's packet polling a kernel thread of its own, pinned to `cpu`. Repeat this
/// after an XDP program was attached to the interface or detached, because that makes a new thread.
///
/// # Errors
/// Needs root and a kernel with threaded NAPI (5.12).
pub fn thread_on(netns: &Netns, name: &str, cpu: usize) -> Result<(), Error> {
    let file = format!("/sys/class/net/{name}/threaded");
    netns.sh(&format!("echo 0 > {file}; echo 1 > {file}"))?;
    let prefix = format!("napi/{name}-");
    for (pid, comm) in processes() {
        if comm.starts_with(&prefix) {
            // One that has just ended needs no pinning.
            let _ = pin_thread(pid, cpu);
        }
    }
    Ok(())
}

/// All processes with their short names.
fn processes() -> Vec<(i32, String)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some((pid, comm.trim().to_owned()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cleanup::is_root;

    #[test]
    fn packets_pass_a_pair() {
        if !is_root() {
            println!("SKIP packets_pass_a_pair: needs root");
            return;
        }
        let (left, right) = (
            Netns::create("left").unwrap(),
            Netns::create("right").unwrap(),
        );
        let a = End {
            netns: &left,
            name: "a0",
            mac: "02:00:00:00:00:01",
            address: Some("198.18.0.1/24"),
        };
        let b = End {
            netns: &right,
            name: "b0",
            mac: "02:00:00:00:00:02",
            address: Some("198.18.0.2/24"),
        };
        pair(a, b, 1400).unwrap();
        host_end(&left, "a0").unwrap();
        device_end(&right, "b0").unwrap();
        assert!(right.ip("link show b0").unwrap().contains("mtu 1400"));
        let ping = |size| {
            let words = ["ping", "-c", "1", "-W", "20", "-M", "do", "-s", size];
            left.exec(&[&words[..], &["198.18.0.2"]].concat())
        };
        // 28 bytes of headers on top.
        ping("1372").expect("a packet as long as the MTU passes");
        ping("1373").expect_err("a longer one does not");
        assert!(
            left.exec(&["cat", "/sys/class/net/a0/address"])
                .unwrap()
                .starts_with("02:00:00:00:00:01")
        );
        thread_on(&right, "b0", 0).unwrap();
        ping("1372").expect("also with a thread of its own that receives");
    }
}
