//! The application: its state, its routes, and what it looks up through Fetch. Which server calls it, it does not know.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hyperman_fetch::{Client, Error, Url};
use hyperman_tokio::TokioRuntime;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a page may take, 10 s: somebody waits for the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of a page is read in search of its title, 64 KiB: it stands in the head of the document.
const TITLE_WITHIN: usize = 64 * 1024;

/// How many pages are asked for at once when all links are checked.
const CHECKS_AT_ONCE: usize = 16;

/// A link as it is stored and shown.
#[derive(Clone, Serialize)]
struct Link {
    id: u64,
    url: String,
    #[serde(flatten)]
    visit: Visit,
}

/// What came of asking for a link's page.
#[derive(Clone, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum Visit {
    Alive { status: u16, title: Option<String> },
    Broken { reason: String },
}

#[derive(Clone)]
struct Links {
    stored: Arc<Mutex<BTreeMap<u64, Link>>>,
    client: Client<TokioRuntime>,
}

/// The routes:
///
/// * `GET /links` lists, `POST /links` with `{"url": …}` looks a page up and adds it;
/// * `GET /links/{id}` and `DELETE /links/{id}` are about one;
/// * `POST /check` asks for all pages again, and lists.
pub fn router(client: Client<TokioRuntime>) -> Router {
    Router::new()
        .route("/links", get(list).post(add))
        .route("/links/{id}", get(show).delete(remove))
        .route("/check", post(check))
        .with_state(Links { stored: Arc::default(), client })
}

async fn list(State(links): State<Links>) -> Json<Vec<Link>> {
    Json(links.stored().values().cloned().collect())
}

#[derive(Deserialize)]
struct NewLink {
    url: String,
}

async fn add(State(links): State<Links>, Json(new): Json<NewLink>) -> Response {
    let url = match Url::parse(&new.url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        Ok(url) => return refused(format!("{}: links are not followed", url.scheme())),
        Err(error) => return refused(error.to_string()),
    };
    let visit = visit(&links.client, url.as_str()).await;
    let mut stored = links.stored();
    let id = stored.last_key_value().map_or(1, |(last, _)| last + 1);
    let link = Link { id, url: url.into(), visit };
    stored.insert(id, link.clone());
    (StatusCode::CREATED, [(header::LOCATION, format!("/links/{id}"))], Json(link)).into_response()
}

async fn show(State(links): State<Links>, Path(id): Path<u64>) -> Result<Json<Link>, StatusCode> {
    links.stored().get(&id).cloned().map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn remove(State(links): State<Links>, Path(id): Path<u64>) -> StatusCode {
    match links.stored().remove(&id) {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}

/// Should the caller go away meanwhile, this future is dropped, and the tasks and their exchanges with it.
async fn check(State(links): State<Links>) -> Json<Vec<Link>> {
    let pages: Vec<(u64, String)> = links.stored().values().map(|link| (link.id, link.url.clone())).collect();
    let turns = Arc::new(Semaphore::new(CHECKS_AT_ONCE));
    let mut visits = JoinSet::new();
    for (id, url) in pages {
        let (client, turns) = (links.client.clone(), Arc::clone(&turns));
        visits.spawn(async move {
            let _turn = turns.acquire().await;
            (id, visit(&client, &url).await)
        });
    }
    while let Some(visited) = visits.join_next().await {
        // A link may have been removed while its page was asked for.
        if let Ok((id, visit)) = visited
            && let Some(link) = links.stored().get_mut(&id)
        {
            link.visit = visit;
        }
    }
    list(State(links)).await
}

async fn visit(client: &Client<TokioRuntime>, url: &str) -> Visit {
    match page(client, url).await {
        Ok((status, title)) => Visit::Alive { status, title },
        Err(error) => Visit::Broken { reason: error.kind().to_string() },
    }
}

/// Asks for a page, and reads on until its title is there.
async fn page(client: &Client<TokioRuntime>, url: &str) -> Result<(u16, Option<String>), Error> {
    let mut answer = client.get(url).timeout(PATIENCE).send().await?.error_for_status()?;
    let status = answer.status().as_u16();
    let mut head = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        head.extend_from_slice(&piece);
        let title = title(&String::from_utf8_lossy(&head));
        if title.is_some() || head.len() > TITLE_WITHIN {
            return Ok((status, title)); // what is left of the page is not worth reading
        }
    }
    Ok((status, None))
}

/// The text of the first `title` element, with its white space collapsed.
fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase(); // keeps every offset
    let opened = lower.find("<title")?;
    let start = opened + lower.get(opened..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    Some(html.get(start..end)?.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn refused(reason: String) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, reason + "\n").into_response()
}

impl Links {
    fn stored(&self) -> MutexGuard<'_, BTreeMap<u64, Link>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
