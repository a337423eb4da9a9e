//! Who may change something: whoever has the token.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};

use crate::app::App;
use crate::problem::Problem;
use crate::token::Token;

/// Whether the request has the token.
pub(crate) struct Authorized(bool);

impl Authorized {
    /// # Errors
    /// It has not; the answer says which file it is in.
    pub fn or_refuse(&self, app: &App) -> Result<(), Problem> {
        if self.0 {
            return Ok(());
        }
        let file = app.token.path().display();
        let why = format!("this needs the token in {file} (Authorization: Bearer TOKEN)");
        Err(Problem::new(StatusCode::UNAUTHORIZED, why))
    }
}

impl FromRequestParts<Arc<App>> for Authorized {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Self, Self::Rejection> {
        Ok(Authorized(has_token(&parts.headers, &app.token)))
    }
}

fn has_token(headers: &HeaderMap, token: &Token) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|v| v.to_str().ok());
    // The scheme is case-insensitive (RFC 9110 section 11.1).
    given
        .and_then(|given| given.split_once(' '))
        .is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && token.is(given.trim())
        })
}
