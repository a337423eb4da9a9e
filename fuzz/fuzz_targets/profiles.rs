//! A compiled profile.
#![cfg_attr(fuzzing, no_main)]

use loadgen::clock::Nanos;
use loadgen::model::fields::Step;
use loadgen::model::load::Load;
use loadgen::model::profile;
use loadgen::model::stream::base_rates;
use loadgen::model::units::{Bits, FCS, MAX_FRAME};
use loadgen::source::fields::Fields;
use wire::eth::MIN_FRAME;

/// It is refused with words, or read: then its frames are no longer than announced, those that carry
/// a checksum carry the right one, and its rates are numbers.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let streams = match profile::parse("fuzz.json", &text) {
        Ok(streams) => streams,
        Err(error) => return assert!(error.to_string().contains("fuzz.json"), "{error}"),
    };
    assert!(!streams.is_empty());
    let mut out = vec![0; MAX_FRAME];
    for stream in &streams {
        let mut fields = Fields::new(stream, 3, 0);
        for _ in 0..5 {
            let len = fields.write(Nanos(7), &mut out);
            assert!(len <= stream.frame_len());
            assert!((MIN_FRAME..=MAX_FRAME).contains(&len), "{len}");
            if let Some(Step::Checksum4 { offset }) = stream.steps.last()
                && offset + 20 <= len
                && stream.mark.is_none()
            {
                let ip = &out[*offset..len];
                let header = &ip[..(usize::from(ip[0] & 15) * 4).clamp(20, ip.len())];
                assert_eq!(wire::checksum::of(header), 0, "{header:02x?}");
            }
        }
    }
    let rates = base_rates(&streams, Some(Bits(10e9))).expect("the line is known");
    let rated: Vec<_> = streams.into_iter().zip(rates).collect();
    // All of them may be dummies.
    let Some(load) = Load::of(&rated) else { return };
    assert!(load.base.0 > 0.0 && load.base.0.is_finite(), "{load:?}");
    let sizes = (MIN_FRAME + FCS) as f64 * 0.999..(MAX_FRAME + FCS) as f64 * 1.001;
    assert!(sizes.contains(&load.size), "{load:?}");
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check(bytes));
