//! Readers look packets up while the writer changes the tables.
//!
//! IPv4 goes through all three tables. Each /24 has next hops of its own. A look-up may find any of them, old or new, but never one of
//! another /24, and never a line that is half written.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use tables::adjacency::{self, Adjacency, AdjacencyId, Slab};
use tables::entry::Entry;
use tables::ip4::{FIRST_WORDS, Fib, GROUP_WORDS, Prefix};
use tables::ip6;
use tables::mem::{Cells, LINE};
use tables::nexthop::{self, GroupId, Groups, Member};
use tables::random::Random;

const NETWORKS: u32 = 64;
const READERS: usize = 2;
const ROUNDS: u32 = 400;
/// Changes between two grace periods.
const BATCH: u32 = 256;

/// The loops that a reader has begun.
type Loops = [AtomicU64; READERS];

/// Waits until each reader has begun another loop.
fn grace(loops: &Loops) {
    fence(Ordering::SeqCst);
    let before = loops.each_ref().map(|count| count.load(Ordering::SeqCst));
    let start = Instant::now();
    for (count, before) in loops.iter().zip(before) {
        while count.load(Ordering::SeqCst) == before {
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "a reader has died"
            );
            thread::yield_now();
        }
    }
}

/// The address of a /24.
fn network(number: u32) -> u32 {
    0x0a00_0000 | number << 8
}

/// An adjacency with the network and `version` in every field.
fn marked(network: u32, version: u32) -> Adjacency {
    let [a, b, c, d] = version.to_be_bytes();
    let n = network as u8;
    Adjacency::rewrite(
        network as u16,
        version as u16,
        &[n, a, b, c, d, n, a, b, c, d, n, a, b, c],
        Ipv4Addr::from(version << 8 | network).into(),
    )
}

/// The writer's objects for one network.
struct Network {
    number: u32,
    group: GroupId,
    adjacency: AdjacencyId,
}

struct Writer {
    fib: Fib,
    groups: Groups,
    slab: Slab,
    networks: Vec<Network>,
    random: Random,
    version: u32,
}

impl Writer {
    fn new() -> Self {
        let mut this = Self {
            fib: Fib::new(
                Cells::mapped(FIRST_WORDS).unwrap(),
                Cells::mapped(512 * GROUP_WORDS).unwrap(),
            ),
            groups: Groups::new(Cells::boxed(1024 * LINE)),
            slab: Slab::new(Cells::boxed(2048 * LINE)),
            networks: Vec::new(),
            random: Random::new(0x636f_6e63),
            version: 0,
        };
        for number in 0..NETWORKS {
            let adjacency = this.slab.alloc(&marked(number, 0)).unwrap();
            let group = this
                .groups
                .alloc(&[Member {
                    adjacency,
                    weight: 1,
                }])
                .unwrap();
            this.networks.push(Network {
                number,
                group,
                adjacency,
            });
            this.fib
                .insert(
                    Prefix::new(network(number), 24).unwrap(),
                    Entry::new(group, true),
                )
                .unwrap();
        }
        this
    }

    /// One change of one network: another next hop, another group, a longer prefix more or less.
    fn change(&mut self) {
        self.version += 1;
        let at = self.random.below(NETWORKS) as usize;
        let Network {
            number,
            group,
            adjacency,
        } = self.networks[at];
        let longer = Prefix::new(
            network(number) | self.random.word() & 0xff,
            25 + self.random.below(8) as u8,
        )
        .unwrap();
        match self.random.below(5) {
            0 => {
                let new = self.slab.alloc(&marked(number, self.version)).unwrap();
                assert!(self.groups.replace(group, adjacency, new) > 0);
                self.slab.retire(adjacency);
                self.networks[at].adjacency = new;
            }
            1 => {
                let new = self
                    .groups
                    .alloc(&[Member {
                        adjacency,
                        weight: 1,
                    }])
                    .unwrap();
                let routes: Vec<_> = self
                    .fib
                    .routes()
                    .iter()
                    .filter(|(_, entry)| entry.group() == group)
                    .map(|(prefix, _)| prefix)
                    .collect();
                for prefix in routes {
                    self.fib.insert(prefix, Entry::new(new, true)).unwrap();
                }
                self.groups.retire(group);
                self.networks[at].group = new;
            }
            2 => {
                self.fib.insert(longer, Entry::new(group, true)).unwrap();
            }
            _ => {
                let inside = |prefix: &Prefix| {
                    prefix.len() > 24 && prefix.addr() >> 8 == network(number) >> 8
                };
                let routes = self.fib.routes().iter().map(|(prefix, _)| prefix);
                for prefix in routes.filter(inside).collect::<Vec<_>>() {
                    self.fib.remove(prefix);
                }
            }
        }
    }

    fn run(mut self, loops: &Loops) {
        for _ in 0..ROUNDS {
            (0..BATCH).for_each(|_| self.change());
            let retired = (
                self.fib.retired(),
                self.groups.retired(),
                self.slab.retired(),
            );
            grace(loops);
            self.fib.reclaim(retired.0);
            self.groups.reclaim(retired.1);
            self.slab.reclaim(retired.2);
        }
    }
}

struct Readers {
    fib: tables::ip4::Reader,
    groups: nexthop::Reader,
    slab: adjacency::Reader,
}

impl Readers {
    fn packet(&self, random: &mut Random) -> Result<(), String> {
        let number = random.below(NETWORKS);
        let entry = self.fib.lookup(network(number) | random.word() & 0xff);
        let id = self.groups.bucket(entry.group(), random.word());
        let (hot, next_hop) = (self.slab.load(id), self.slab.next_hop(id));
        let Some(IpAddr::V4(version)) = next_hop else {
            return Err(format!("next hop {next_hop:?}"));
        };
        let right = marked(number, version.to_bits() >> 8);
        let same_line = (hot.tx_if(), hot.fast_mtu(), hot.header())
            == (right.tx_if, right.mtu, *right.header.first_chunk().unwrap());
        let ours = next_hop == right.next_hop && entry.is_multi();
        (same_line && ours)
            .then_some(())
            .ok_or_else(|| format!("network {number}: {entry:?}, adjacency {id}: {hot:?}"))
    }
}

/// Stops the readers when dropped, also by a panic of the writer: the scope waits for them.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Looks packets up, by `packet`, in each of [`READERS`] threads while `write` changes the tables,
/// and panics with the first fault. Returns how many packets were looked up.
fn look_up_while(
    packet: impl Fn(&mut Random) -> Result<(), String> + Sync,
    write: impl FnOnce(&Loops),
) -> u64 {
    let (loops, stop) = (Loops::default(), AtomicBool::new(false));
    let read = |seed, loops: &AtomicU64| {
        let mut random = Random::new(seed);
        let (mut packets, mut fault) = (0, None);
        while !stop.load(Ordering::Relaxed) {
            loops.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            for _ in 0..256 {
                fault = fault.or(packet(&mut random).err());
                packets += 1;
            }
        }
        (packets, fault)
    };
    thread::scope(|scope| {
        let (read, stopping) = (&read, StopOnDrop(&stop));
        let start = |(seed, loops)| scope.spawn(move || read(seed, loops));
        let threads: Vec<_> = (0..).zip(&loops).map(start).collect();
        write(&loops);
        drop(stopping);
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results
            .map(|(packets, fault)| fault.map_or(packets, |fault| panic!("{fault}")))
            .sum()
    })
}

#[test]
fn readers_see_old_or_new() {
    let writer = Writer::new();
    let (fib, groups, slab) = (
        writer.fib.reader(),
        writer.groups.reader(),
        writer.slab.reader(),
    );
    let readers = Readers { fib, groups, slab };
    let packets = look_up_while(|random| readers.packet(random), |loops| writer.run(loops));
    println!("{packets} packets, {} changes", ROUNDS * BATCH);
}

/// An IPv6 address in one of [`NETWORKS`] /48s.
fn inside(number: u32, random: &mut Random) -> u128 {
    let network = 0x2001_0db8 << 96 | u128::from(number) << 80;
    network | u128::from(random.bits() & 0xffff) << 64 | u128::from(random.bits() & 0xff)
}

/// The entry of a /48 and everything within it: no other network has one of these.
fn entry(number: u32, random: &mut Random) -> Entry {
    Entry::new(16 + random.below(1000) * NETWORKS + number, true)
}

fn change_ip6(fib: &mut ip6::Fib, random: &mut Random) {
    let number = random.below(NETWORKS);
    let address = inside(number, random);
    let len = [48, 56, 64, 72, 80, 120, 126, 128][random.below(8) as usize];
    let prefix = ip6::Prefix::new(address, len).unwrap();
    // The /48 itself is always there.
    if len == 48 || random.below(2) == 0 {
        fib.insert(prefix, entry(number, random)).unwrap();
    } else {
        fib.remove(prefix);
    }
}

fn look_up_ip6(reader: &ip6::Reader, random: &mut Random) -> Result<(), String> {
    let number = random.below(NETWORKS);
    let found = reader.lookup(&inside(number, random));
    let ours = !found.is_special() && (found.group() - 16) % NETWORKS == number;
    ours.then_some(())
        .ok_or_else(|| format!("network {number}: {found:?}"))
}

/// Each IPv6 /48 has entries of its own. A look-up finds one of them, old or new, while nodes come
/// and go around it.
#[test]
fn readers_of_ip6_see_old_or_new() {
    let mut fib = ip6::Fib::new(
        Cells::mapped(ip6::FIRST_WORDS).unwrap(),
        Cells::mapped(4096 * ip6::PAGE_WORDS).unwrap(),
        Cells::mapped((1 << 16) * LINE).unwrap(),
    );
    let mut random = Random::new(0x6970_3600);
    for number in 0..NETWORKS {
        let prefix = ip6::Prefix::new(inside(number, &mut random), 48).unwrap();
        fib.insert(prefix, entry(number, &mut random)).unwrap();
    }
    let reader = fib.reader();
    let write = |loops: &Loops| {
        for _ in 0..ROUNDS {
            (0..BATCH).for_each(|_| change_ip6(&mut fib, &mut random));
            let retired = fib.retired();
            grace(loops);
            fib.reclaim(retired);
        }
    };
    let packets = look_up_while(|random| look_up_ip6(&reader, random), write);
    println!("{packets} packets, {} changes, {fib:?}", ROUNDS * BATCH);
}
