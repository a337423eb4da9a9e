//! Page, REST and metrics over a control socket whose answers the test gives.

mod browser;
mod http;
mod loadtest;
mod metrics;
mod page;
mod rest;
mod router;
