//! The access control lists, policies and translation rules of the configuration, as the router has
//! them.

use std::collections::BTreeMap;

use control::config::rules::{self, Lists};
use control::config::{Address, Desired, Fields, Nat, Policy, PrefixList, Term};
use router::Change;

use crate::routing::Routing;

/// The ACLs, policies and translation rules, and the prefix lists that they name.
pub struct Filters {
    lists: Lists,
    acls: BTreeMap<String, Vec<Term>>,
    policies: BTreeMap<String, Policy>,
    nat: Nat,
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
            policies: BTreeMap::new(),
            nat: Nat::default(),
        };
        for (name, acl) in &config.acls {
            filters.set_acl(name, Some(&acl.terms), routing)?;
        }
        for (name, policy) in &config.policies {
            filters.set_policy(name, Some(policy), routing)?;
        }
        if config.nat != Nat::default() {
            filters.set_nat(&config.nat, routing)?;
        }
        Ok(filters)
    }

    /// A prefix list has these members from now on, in all ACLs and policies that name it; `None`:
    /// it goes.
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
        let changes = self.naming(name)?;
        routing.configure(changes).map_err(|e| e.to_string())
    }

    /// What the router has to hear of all that names a prefix list.
    fn naming(&self, list: &str) -> Result<Vec<Change>, String> {
        let names = |fields: &Fields| fields.lists().any(|name| name == list);
        let mut changes = Vec::new();
        for (acl, terms) in &self.acls {
            if terms.iter().any(|term| names(&term.fields)) {
                changes.push(self.acl(acl, terms)?);
            }
        }
        for (name, policy) in &self.policies {
            if policy.rules.iter().any(|rule| names(&rule.fields)) {
                changes.push(self.policy(name, policy));
            }
        }
        if self.nat.fields().any(names) {
            changes.push(Change::NatSet(rules::nat(&self.nat, &self.lists)));
        }
        Ok(changes)
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
            Some(terms) => self.acl(name, terms)?,
            None => Change::AclDelete(name.to_owned()),
        };
        routing.configure(vec![change]).map_err(|e| e.to_string())?;
        match terms {
            Some(terms) => self.acls.insert(name.to_owned(), terms.to_vec()),
            None => self.acls.remove(name),
        };
        Ok(())
    }

    /// A policy is this from now on; `None`: it goes.
    ///
    /// # Errors
    /// The router's.
    pub fn set_policy(
        &mut self,
        name: &str,
        policy: Option<&Policy>,
        routing: &mut Routing,
    ) -> Result<(), String> {
        let change = match policy {
            Some(policy) => self.policy(name, policy),
            None => Change::PolicyDelete(name.to_owned()),
        };
        routing.configure(vec![change]).map_err(|e| e.to_string())?;
        match policy {
            Some(policy) => self.policies.insert(name.to_owned(), policy.clone()),
            None => self.policies.remove(name),
        };
        Ok(())
    }

    /// Addresses are translated so from now on.
    ///
    /// # Errors
    /// The router's.
    pub fn set_nat(&mut self, nat: &Nat, routing: &mut Routing) -> Result<(), String> {
        let change = Change::NatSet(rules::nat(nat, &self.lists));
        routing.configure(vec![change]).map_err(|e| e.to_string())?;
        self.nat = nat.clone();
        Ok(())
    }

    fn acl(&self, name: &str, terms: &[Term]) -> Result<Change, String> {
        let rules = rules::rules(terms, &self.lists);
        let rules = rules.map_err(|term| {
            format!("permit+reflect of acl {name} term {term}: not supported yet")
        })?;
        Ok(Change::AclSet {
            name: name.to_owned(),
            rules,
        })
    }

    fn policy(&self, name: &str, policy: &Policy) -> Change {
        Change::PolicySet {
            name: name.to_owned(),
            policy: rules::policy(policy, &self.lists),
        }
    }
}

#[cfg(test)]
mod tests {
    use control::config::Config;

    use super::*;

    #[test]
    fn a_prefix_list_changes_what_names_it_and_nothing_else() {
        let text = "prefixlists: { pp: { members: [ 10.0.0.0/8 ] }, qq: { members: [ 192.0.2.1, 192.0.2.2 ] } }\n\
                    acls: { aa: { terms: [ { action: deny, destination: pp } ] }, bb: { terms: [ { action: deny } ] } }\n\
                    policies: { aa: { rules: [ { action: drop }, { action: accept, source: qq } ] }, bb: { rules: [ { action: accept, source: pp, destination: qq } ] }, cc: {} }\n\
                    nat: { source: [ { source: qq, to: interface }, { to: none } ] }";
        let config = Config::parse("x", text).expect("valid");
        let acls = config.acls.into_iter().map(|(name, acl)| (name, acl.terms));
        let filters = Filters {
            lists: config.prefixlists,
            acls: acls.collect(),
            policies: config.policies.into_iter().collect(),
            nat: config.nat,
        };
        // What is told: the name, and the matches of each rule.
        let told = |list: &str| {
            let changes = filters.naming(list).expect("the router has them");
            let told = changes.into_iter().map(|change| match change {
                Change::AclSet { name, rules } => (format!("acl {name}"), vec![rules.len()]),
                Change::PolicySet { name, policy } => {
                    let rules = policy.rules.iter().map(|rule| rule.packets.len());
                    (format!("policy {name}"), rules.collect())
                }
                Change::NatSet(nat) => {
                    let rules = nat.source.iter().map(|rule| rule.packets.len());
                    ("nat".to_owned(), rules.collect())
                }
                other => panic!("{other:?}"),
            });
            told.collect::<Vec<_>>()
        };
        let wanted = |text: &str, matches: &[usize]| (text.to_owned(), matches.to_vec());
        assert_eq!(
            told("pp"),
            [wanted("acl aa", &[1]), wanted("policy bb", &[2])]
        );
        assert_eq!(
            told("qq"),
            [
                wanted("policy aa", &[2, 2]),
                wanted("policy bb", &[2]),
                wanted("nat", &[2, 1])
            ]
        );
        assert_eq!(told("zz"), []);
    }
}
