//! The access control lists of the configuration, as the router has them.

use std::collections::BTreeMap;

use control::config::rules::{Lists, rules};
use control::config::{Address, Desired, PrefixList, Term};
use router::Change;

use crate::routing::Routing;

/// The ACLs, and the prefix lists that they name.
pub struct Filters {
    lists: Lists,
    acls: BTreeMap<String, Vec<Term>>,
}

impl Filters {
    /// Those of the start.
    ///
    /// # Errors
    /// The router's.
    pub fn new(config: &Desired, routing: &mut Routing) -> Result<Self, String> {
        let mut filters = Filters {
            lists: config.prefixlists.clone(),
            acls: BTreeMap::new(),
        };
        for (name, acl) in &config.acls {
            filters.set_acl(name, Some(&acl.terms), routing)?;
        }
        Ok(filters)
    }

    /// A prefix list has these members from now on, in all ACLs that name it; `None`: it goes.
    ///
    /// # Errors
    /// The router's.
    pub fn set_list(
        &mut self,
        name: &str,
        members: Option<&[Address]>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        match members {
            None => drop(self.lists.shift_remove(name)),
            Some(members) => {
                let list = PrefixList {
                    description: None,
                    members: members.to_vec(),
                };
                self.lists.insert(name.to_owned(), list);
            }
        }
        let names = |term: &Term| {
            let mut ends = [&term.source, &term.destination].into_iter().flatten();
            ends.any(|end| end == name)
        };
        let with = self.acls.iter();
        let with = with.filter(|(_, terms)| terms.iter().any(names));
        let changes: Result<Vec<_>, _> = with.map(|(acl, terms)| self.change(acl, terms)).collect();
        routing.configure(changes?).map_err(|e| e.to_string())
    }

    /// An ACL has these terms from now on; `None`: it goes.
    ///
    /// # Errors
    /// It is none that the router can have.
    pub fn set_acl(
        &mut self,
        name: &str,
        terms: Option<&[Term]>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let change = match terms {
            Some(terms) => self.change(name, terms)?,
            None => Change::AclDelete(name.to_owned()),
        };
        routing.configure(vec![change]).map_err(|e| e.to_string())?;
        match terms {
            Some(terms) => self.acls.insert(name.to_owned(), terms.to_vec()),
            None => self.acls.remove(name),
        };
        Ok(())
    }

    fn change(&self, name: &str, terms: &[Term]) -> Result<Change, String> {
        let rules = rules(terms, &self.lists);
        let rules = rules.map_err(|term| {
            format!("permit+reflect of acl {name} term {term}: not supported yet")
        })?;
        Ok(Change::AclSet {
            name: name.to_owned(),
            rules,
        })
    }
}
