//! Common part of the writer's sides of both families' tables.

use crate::entry::Entry;
use crate::ids::{Full, Retired};
use crate::ip6::{Leaf, Page};
use crate::prefix::{Address, Prefix};
use crate::rib::Rib;
use crate::{ip4, ip6};

/// A table of routes: [`ip4::Fib`] or [`ip6::Fib`], which say what each method does.
pub trait Fib {
    /// An address as a number.
    type Address: Address;
    /// Parts of the table that wait for the end of a grace period.
    type Retired;

    /// Adds a route or replaces the one of this prefix, whose entry it returns.
    ///
    /// # Errors
    /// [`Full`]: nothing has changed.
    fn insert(
        &mut self,
        prefix: Prefix<Self::Address>,
        entry: Entry,
    ) -> Result<Option<Entry>, Full>;

    /// Removes a route and returns its entry.
    fn remove(&mut self, prefix: Prefix<Self::Address>) -> Option<Entry>;

    /// The routes.
    fn routes(&self) -> &Rib<Self::Address, Entry>;

    /// Takes what is no longer used since the last call; `None` if that is nothing.
    fn retired(&mut self) -> Option<Self::Retired>;

    /// Makes usable again what no reader holds any more.
    fn reclaim(&mut self, retired: Self::Retired);
}

impl Fib for ip4::Fib {
    type Address = u32;
    type Retired = Retired<Self>;

    fn insert(&mut self, prefix: ip4::Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        self.insert(prefix, entry)
    }

    fn remove(&mut self, prefix: ip4::Prefix) -> Option<Entry> {
        self.remove(prefix)
    }

    fn routes(&self) -> &Rib<u32, Entry> {
        self.routes()
    }

    fn retired(&mut self) -> Option<Self::Retired> {
        let retired = self.retired();
        (!retired.is_empty()).then_some(retired)
    }

    fn reclaim(&mut self, retired: Self::Retired) {
        self.reclaim(retired);
    }
}

impl Fib for ip6::Fib {
    type Address = u128;
    type Retired = (Retired<Page>, Retired<Leaf>);

    fn insert(&mut self, prefix: ip6::Prefix, entry: Entry) -> Result<Option<Entry>, Full> {
        self.insert(prefix, entry)
    }

    fn remove(&mut self, prefix: ip6::Prefix) -> Option<Entry> {
        self.remove(prefix)
    }

    fn routes(&self) -> &Rib<u128, Entry> {
        self.routes()
    }

    fn retired(&mut self) -> Option<Self::Retired> {
        let (pages, leaves) = self.retired();
        (!pages.is_empty() || !leaves.is_empty()).then_some((pages, leaves))
    }

    fn reclaim(&mut self, retired: Self::Retired) {
        self.reclaim(retired);
    }
}
