//! The page and its files.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;

const PAGE: &str = include_str!("../page/page.html");
const SCRIPT: &str = include_str!("../page/page.js");
const STYLE: &str = include_str!("../page/page.css");

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files. They lie beside the page, not in it: so its policy can refuse any script that
/// is text in the page, and browsers keep the graph library, which is large.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let scripts = [report::html::THEME, SCRIPT].concat();
    let styles = [report::html::STYLE, STYLE].concat();
    Router::new()
        .route(
            "/",
            file("text/html; charset=utf-8", PAGE.to_owned(), "no-store"),
        )
        .route("/page.js", file(JAVASCRIPT, scripts, "no-store"))
        .route(
            "/page.css",
            file("text/css; charset=utf-8", styles, "no-store"),
        )
        .route(
            "/plotly.js",
            file(JAVASCRIPT, report::html::graph_library(), "max-age=3600"),
        )
}

fn file<S: Clone + Send + Sync + 'static>(
    kind: &'static str,
    text: String,
    kept: &'static str,
) -> axum::routing::MethodRouter<S> {
    let text = axum::body::Bytes::from(text);
    get(
        move || async move { ([(CONTENT_TYPE, kind), (CACHE_CONTROL, kept)], text).into_response() },
    )
}
