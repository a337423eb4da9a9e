//! The memory that the router takes: its tables by the configuration or the machine, packet memory
//! by workers and queues.

use std::error::Error;

use tracing::info;

use control::config;
use kernel::memory::Available;
use tables::Sizes;

/// Second-level groups of the IPv4 FIB, at most and at least; the other tables go with them. The
/// most is the tables' default; the least leaves room for some thousand routes where memory is
/// short.
const ENTRIES: [u64; 2] = [1 << 16, 1 << 12];
/// The part of the available memory that these groups may take, 1 KiB each: the rest is
/// for the other tables, packets and other programs.
const PART: u64 = 8;
/// Queues of ports that come while the router runs, that there are spare packet buffers for; more
/// where there are more processors: a card whose `queues` nobody gives may have one for each.
const SPARE: u32 = 4;
/// The part of the available memory that spare packet buffers may take, as they may never be used.
const SPARE_PART: u64 = 16;
const MIB: u64 = 1 << 20;

/// The sizes of the tables: those for routes as the configuration says, the others and those that
/// it leaves out by the available memory.
pub fn sizes(available: Option<Available>, tables: config::Tables) -> Sizes {
    let sizes = usual(available);
    let sizes = tables.ip4_routes.map_or(sizes, |n| sizes.for_ip4_routes(n));
    tables.ip6_routes.map_or(sizes, |n| sizes.for_ip6_routes(n))
}

/// As the default says where 512 MiB are available, smaller by powers of two where there is less.
fn usual(available: Option<Available>) -> Sizes {
    let Some(available) = available else {
        return Sizes::default();
    };
    let [most, least] = ENTRIES;
    let entries = (available.ordinary / PART / 1024).clamp(least, most);
    let halvings = most.ilog2() - entries.ilog2();
    let all = Sizes::default();
    Sizes {
        ip4_groups: all.ip4_groups >> halvings,
        ip6_pages: all.ip6_pages >> halvings,
        ip6_leaves: all.ip6_leaves >> halvings,
        nexthop_groups: all.nexthop_groups >> halvings,
        adjacencies: all.adjacencies >> halvings,
        interfaces: all.interfaces,
    }
}

/// Packet buffers beyond those of the start, for ports that come while the router runs: for the
/// queues of a card on so many `processors`, which hold `each`, as far as that is a small part of
/// what is available.
pub fn spare(available: Option<Available>, processors: u32, each: u32, bytes: u64) -> u32 {
    let most = SPARE.max(processors);
    let room = available.map_or(u64::MAX, |a| a.ordinary.max(a.huge) / SPARE_PART);
    let queues = room / (u64::from(each) * bytes);
    most.min(u32::try_from(queues).unwrap_or(most)) * each
}

/// Checks that there is enough for tables of these sizes and packets before any of it is taken: the
/// kernel would end some process later, when it finds out. `flows` are the bytes for the flows of all
/// workers: they count if the configuration says how many there may be, since they are taken only as
/// flows come.
///
/// # Errors
/// The memory that is missing, the settings of `tables` that take part of it, and advice.
pub fn check(
    available: Option<Available>,
    tables: config::Tables,
    (sizes, flows): (Sizes, u64),
    packets: u64,
) -> Result<(), Box<dyn Error>> {
    let Some(available) = available else {
        return Ok(());
    };
    // Reserved huge pages are taken for packets if all of these fit.
    let ordinary = if packets <= available.huge {
        0
    } else {
        packets
    };
    let needed = sizes.bytes() + tables.flows.map_or(0, |_| flows);
    let short = needed + ordinary > available.ordinary;
    let [needed, packets] = [needed, packets].map(|bytes| bytes.div_ceil(MIB));
    if short {
        let there = available.ordinary / MIB;
        let settings = [
            ("ip4-routes", tables.ip4_routes, sizes.ip4_bytes()),
            ("ip6-routes", tables.ip6_routes, sizes.ip6_bytes()),
            ("flows", tables.flows, flows),
        ];
        let given = settings.into_iter().filter_map(|(name, number, bytes)| {
            let (number, mib) = (number?, bytes.div_ceil(MIB));
            Some(format!(" (tables.{name}: {number} needs {mib} MiB)"))
        });
        let given: String = given.collect();
        return Err(format!(
            "run: too little memory: tables need {needed} MiB{given} and packets {packets} MiB, but only {there} MiB are available: \
             give the machine more memory, or configure fewer routes or flows in `tables`, fewer workers or fewer queues of ports"
        )
        .into());
    }
    info!("memory: tables {needed} MiB, packets {packets} MiB");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mib: u64, huge: u64) -> Option<Available> {
        let [ordinary, huge] = [mib, huge].map(|mib| mib * MIB);
        Some(Available { ordinary, huge })
    }

    #[test]
    fn tables_fit_the_machine() {
        assert_eq!(usual(None), Sizes::default());
        assert_eq!(usual(of(24_000, 0)), Sizes::default());
        assert_eq!(usual(of(512, 0)), Sizes::default());
        let entries = |mib| usual(of(mib, 0)).ip4_groups;
        assert_eq!(
            [511, 256, 255, 10, 0].map(entries),
            [1 << 15, 1 << 15, 1 << 14, 1 << 12, 1 << 12]
        );
    }

    #[test]
    fn spare_buffers_are_a_small_part() {
        let queues = |available| spare(available, 1, 100, MIB) / 100;
        assert_eq!(queues(None), 4);
        assert_eq!(queues(of(100_000, 0)), 4);
        assert_eq!(
            [3200, 3199, 1600, 0].map(|mib| queues(of(mib, 0))),
            [2, 1, 1, 0]
        );
        assert_eq!(queues(of(0, 1600)), 1);
    }

    #[test]
    fn there_are_spare_buffers_for_a_card_with_a_queue_for_each_processor() {
        let queues = |processors, available| spare(available, processors, 100, MIB) / 100;
        assert_eq!([1, 4, 5, 64].map(|p| queues(p, None)), [4, 4, 5, 64]);
        assert_eq!(queues(64, of(16_000, 0)), 10);
    }

    #[test]
    fn what_the_configuration_says_comes_before_what_there_is() {
        let little = of(256, 0);
        let tables = config::Tables {
            ip4_routes: Some(2_000_000),
            ..config::Tables::default()
        };
        let wanted = usual(little).for_ip4_routes(2_000_000);
        assert_eq!(sizes(little, tables), wanted);
        assert_ne!(sizes(little, tables), usual(little));
        assert_eq!(sizes(little, config::Tables::default()), usual(little));
    }

    #[test]
    fn too_little_is_said_in_one_line() {
        let (none, sizes) = (config::Tables::default(), Sizes::default());
        let mib = sizes.bytes().div_ceil(MIB);
        let check = |there, packets| check(there, none, (sizes, 1 << 40), packets);
        assert!(check(None, 1 << 40).is_ok());
        assert!(check(of(mib + 80, 0), 80 * MIB).is_ok());
        let error = check(of(mib + 78, 79), 80 * MIB).unwrap_err().to_string();
        let there = mib + 78;
        let says =
            format!("tables need {mib} MiB and packets 80 MiB, but only {there} MiB are available");
        assert!(error.contains(&says) && !error.contains('\n'), "{error}");
        assert!(check(of(mib, 80), 80 * MIB).is_ok(), "in huge pages");
    }

    #[test]
    fn tables_too_large_for_the_memory_are_refused_by_name() {
        let tables = config::Tables {
            ip4_routes: Some(50_000_000),
            ip6_routes: Some(1000),
            flows: Some(2_000_000),
        };
        let sizes = sizes(of(2000, 0), tables);
        let error = check(of(2000, 0), tables, (sizes, 300 * MIB), MIB).unwrap_err();
        let says = [
            "tables.ip4-routes: 50000000 needs 4160 MiB",
            "tables.ip6-routes: 1000 needs 2 MiB",
            "tables.flows: 2000000 needs 300 MiB",
            "only 2000 MiB are available",
            "fewer routes or flows in `tables`",
        ];
        let error = error.to_string();
        assert!(says.iter().all(|part| error.contains(part)), "{error}");
    }
}
