//! The whole site: REST, its description, metrics and the page, behind the guard.

use std::sync::Arc;

use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;

use crate::app::App;
use crate::problem::Problem;
use crate::{api, guard, page};

/// The whole site.
pub(crate) fn site(app: &Arc<App>) -> axum::Router {
    let (router, description) = api::routes();
    let description = Arc::new(description);
    let described = move || async move { Json(description) };
    let none = || async {
        Problem::new(
            StatusCode::NOT_FOUND,
            "there is nothing here; /api/v1/openapi.json says what there is",
        )
    };
    let router = router
        .route("/api/v1/openapi.json", axum::routing::get(described))
        .fallback(none)
        .merge(page::routes())
        // The guard has read it.
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(
            app.clone(),
            guard::guard,
        ));
    router.with_state(app.clone())
}
