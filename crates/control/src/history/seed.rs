//! What makes a router's own Ethernet addresses differ from those of other routers.

use std::fs;
use std::path::Path;

use router::change::Mac;

use super::disk::Disk;
use crate::random;

/// The file of the seed in a router's directory.
const FILE: &str = "seed";
/// Where Linux has the number of an installation (machine-id(5)).
const MACHINE: &str = "/etc/machine-id";

/// What the Ethernet addresses of a router's own devices are made of, with their names: random, and
/// the same after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed([u8; 16]);

impl Seed {
    /// Of these bytes.
    pub fn new(bytes: [u8; 16]) -> Seed {
        Seed(bytes)
    }

    /// The seed in a router's directory, made if there is none. Where it cannot be written, it
    /// follows from the machine and the directory's path. With a note for the operator, if addresses
    /// are not those of before, or will not be these.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn of(directory: &Path) -> Result<(Seed, Option<String>), String> {
        Seed::kept(directory, Path::new(MACHINE))
    }

    fn kept(directory: &Path, machine: &Path) -> Result<(Seed, Option<String>), String> {
        let disk = Disk::new(directory);
        let lost = match disk.read(FILE) {
            Ok(Some(text)) => match Seed::parse(&text) {
                Some(seed) => return Ok((seed, None)),
                None => Some(format!(
                    "{} is damaged: it is not 32 hex digits",
                    disk.path(FILE).display()
                )),
            },
            Ok(None) => None,
            Err(why) => Some(why),
        };
        let lost = lost.map(|why| format!("{why}; interfaces without `mac` get other addresses"));
        let seed = Seed::random()?;
        let Err(why) = disk.write(FILE, &format!("{}\n", seed.digits())) else {
            return Ok((seed, lost));
        };
        match fs::read(machine) {
            Ok(machine) => Ok((Seed::of_machine(&machine, directory), lost)),
            Err(_) => {
                let then = "interfaces without `mac` get other addresses at the next start";
                Ok((seed, Some(format!("{why}; {then}"))))
            }
        }
    }

    fn random() -> Result<Seed, String> {
        let bytes = random::bytes();
        bytes
            .map(Seed)
            .map_err(|why| format!("the kernel has no random bytes: {why}"))
    }

    /// Routers of one machine have directories of their own.
    fn of_machine(machine: &[u8], directory: &Path) -> Seed {
        let mut bytes = [0; 16];
        for (half, salt) in bytes.chunks_exact_mut(8).zip(0u8..) {
            let path = directory.as_os_str().as_encoded_bytes();
            half.copy_from_slice(&hash(&[&[salt], machine, path]).to_be_bytes());
        }
        Seed(bytes)
    }

    fn digits(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    fn parse(text: &str) -> Option<Seed> {
        let digits = text.trim_end();
        let right = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = right.then(|| u128::from_str_radix(digits, 16));
        Some(Seed(number?.ok()?.to_be_bytes()))
    }

    /// The locally administered address of the device with this name: other interfaces may come and
    /// go.
    pub fn mac(self, name: &str) -> Mac {
        let [a, b, c, d, ..] = hash(&[&self.0, name.as_bytes()]).to_be_bytes();
        Mac([0x02, 0xfe, a, b, c, d])
    }
}

/// FNV-1a, mixed as MurmurHash3 ends: each bit of the input tells on each bit of the result.
fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().copied().flatten();
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    });
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_for_each_router() {
        let place = tempfile::tempdir().expect("a directory");
        let router = |name: &str| Seed::of(&place.path().join(name)).expect("random bytes");
        let (one, two) = (router("one"), router("two"));
        assert_eq!((&one.1, &two.1), (&None, &None));
        assert_eq!((router("one"), router("two")), (one.clone(), two.clone()));
        let mac = |seed: Seed, name| seed.mac(name).0;
        assert_ne!(mac(one.0, "BondEthernet0"), mac(two.0, "BondEthernet0"));
        assert_ne!(mac(one.0, "loop0"), mac(one.0, "loop1"));
        // Locally administered, of one station.
        assert_eq!(mac(one.0, "loop0")[0] & 3, 2);
    }

    #[test]
    fn a_damaged_one_is_replaced_and_the_operator_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        for wrong in [
            "",
            "0123",
            &"+".repeat(32),
            &"g".repeat(32),
            &"0".repeat(33),
        ] {
            fs::write(place.path().join(FILE), wrong).expect("written");
            let (seed, note) = Seed::of(place.path()).expect("random bytes");
            let note = note.expect("a note");
            assert!(note.contains("seed is damaged"), "{note}");
            assert_eq!(Seed::of(place.path()), Ok((seed, None)));
        }
        // What cannot be read cannot be replaced either, if it is a directory.
        fs::remove_file(place.path().join(FILE)).expect("there");
        fs::create_dir(place.path().join(FILE)).expect("made");
        let (seed, note) = Seed::of(place.path()).expect("random bytes");
        assert!(note.expect("a note").contains("seed"));
        assert_eq!(Seed::of(place.path()).expect("random bytes").0, seed);
    }

    #[test]
    fn without_a_directory_it_is_of_the_machine_and_of_the_place() {
        let place = tempfile::tempdir().expect("a directory");
        let machine = |id: &str| {
            let file = place.path().join(id);
            fs::write(&file, format!("{id}\n")).expect("written");
            file
        };
        // No directory can be made there.
        let nowhere = |name: &str| Path::new("/proc/parshall").join(name);
        let seed = |directory: &str, id| Seed::kept(&nowhere(directory), &machine(id));
        let (first, note) = seed("one", "a").expect("random bytes");
        assert_eq!(note, None);
        assert_eq!(seed("one", "a"), Ok((first, None)));
        assert_ne!(seed("two", "a").expect("random bytes").0, first);
        assert_ne!(seed("one", "b").expect("random bytes").0, first);

        let lost = place.path().join("no such file");
        let random = || Seed::kept(&nowhere("one"), &lost).expect("random bytes");
        let (once, again) = (random(), random());
        assert_ne!(once.0, again.0);
        assert!(once.1.expect("a note").contains("at the next start"));
    }
}
