//! The live page of a router and a load tester, REST, and Prometheus metrics.
//!
//! A [`Server`] watches the router by its control socket ([`watch`]); page, REST (`api`) and
//! metrics (`metrics`) read what is known, so that many viewers cost the router no more than one.
//! `tester` runs load tests for the page. `guard` and `rights` say who may ask, and what.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

#[expect(unused_qualifications, reason = "in what utoipa generates")]
mod api;
mod app;
mod guard;
mod metrics;
mod page;
mod problem;
mod rights;
mod server;
mod site;
mod tester;
mod token;

pub use server::{Options, Server, StartError};
