//! sFlow's samples: of the interfaces that ask for them, one packet in N, whatever becomes of it.

use router::sflow::{Counted, Sample};
use router::{Change, L2, arc};
use wire::sflow::MOST_HEADER;

use crate::harness::*;

fn sampled(interface: u16, rate: Option<u32>) -> Change {
    Change::FeatureSet {
        interface,
        feature: arc::SAMPLED,
        argument: rate,
    }
}

fn samples(lab: &mut Lab) -> Vec<Sample> {
    lab.router.samples().collect()
}

/// Sends in frames in portions that the ring has room for, and returns the samples.
fn receive(lab: &mut Lab, interface: u16, count: usize) -> Vec<Sample> {
    let mut all = Vec::new();
    for n in 0..count / 1000 {
        let frames = (0..1000).map(|m| udp(FAR).id((n * 1000 + m) as u16).frame());
        lab.receive(interface, frames);
        all.extend(samples(lab));
    }
    all
}

#[test]
fn only_what_comes_in_where_it_is_asked_for_is_sampled() {
    let mut lab = Lab::new();
    assert_eq!(receive(&mut lab, 1, 3000), [], "nobody asks for it");
    assert_eq!(lab.edge("sflow", "Input"), 0, "and nothing passes it");
    let want = lab.sent(2).len();

    lab.apply(vec![sampled(1, Some(100))]);
    let got = receive(&mut lab, 1, 3000);
    assert!((20..=40).contains(&got.len()), "{}", got.len());
    assert_eq!(lab.sent(2).len(), want, "all go on");
    assert_eq!(lab.edge("sflow", "Input"), 3000);
    let frame = udp(FAR).frame();
    for sample in &got {
        assert_eq!(sample.interface, 1);
        assert_eq!(sample.length as usize, frame.len());
        // As it came in: the router has not lived in it yet.
        assert_eq!(sample.header()[..14], frame[..14]);
        assert_eq!(sample.header().len(), frame.len());
        assert_eq!(sample.header()[22], frame[22], "time to live");
    }
    let counted = lab.router.counted(1);
    assert_eq!((counted.packets.rx_packets, counted.lost), (6000, 0));

    lab.receive(2, [udp(FAR).frame()]);
    assert_eq!(lab.edge("sflow", "Input"), 3000, "another interface's");

    lab.apply(vec![sampled(1, None)]);
    assert_eq!(receive(&mut lab, 1, 3000), []);
    assert_eq!(lab.edge("sflow", "Input"), 3000);
    lab.check_buffers(0);
}

/// Half a million packets at one in 200: 2,500 samples, whose deviation is about 30. The distances
/// are spread over all up to twice the mean.
#[test]
fn one_in_n_is_sampled_at_random_distances() {
    let mut lab = Lab::new();
    lab.apply(vec![sampled(1, Some(200))]);
    let mut count = 0;
    let mut distances = [0; 4];
    let mut last = None;
    for n in 0..500_u64 {
        lab.receive(1, (0..1000).map(|m| udp(FAR).id(m).frame()));
        for sample in samples(&mut lab) {
            count += 1;
            let id = u16::from_be_bytes([sample.header()[18], sample.header()[19]]);
            let at = n * 1000 + u64::from(id);
            if let Some(last) = last.replace(at) {
                let distance = at - last;
                assert!(distance <= 400, "{distance}");
                distances[(distance as usize * 4 / 401).min(3)] += 1;
            }
        }
        lab.sent(2);
    }
    assert!((2300..2700).contains(&count), "{count}");
    let quarter = count / 4;
    for part in distances {
        assert!((quarter / 2..quarter * 2).contains(&part), "{distances:?}");
    }
}

/// Workers do not take the same packets, and each counts.
#[test]
fn each_worker_samples_what_its_ports_bring() {
    let mut lab = Lab::with_table(2, 64, 8192, None, router::nodes::table).wired();
    lab.apply(vec![sampled(1, Some(100)), sampled(2, Some(1000))]);
    let mut of = [0, 0];
    for interface in [1, 2] {
        for sample in receive(&mut lab, interface, 100_000) {
            assert_eq!(sample.interface, interface);
            of[usize::from(interface) - 1] += 1;
        }
    }
    assert!((850..1150).contains(&of[0]), "{of:?}");
    assert!((60..140).contains(&of[1]), "{of:?}");
}

/// From one in a million to one in a hundred: at once, not after a million packets. And it is still
/// so when the interface comes back.
#[test]
fn the_rate_changes_in_place_and_outlasts_the_device() {
    let mut lab = Lab::new();
    lab.apply(vec![sampled(1, Some(1_000_000))]);
    let few = receive(&mut lab, 1, 5000).len();
    assert!(few <= 1, "{few}");
    lab.apply(vec![sampled(1, Some(100))]);
    let got = receive(&mut lab, 1, 5000).len();
    assert!((30..75).contains(&got), "{got}");
    lab.apply(vec![Change::InterfaceDelete(1)]);
    lab.apply(connected(1));
    let got = receive(&mut lab, 1, 5000).len();
    assert!((30..75).contains(&got), "{got}");
    lab.apply(vec![Change::FeaturesDelete(1)]);
    assert_eq!(receive(&mut lab, 1, 5000), []);
}

/// What nobody collects is lost, and counted for its interface; packets are not.
#[test]
fn samples_without_room_are_counted() {
    let mut lab = Lab::new();
    lab.apply(vec![sampled(1, Some(100))]);
    for _ in 0..100 {
        lab.receive(1, (0..1000).map(|m| udp(FAR).id(m).frame()));
    }
    let Counted { packets, lost } = lab.router.counted(1);
    assert_eq!(packets.rx_packets, 100_000);
    let kept = samples(&mut lab).len() as u64;
    assert_eq!(kept, 512);
    assert!((850..1150).contains(&(kept + lost)), "{lost}");
    assert_eq!(lab.router.counted(2).lost, 0);
    assert_eq!(lab.sent(2).len(), 100_000);
    lab.check_buffers(0);
}

/// Frames of any length and kind, at an interface of any kind that has a port: even those that are
/// dropped afterwards. Of a long one the begin is taken.
#[test]
fn frames_of_any_kind_are_sampled() {
    let mut lab = Lab::new();
    lab.apply(vec![
        sampled(1, Some(100)),
        Change::InterfaceSet(router::Interface {
            l2: Some(L2::CrossConnect(3)),
            ..interface(1)
        }),
    ]);
    let frames = (0..3000).map(|n: usize| vec![n as u8; n % 1500]);
    lab.receive(1, frames);
    let got = samples(&mut lab);
    assert!((20..=40).contains(&got.len()), "{}", got.len());
    for sample in &got {
        let length = sample.length as usize;
        assert_eq!(sample.header().len(), length.min(MOST_HEADER));
        let fill = sample.header().first().copied().unwrap_or_default();
        assert!(sample.header().iter().all(|b| *b == fill));
    }
    assert!(got.iter().any(|s| s.header().len() == MOST_HEADER));
    lab.check_buffers(0);
}
