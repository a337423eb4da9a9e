//! REST of the load tester.
#![expect(unused_qualifications, reason = "in what utoipa generates")]

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::asked::Asked;
use super::{LoadTest, REPORT, RESULT, StartError};
use crate::app::App;
use crate::problem::Problem;
use crate::rights::Authorized;

/// A report has its scripts in it. In a sandbox it is nobody's page, so they reach nothing here.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; \
     script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// The latest load test.
#[utoipa::path(get, path = "/api/v1/loadtest", responses((status = 200, body = LoadTest)))]
async fn loadtest(State(app): State<Arc<App>>) -> Json<LoadTest> {
    Json(app.tester.now())
}

/// Starts a load test: `parshall loadtest`, whose errors are then in its messages.
#[utoipa::path(post, path = "/api/v1/loadtest", security(("token" = [])), request_body = Asked,
    responses((status = 200, body = LoadTest), (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem), (status = 503, body = Problem)))]
async fn start(
    State(app): State<Arc<App>>,
    authorized: Authorized,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Json<LoadTest>, Problem> {
    authorized.or_refuse(&app)?;
    let Json(asked) = asked?;
    asked
        .check()
        .map_err(|why| Problem::new(StatusCode::BAD_REQUEST, why))?;
    let started = {
        let app = app.clone();
        tokio::task::spawn_blocking(move || app.tester.start(&asked)).await
    };
    match started {
        Ok(Ok(())) => Ok(Json(app.tester.now())),
        Ok(Err(e @ StartError::Running)) => Err(Problem::new(StatusCode::CONFLICT, e.to_string())),
        Ok(Err(e)) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, e.to_string())),
        Err(_) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the page is about to end",
        )),
    }
}

/// Ends the load test as Ctrl-C does: its result is of the time until then.
#[utoipa::path(post, path = "/api/v1/loadtest/stop", security(("token" = [])),
    responses((status = 200, body = LoadTest), (status = 401, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)))]
async fn stop(
    State(app): State<Arc<App>>,
    authorized: Authorized,
) -> Result<Json<LoadTest>, Problem> {
    authorized.or_refuse(&app)?;
    if app.tester.stop() {
        Ok(Json(app.tester.now()))
    } else {
        Err(Problem::new(
            StatusCode::CONFLICT,
            "no load test is running",
        ))
    }
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct From {
    /// Number of the first line that is wanted.
    #[serde(default)]
    from: u64,
}

/// Lines of progress, oldest first: objects as `parshall loadtest --progress json` prints them.
#[derive(Serialize, ToSchema)]
struct Progress {
    /// Number of the first of `lines`; it is higher than asked for if older ones are not kept.
    from: u64,
    lines: Vec<Value>,
}

/// Progress of the latest load test.
#[utoipa::path(get, path = "/api/v1/loadtest/progress", params(From),
    responses((status = 200, body = Progress), (status = 400, body = Problem)))]
async fn progress(
    State(app): State<Arc<App>>,
    query: Result<Query<From>, QueryRejection>,
) -> Result<Json<Progress>, Problem> {
    let (from, lines) = app.tester.progress(query?.from);
    Ok(Json(Progress { from, lines }))
}

/// The result of the latest load test, as `parshall loadtest --json`.
#[utoipa::path(get, path = "/api/v1/loadtest/result",
    responses((status = 200, body = Value), (status = 404, body = Problem)))]
async fn result(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let text = file(&app, RESULT)?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

/// The report of the latest load test, a page.
#[utoipa::path(get, path = "/api/v1/loadtest/report",
    responses((status = 200, body = String, content_type = "text/html"), (status = 404, body = Problem)))]
async fn report(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let text = file(&app, REPORT)?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, REPORT_POLICY),
    ];
    Ok((headers, text).into_response())
}

fn file(app: &App, name: &str) -> Result<String, Problem> {
    match app.tester.file(name) {
        Some(Ok(text)) => Ok(text),
        Some(Err(e)) => Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{name}: {e}"),
        )),
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "there is no result: no load test has ended, or the latest measured nothing",
        )),
    }
}

/// All routes of the load tester.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(loadtest, start))
        .routes(routes!(stop))
        .routes(routes!(progress))
        .routes(routes!(result))
        .routes(routes!(report))
}
