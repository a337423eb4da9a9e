//! Things that workers read by number: published with the snapshot, and replaced one by one.

use std::sync::Arc;

/// By number; `None`: there is none of it, as of all numbers behind the last.
pub(crate) type ByNumber<T> = Arc<[Option<Arc<T>>]>;

/// Puts one, or none, in place of what has this number. Who reads goes on with what was there.
pub(crate) fn put<T>(all: &mut ByNumber<T>, number: u16, one: Option<T>) {
    let at = usize::from(number);
    let mut copy = all.to_vec();
    copy.resize(copy.len().max(at + 1), None);
    copy[at] = one.map(Arc::new);
    *all = copy.into();
}
