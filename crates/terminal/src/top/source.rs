//! Where looks come from.

use std::io;
use std::path::PathBuf;

use super::router::Router;
use super::table::{Look, Table};
use super::tester::Tester;
use super::{router, tester};

/// What is shown.
#[derive(Debug, Clone)]
pub enum Subject {
    /// The router whose control socket that is. It need not run yet.
    Router(PathBuf),
    /// The server of T-Rex's RPC at HOST:PORT. It need not run yet.
    Tester(String),
}

/// A subject that is asked once a second, by a thread of its own.
pub enum Source {
    Router(Router),
    Tester(Tester),
}

impl Source {
    pub fn start(subject: &Subject) -> io::Result<Self> {
        Ok(match subject {
            Subject::Router(socket) => Self::Router(Router::start(socket)?),
            Subject::Tester(address) => Self::Tester(Tester::start(address)?),
        })
    }

    /// What it is, for the screen's title.
    pub fn name(&self) -> String {
        match self {
            Self::Router(router) => router.name.clone(),
            Self::Tester(tester) => tester.name.clone(),
        }
    }

    pub fn tables(&self) -> &'static [Table] {
        match self {
            Self::Router(_) => router::TABLES,
            Self::Tester(_) => tester::TABLES,
        }
    }

    /// What is there since the last call, if there is something new.
    pub fn fresh(&mut self) -> Option<Result<Look, String>> {
        match self {
            Self::Router(router) => router.fresh(),
            Self::Tester(tester) => tester.fresh(),
        }
    }
}
