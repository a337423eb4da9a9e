//! How much memory the router takes: its tables by what the machine has, packet memory by workers
//! and queues.

use std::error::Error;

use tracing::info;

use kernel::memory::Available;
use tables::Sizes;

/// Second-level groups of the IPv4 FIB, at most and at least; the other tables go with them.
const ENTRIES: [u64; 2] = [1 << 16, 1 << 12];
/// The part of the available memory that these groups may take, 1 KiB each.
const PART: u64 = 8;
/// Queues of ports that come while the router runs, that there are spare packet buffers for; more
/// where there are more processors: a card whose `queues` nobody gives may have one for each.
const SPARE: u32 = 4;
/// The part of the available memory that spare packet buffers may take.
const SPARE_PART: u64 = 16;
const MIB: u64 = 1 << 20;

/// How large the tables are: as the default says where 512 MiB are available, smaller by powers of
/// two where there is less.
pub fn sizes(available: Option<Available>) -> Sizes {
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

/// Checks that there is enough for tables and packets before any of it is taken: the kernel would
/// end some process later, when it finds out.
///
/// # Errors
/// How much is missing, and what to do about it.
pub fn check(
    available: Option<Available>,
    tables: u64,
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
    let short = tables + ordinary > available.ordinary;
    let [tables, packets] = [tables, packets].map(|bytes| bytes.div_ceil(MIB));
    if short {
        let there = available.ordinary / MIB;
        return Err(format!(
            "run: too little memory: tables need {tables} MiB and packets {packets} MiB, but only {there} MiB are available: \
             give the machine more memory, or configure fewer workers or fewer queues of ports"
        )
        .into());
    }
    info!("memory: tables {tables} MiB, packets {packets} MiB");
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
        assert_eq!(sizes(None), Sizes::default());
        assert_eq!(sizes(of(24_000, 0)), Sizes::default());
        assert_eq!(sizes(of(512, 0)), Sizes::default());
        let entries = |mib| sizes(of(mib, 0)).ip4_groups;
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
    fn too_little_is_said_in_one_line() {
        assert!(check(None, 1 << 40, 1 << 40).is_ok());
        assert!(check(of(180, 0), 100 * MIB, 80 * MIB).is_ok());
        let error = check(of(179, 79), 100 * MIB, 80 * MIB)
            .unwrap_err()
            .to_string();
        let says = "tables need 100 MiB and packets 80 MiB, but only 179 MiB are available";
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
        assert!(
            check(of(100, 80), 100 * MIB, 80 * MIB).is_ok(),
            "in huge pages"
        );
    }
}
