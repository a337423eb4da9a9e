//! REST below `/api/v1`, described by OpenAPI.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection, StringRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use control::api::{Client, Output, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::metrics;
use crate::problem::Problem;
use crate::rights::Authorized;
use crate::tester;
use watch::model::{Graph, Snapshot};
use watch::sample::Sample;

/// Asks the router. A command that changes something, or whose answer has secrets in it, needs the
/// token.
async fn ask(app: Arc<App>, authorized: Authorized, request: Request) -> Result<Output, Problem> {
    let command = control::cli::parse(&request.command);
    let command = command.map_err(|e| Problem::new(StatusCode::BAD_REQUEST, e.to_string()))?;
    if command.spec.write {
        authorized.or_refuse(&app)?;
    }
    let asked = tokio::task::spawn_blocking(move || Client::connect(&app.socket)?.ask(&request));
    match asked.await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the page is about to end",
        )),
    }
}

/// Asks for JSON.
async fn answer(app: Arc<App>, authorized: Authorized, request: Request) -> Answered {
    let request = Request {
        json: true,
        ..request
    };
    match ask(app, authorized, request).await? {
        Output::Json(json) => Ok(Json(json)),
        Output::Text(text) => Ok(Json(json!({ "text": text }))),
    }
}

type Answered = Result<Json<Value>, Problem>;

/// A command without anything else.
fn command(words: &[&str]) -> Request {
    Request {
        command: words.iter().map(|&word| word.to_owned()).collect(),
        ..Request::default()
    }
}

/// The latest look at the router, at most two seconds old.
#[derive(Serialize, ToSchema)]
pub(crate) struct LatestState {
    /// The router; null if it does not answer.
    router: Option<Arc<Snapshot>>,
    /// Reason why it does not answer, for a person.
    problem: Option<String>,
}

/// Interfaces, workers, errors, hardware and warnings of the router.
#[utoipa::path(get, path = "/api/v1/state", responses((status = 200, body = LatestState)))]
async fn state(State(app): State<Arc<App>>) -> Json<LatestState> {
    let (router, problem) = match app.live.now() {
        Ok(router) => (Some(router), None),
        Err(problem) => (None, Some(problem)),
    };
    Json(LatestState { router, problem })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Since {
    /// Only samples that ended after this time, in seconds since 1970-01-01 UTC.
    #[serde(default)]
    since: f64,
}

/// Rates of the last ten minutes, a sample a second, oldest first.
#[utoipa::path(get, path = "/api/v1/samples", params(Since),
    responses((status = 200, body = Vec<Sample>), (status = 400, body = Problem)))]
async fn samples(
    State(app): State<Arc<App>>,
    query: Result<Query<Since>, QueryRejection>,
) -> Result<Json<Vec<Arc<Sample>>>, Problem> {
    Ok(Json(app.live.since(query?.since)))
}

/// The router's nodes, and packets a second on their edges.
#[utoipa::path(get, path = "/api/v1/graph",
    responses((status = 200, body = Graph), (status = 503, body = Problem)))]
async fn graph(State(app): State<Arc<App>>) -> Result<Json<Graph>, Problem> {
    let now = app.live.now();
    let now = now.map_err(|why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why))?;
    Ok(Json(now.graph.clone()))
}

/// The configuration in force as `{"yaml": TEXT}`; its secrets are in it, so it needs the token.
#[utoipa::path(get, path = "/api/v1/configuration", security(("token" = [])),
    responses((status = 200, body = Value), (status = 401, body = Problem), (status = 503, body = Problem)))]
async fn configuration(State(app): State<Arc<App>>, authorized: Authorized) -> Answered {
    answer(app, authorized, command(&["dump"])).await
}

/// The configurations so far, as `parshall history --json`.
#[utoipa::path(get, path = "/api/v1/history",
    responses((status = 200, body = Value), (status = 503, body = Problem)))]
async fn history(State(app): State<Arc<App>>, authorized: Authorized) -> Answered {
    answer(app, authorized, command(&["history"])).await
}

/// What a configuration of the history changed, as `parshall history N --json`.
#[utoipa::path(get, path = "/api/v1/history/{number}", params(("number" = u32, Path, description = "From 1")),
    responses((status = 200, body = Value), (status = 400, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn history_entry(
    State(app): State<Arc<App>>,
    authorized: Authorized,
    number: Result<Path<u32>, PathRejection>,
) -> Answered {
    answer(
        app,
        authorized,
        command(&["history", &number?.0.to_string()]),
    )
    .await
}

/// What a configuration would change, as `parshall plan --json`. Nothing changes.
#[utoipa::path(post, path = "/api/v1/plan", request_body(content = String, content_type = "application/yaml"),
    responses((status = 200, body = Value), (status = 403, body = Problem), (status = 413, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn plan(
    State(app): State<Arc<App>>,
    authorized: Authorized,
    body: Result<String, StringRejection>,
) -> Answered {
    let request = Request {
        text: Some(body?),
        name: Some(NAME.into()),
        steps: true,
        ..command(&["plan"])
    };
    answer(app, authorized, request).await
}

/// The name of a configuration that came by the page, in messages.
const NAME: &str = "configuration";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ApplyOptions {
    /// Take it back unless it is confirmed within so many seconds, 1 to 86,400.
    confirm: Option<u64>,
    /// Words for the history, at most 1000 bytes.
    comment: Option<String>,
}

/// Changes the router to a configuration, wholly or not at all, as `parshall apply --json`.
#[utoipa::path(post, path = "/api/v1/apply", params(ApplyOptions), security(("token" = [])),
    request_body(content = String, content_type = "application/yaml"),
    responses((status = 200, body = Value), (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem), (status = 413, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn apply(
    State(app): State<Arc<App>>,
    authorized: Authorized,
    query: Result<Query<ApplyOptions>, QueryRejection>,
    body: Result<String, StringRejection>,
) -> Answered {
    let Query(options) = query?;
    let request = Request {
        text: Some(body?),
        name: Some(NAME.into()),
        confirm: options.confirm,
        comment: options.comment,
        ..command(&["apply"])
    };
    answer(app, authorized, request).await
}

/// Keeps the configuration that waits for confirmation.
#[utoipa::path(post, path = "/api/v1/confirm", security(("token" = [])),
    responses((status = 200, body = Value), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn confirm(State(app): State<Arc<App>>, authorized: Authorized) -> Answered {
    answer(app, authorized, command(&["confirm"])).await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RollbackOptions {
    /// Number of the configuration in the history; the one before if there is none.
    number: Option<u32>,
    /// Take it back unless it is confirmed within so many seconds, 1 to 86,400.
    confirm: Option<u64>,
}

/// Goes back to a configuration of the history, as `parshall rollback --json`.
#[utoipa::path(post, path = "/api/v1/rollback", params(RollbackOptions), security(("token" = [])),
    responses((status = 200, body = Value), (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn rollback(
    State(app): State<Arc<App>>,
    authorized: Authorized,
    query: Result<Query<RollbackOptions>, QueryRejection>,
) -> Answered {
    let Query(options) = query?;
    let number = options.number.map(|number| number.to_string());
    let mut request = command(&["rollback"]);
    request.command.extend(number);
    request.confirm = options.confirm;
    answer(app, authorized, request).await
}

/// Counters for Prometheus, in its OpenMetrics format.
#[utoipa::path(get, path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")))]
async fn prometheus(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let text = metrics::text(app.live.now().ok().as_deref(), &app.tester);
    let text = text.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))?;
    Ok(([(CONTENT_TYPE, metrics::TYPE)], text).into_response())
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Parshall",
    description = "The router that `parshall ui` looks at, and its load tester. What changes something needs the token.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Description;

/// All routes, and their description.
pub(crate) fn routes() -> (axum::Router<Arc<App>>, utoipa::openapi::OpenApi) {
    let (router, mut description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(state))
        .routes(routes!(samples))
        .routes(routes!(graph))
        .routes(routes!(configuration))
        .routes(routes!(history))
        .routes(routes!(history_entry))
        .routes(routes!(plan))
        .routes(routes!(apply))
        .routes(routes!(confirm))
        .routes(routes!(rollback))
        .routes(routes!(prometheus))
        .merge(tester::routes())
        .split_for_parts();
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(token));
    (router, description)
}
