//! Who may ask: the checks that every request passes before anything else reads it.
//!
//! A page of somebody else in the operator's browser can send requests here. So `Host` must be an
//! address of ours, or another name could be made to lead here (DNS rebinding), and `Origin`, where
//! there is one, must be the page's own (RFC 6454). Bodies are read whole, within a limit of size
//! and time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use crate::app::App;
use crate::problem::Problem;

/// Largest body in bytes: a configuration, as the router takes it.
const BODY: usize = control::config::LARGEST;
/// Time limit for a body, and for the wait until one may be read.
const PATIENCE: Duration = Duration::from_secs(20);

/// Scripts are the page's own files, never text in it, so that no name can become one. The graph
/// library sets styles, and draws pictures to be kept.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";
const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// Lets a request through, or refuses it.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let response = match admit(&app, request).await {
        Ok((request, _permit)) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    with_headers(response)
}

fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The request with its body, and a place among those who have one.
async fn admit(
    app: &App,
    request: Request,
) -> Result<(Request, Option<tokio::sync::SemaphorePermit<'_>>), Problem> {
    is_for(app.address, request.headers())?;
    if request.method() != Method::POST {
        return Ok((request, None));
    }
    let late = |_| {
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "the request took too long to come; send it again",
        )
    };
    let permit = timeout(PATIENCE, app.bodies.acquire()).await;
    let permit = permit.map_err(late)?.ok();
    let (parts, body) = request.into_parts();
    let body = timeout(PATIENCE, to_bytes(body, BODY))
        .await
        .map_err(late)?;
    let body = body.map_err(|_| {
        let why = format!("a configuration or profile has at most {} MiB", BODY >> 20);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    })?;
    Ok((Request::from_parts(parts, Body::from(body)), permit))
}

/// Checks that a request is for the page that listens at `address`, and comes from it or from no
/// page.
fn is_for(address: SocketAddr, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |why: String| Problem::new(StatusCode::FORBIDDEN, why);
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (
        hosts.next().and_then(|host| host.to_str().ok()),
        hosts.next(),
    ) else {
        return Err(refused("a request has one Host".into()));
    };
    if !is_ours(address, host) {
        return Err(refused(format!(
            "this is not {host}; open the page at http://{address}/ or at localhost"
        )));
    }
    let own = format!("http://{host}");
    let mut origins = headers.get_all(ORIGIN).iter();
    if origins.any(|origin| origin.as_bytes() != own.as_bytes()) {
        return Err(refused("the request comes from another page".into()));
    }
    Ok(())
}

/// Whether `host` is an address of the page that listens at `address`. Where that is any address of
/// the machine, each literal address is: rebinding needs a name.
fn is_ours(address: SocketAddr, host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    if port != Some(address.port()) {
        return false;
    }
    let given = format!("{name}:{}", address.port()).parse::<SocketAddr>();
    match given {
        Ok(given) if address.ip().is_unspecified() => given.port() == address.port(),
        Ok(given) => given == address,
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_addresses_are_ours() {
        let own = |address: &str, host: &str| is_ours(address.parse().unwrap(), host);
        for (address, host) in [
            ("127.0.0.1:8411", "127.0.0.1:8411"),
            ("127.0.0.1:8411", "localhost:8411"),
            ("127.0.0.1:80", "LOCALHOST"),
            ("[::1]:8411", "[::1]:8411"),
            ("[::1]:80", "[::1]"),
            ("0.0.0.0:8411", "192.0.2.7:8411"),
            ("[::]:8411", "[2001:db8::7]:8411"),
        ] {
            assert!(own(address, host), "{address} {host}");
        }
        for (address, host) in [
            ("127.0.0.1:8411", "127.0.0.1"),
            ("127.0.0.1:8411", "127.0.0.1:8412"),
            ("127.0.0.1:8411", "router.example:8411"),
            ("127.0.0.1:8411", "localhost.example:8411"),
            ("127.0.0.1:8411", "192.0.2.7:8411"),
            ("0.0.0.0:8411", "router.example:8411"),
            ("0.0.0.0:8411", "127.0.0.1.example:8411"),
            ("127.0.0.1:8411", ""),
            ("127.0.0.1:8411", ":8411"),
        ] {
            assert!(!own(address, host), "{address} {host}");
        }
    }

    #[test]
    fn other_pages_are_refused() {
        let address = "127.0.0.1:8411".parse().unwrap();
        let check = |origins: &[&'static str]| {
            let mut headers = HeaderMap::new();
            headers.append(HOST, HeaderValue::from_static("localhost:8411"));
            for origin in origins {
                headers.append(ORIGIN, HeaderValue::from_static(origin));
            }
            is_for(address, &headers).is_ok()
        };
        assert!(check(&[]) && check(&["http://localhost:8411"]));
        for origins in [
            &["null"][..],
            &["http://localhost"],
            &["https://localhost:8411"],
            &["http://evil.example"],
            &["http://localhost:8411", "http://evil.example"],
        ] {
            assert!(!check(origins), "{origins:?}");
        }
        assert!(is_for(address, &HeaderMap::new()).is_err());
    }
}
