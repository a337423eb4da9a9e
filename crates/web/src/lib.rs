//! The live page of a router, REST, and Prometheus metrics.
//!
//! A [`Server`] is a client of the router's control socket, as `parshall show` is. One thread
//! (`poll`) asks the router once a second and keeps ten minutes of samples; page, REST (`api`)
//! and metrics (`metrics`) read those, so that many viewers cost the router no more than one.
//! `guard` says who may ask, and what.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

#[expect(unused_qualifications, reason = "in what utoipa generates")]
mod api;
mod app;
mod guard;
mod live;
mod metrics;
mod model;
mod page;
mod poll;
mod problem;
mod sample;
mod server;
mod site;
mod token;

pub use server::{Options, Server, StartError};
