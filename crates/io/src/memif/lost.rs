//! Memory that its owner takes away.
//!
//! A peer may cut the file behind a region short, punch holes into it, or leave no huge page for
//! them: whoever touches such a page gets SIGBUS. The handler here maps zero pages over the whole
//! region and marks it lost; the thread goes on with zeros, which are checked like all that a peer
//! writes, and the connection is ended. (Display servers treat their clients' buffers in the same
//! way.) A SIGBUS of anything else does what it did before.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock};

/// The reason for the end of the connection then.
pub const REASON: &str =
    "shared memory went away (its file was cut short, or no huge pages are left)";
/// Regions of all connections of the process, a few for each. The handler looks at them all.
const PLACES: usize = 2048;

/// The places of regions, for the handler: it may not take locks.
static PLACED: [Place; PLACES] = [const { Place::empty() }; PLACES];
/// Held while [`PLACED`] is being changed.
static CHANGING: Mutex<()> = Mutex::new(());
/// Counts lost regions.
static LOSSES: AtomicU32 = AtomicU32::new(0);
/// The action for SIGBUS before ours.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// One region's place, under a sequence lock: odd versions are being changed, and a reader that
/// finds the same even version before and after has words that belong together. The fences keep its
/// two looks at the version around the words.
#[derive(Debug)]
struct Place {
    version: AtomicU32,
    base: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicBool,
}

impl Place {
    const fn empty() -> Self {
        Self {
            version: AtomicU32::new(0),
            base: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// The caller holds [`CHANGING`].
    fn set(&self, base: usize, bytes: usize) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.base.store(base, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.lost.store(false, Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// Base and length, if nobody is changing them. The region that a fault is in is in use and
    /// does not change.
    fn get(&self) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::Acquire);
        let place = (
            self.base.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        fence(Ordering::Acquire);
        (version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed))
            .then_some(place)
    }

    /// Maps zeros over the region if `address` lies in it.
    fn replace(&self, address: usize) -> bool {
        let Some((base, bytes)) = self.get() else {
            return false;
        };
        if address.wrapping_sub(base) >= bytes {
            return false;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: replaces exactly a mapping of ours, which lives for as long as its place is
        // taken; nobody has a reference into it, only addresses.
        let at = unsafe { libc::mmap(base as *mut c_void, bytes, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return false;
        }
        // The mark before the count: a thread that sees the count sees the mark.
        self.lost.store(true, Ordering::Release);
        LOSSES.fetch_add(1, Ordering::Release);
        true
    }
}

/// Looks after one mapping of shared memory.
#[derive(Debug)]
pub struct Watch(&'static Place);

impl Watch {
    /// Watches `bytes` bytes from `base` on, which is all of a mapping, until it is dropped.
    ///
    /// # Errors
    /// Too many regions, or a system that lets nobody handle SIGBUS.
    pub fn new(base: NonNull<c_void>, bytes: usize) -> io::Result<Self> {
        let _changing = CHANGING.lock().unwrap_or_else(|e| e.into_inner());
        if BEFORE.get().is_none() {
            let _ = BEFORE.set(install()?);
        }
        let free = |p: &&Place| p.bytes.load(Ordering::Relaxed) == 0;
        let place = PLACED
            .iter()
            .find(free)
            .ok_or_else(|| io::Error::other(format!("{PLACES} regions of peers are mapped")))?;
        place.set(base.as_ptr() as usize, bytes);
        Ok(Self(place))
    }

    /// True if the memory went away and zeros have taken its place.
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _changing = CHANGING.lock().unwrap_or_else(|e| e.into_inner());
        self.0.set(0, 0);
    }
}

/// Counts the regions that were lost since the start; one load. A thread that sees a higher count
/// also sees which region it was.
#[inline(always)]
pub fn losses() -> u32 {
    LOSSES.load(Ordering::Acquire)
}

/// Puts the handler in place and returns what was there before.
fn install() -> io::Result<libc::sigaction> {
    let handler = on_bus_error as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: an all-zero sigaction is valid: no flags, empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut before = action;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler only reads atomics and makes the system calls mmap and sigaction.
    match unsafe { libc::sigaction(libc::SIGBUS, &action, &mut before) } {
        0 => Ok(before),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a siginfo.
    let info = unsafe { &*info };
    let code = info.si_code;
    // SAFETY: for SIGBUS it holds an address.
    let address = unsafe { info.si_addr() } as usize;
    // Codes of the kernel's own are positive; kill(2) sends no address.
    if code > 0 && PLACED.iter().any(|p| p.replace(address)) {
        return;
    }
    // Not ours. With the earlier handler back, a fault comes again by itself; a signal that
    // somebody sent has to be raised again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: what sigaction(2) gave us.
        unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        if code <= 0 {
            // SAFETY: raise(3) may be called from handlers.
            unsafe { libc::raise(signal) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use ::testbed::only;

    use crate::memif::region::Region;

    /// A region, and what cuts its file short.
    fn region(bytes: u64) -> (Region, impl Fn()) {
        let (region, fd) = Region::create(bytes).expect("memory");
        // SAFETY: a plain system call.
        let cut = move || assert_eq!(unsafe { libc::ftruncate(fd.as_raw_fd(), 0) }, 0);
        (region, cut)
    }

    fn read(region: &Region, at: u32) -> u8 {
        let address = region.at(at, 1).expect("within");
        // SAFETY: one byte within the region; volatile, because it comes and goes.
        unsafe { address.read_volatile() }
    }

    #[test]
    fn lost_memory_reads_as_zeros_and_only_that_region_is_marked() {
        let (gone, cut) = region(1 << 20);
        let (other, _keep) = region(1 << 20);
        for r in [&gone, &other] {
            let last = r.at((1 << 20) - 1, 1).expect("within");
            // SAFETY: one byte within the region.
            unsafe { last.write_volatile(7) };
        }
        let before = super::losses();
        cut();
        assert!(!gone.is_lost());
        assert_eq!(read(&gone, (1 << 20) - 1), 0);
        assert!(gone.is_lost() && !other.is_lost());
        assert!(super::losses() > before);
        assert_eq!(read(&other, (1 << 20) - 1), 7);
        drop(gone);
        let (next, _keep) = region(4096);
        assert!(!next.is_lost(), "its place is used again, its mark is not");
    }

    #[test]
    fn a_bus_error_elsewhere_still_ends_the_process() {
        const VICTIM: &str = "PARSHALL_TEST_BUS_ERROR";
        if std::env::var_os(VICTIM).is_some() {
            let (_ours, _keep) = region(4096);
            let (theirs, cut) = region(4096);
            theirs.watch().0.set(0, 0);
            cut();
            read(&theirs, 0);
            return;
        }
        let victim = only("memif::lost::tests::a_bus_error_elsewhere_still_ends_the_process");
        let output = victim
            .env(VICTIM, "1")
            .output(Duration::from_secs(60))
            .expect("run it");
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
    }
}
