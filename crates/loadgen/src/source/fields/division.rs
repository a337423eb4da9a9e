//! A core's share of the values of a stream's variables.

use super::Fields;
use crate::model::fields::{Op, Variable};
use crate::model::share::Share;

impl Fields {
    /// Leaves to this core its share: it begins as many steps on as its number says, and goes on in
    /// steps that are as many times as long as there are cores. Call it before the first packet.
    pub(super) fn divide(&mut self, share: Share, variables: &[Variable]) {
        let shared: Vec<usize> = (0..variables.len())
            .filter(|&i| self.variables[i].leads && variables[i].is_shared)
            .collect();
        let random = self.random;
        for variable in &mut self.variables {
            variable.begin(&mut self.random);
        }
        for _ in 0..share.core {
            for &lead in &shared {
                if variables[lead].op != Op::Random {
                    self.step(lead);
                }
            }
        }
        self.random = random;
        for variable in &mut self.variables {
            variable.start_here();
        }
        for lead in shared {
            self.variables[lead].divide(share);
        }
        if let Some(cache) = &mut self.cache {
            let size = u32::try_from(share.of(cache.size.into())).unwrap_or(cache.size);
            (cache.size, cache.left) = (size.max(1), size.max(1));
        }
    }
}
