//! Memory that is free to take: the machine's (proc_meminfo(5)), and that of the control groups
//! that we are in (Documentation/admin-guide/cgroup-v2.rst of the kernel, "Memory").

use std::fs;
use std::io;
use std::path::Path;

/// Memory that can be taken now, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Available {
    /// Ordinary memory, without the kernel having to swap or to end anything.
    pub ordinary: u64,
    /// Reserved huge pages of the default size, which are not part of it.
    pub huge: u64,
}

/// Asks the kernel.
///
/// # Errors
/// /proc is not mounted; InvalidData: the kernel is older than 3.14 and does not say.
pub fn available() -> io::Result<Available> {
    let machine =
        of_machine(&fs::read_to_string("/proc/meminfo")?).ok_or(io::ErrorKind::InvalidData)?;
    let group = fs::read_to_string("/proc/self/cgroup");
    let group = group
        .ok()
        .and_then(|text| of_groups("/sys/fs/cgroup".as_ref(), &text));
    Ok(Available {
        ordinary: machine.ordinary.min(group.unwrap_or(u64::MAX)),
        ..machine
    })
}

fn of_machine(meminfo: &str) -> Option<Available> {
    let number = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let pages = number("HugePages_Free:").unwrap_or(0);
    let reserved = number("HugePages_Rsvd:").unwrap_or(0);
    let size = number("Hugepagesize:").unwrap_or(0) << 10;
    Some(Available {
        ordinary: number("MemAvailable:")? << 10,
        huge: pages.saturating_sub(reserved) * size,
    })
}

/// Memory that the strictest control group above us leaves; `None` if none has a limit. `own` is
/// the text of /proc/self/cgroup, whose line `0::PATH` is that of version 2.
fn of_groups(root: &Path, own: &str) -> Option<u64> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = root.join(path);
    let groups = own.ancestors().take_while(|group| *group != root);
    groups.filter_map(left).min()
}

/// Memory that a control group leaves. File pages that nobody has used for a while make room.
fn left(group: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(group.join(file)).ok();
    let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
    let stat = read("memory.stat").unwrap_or_default();
    let stat = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "));
    let idle = stat.and_then(|n| n.parse().ok()).unwrap_or(0);
    // Without a limit the file says `max`.
    let limit = number("memory.max")?;
    Some(limit.saturating_sub(number("memory.current")?.saturating_sub(idle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_it() {
        let available = available().expect("/proc is mounted");
        assert!(available.ordinary > 1 << 20, "{available:?}");
    }

    #[test]
    fn reserved_pages_are_taken_already() {
        let text = "MemTotal: 500000 kB\nMemAvailable:     400000 kB\nHugePages_Free:  5\n\
                    HugePages_Rsvd:        2\nHugepagesize:       2048 kB\n";
        let expected = Available {
            ordinary: 400_000 << 10,
            huge: 3 * (2 << 20),
        };
        assert_eq!(of_machine(text), Some(expected));
        assert_eq!(of_machine("MemTotal: 500000 kB\n"), None);
    }

    #[test]
    fn the_strictest_group_counts() {
        let root = std::env::temp_dir().join(format!("parshall-cgroup-{}", std::process::id()));
        let write = |group: &str, max: &str, current: &str| {
            let group = root.join(group);
            fs::create_dir_all(&group).expect("a directory");
            let stat = "anon 5\ninactive_file 1000\n";
            let files = [("max", max), ("current", current), ("stat", stat)];
            for (file, text) in files {
                fs::write(group.join(format!("memory.{file}")), text).expect("a file");
            }
        };
        write("outer", "50000\n", "11000\n");
        write("outer/inner", "max\n", "3000\n");
        write("outer/inner/own", "60000\n", "2000\n");
        let of = |own: &str| of_groups(&root, own);
        assert_eq!(of("0::/outer/inner/own\n"), Some(40_000));
        assert_eq!(of("0::/outer/inner\n"), Some(40_000));
        assert_eq!(of("0::/\n"), None);
        assert_eq!(of("1:memory:/outer\n"), None);
        fs::remove_dir_all(&root).expect("is ours");
    }
}
