//! Reasons for having no answer, as status and JSON.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection, StringRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::api::Failure;
use serde::Serialize;
use utoipa::ToSchema;

/// A reason for having no answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    #[serde(skip)]
    status: StatusCode,
    /// The reason, for a person; of a configuration a line for each problem.
    error: String,
}

impl Problem {
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        let error = error.into();
        Problem { status, error }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let status = match failure {
            Failure::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::Silent(..) => StatusCode::GATEWAY_TIMEOUT,
            Failure::NotRunning(_) | Failure::Forbidden(_) | Failure::Io(..) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Problem::new(status, failure.to_string())
    }
}

macro_rules! bad_request {
    ($($rejection:ty),*) => {$(
        impl From<$rejection> for Problem {
            fn from(rejection: $rejection) -> Self {
                Problem::new(StatusCode::BAD_REQUEST, rejection.body_text())
            }
        }
    )*};
}
bad_request!(
    JsonRejection,
    PathRejection,
    QueryRejection,
    StringRejection
);
