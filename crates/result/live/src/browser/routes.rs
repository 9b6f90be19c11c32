//! The routes. The store is reopened for each request, because other programs write to it.

use crate::browser::guard::REPORT_POLICY;
use crate::browser::list::{self, LIST_MAX, ListQuery, StoreHead};
use crate::browser::live;
use crate::browser::refusal::HttpRefusal;
use crate::browser::{pages, trend};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, Stream};
use record::history::RUNS_MAX;
use report::Named;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Filter, Progress, ResultKind, RunId, Store, StoreError, StorePlace, Stored};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Interval, MissedTickBehavior, interval};
use url::form_urlencoded;

/// Live views at once; each reads the store once a second.
const LIVE_MAX: usize = 16;
/// Interval at which a live view checks for updates.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of results side by side.
const SIDE_BY_SIDE_MAX: usize = 8;

/// Maximum number of kept notes about opening the store.
const NOTES_MAX: usize = 20;

/// State shared by all handlers.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    pub(crate) place: StorePlace,
    live: Arc<Semaphore>,
    /// Notes for the user about opening the store: it was migrated, or renamed because of damage.
    notes: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    pub(crate) fn new(place: StorePlace) -> Desk {
        Desk { place, live: Arc::new(Semaphore::new(LIVE_MAX)), notes: Arc::default() }
    }

    /// Notes from opening the store so far.
    fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs `work` with the store, opened for reading, on a thread that may block on the disk.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let (place, notes) = (self.place.clone(), self.notes.clone());
        run_blocking(move || work(&noted(Store::open_to_read(&place)?, &notes))).await
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let (place, notes) = (self.place.clone(), self.notes.clone());
        // a missing store must not be created by this
        run_blocking(move || {
            drop(noted(Store::open_to_read(&place)?, &notes));
            work(&mut noted(Store::open(&place)?, &notes))
        })
        .await
    }
}

/// Keeps a note from opening the store, to be shown above the list.
fn noted(store: Store, notes: &Mutex<Vec<String>>) -> Store {
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.extend(store.notes.iter().cloned());
    // the newest may report that the store was renamed
    let over = notes.len().saturating_sub(NOTES_MAX);
    notes.drain(..over);
    store
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, HttpRefusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(HttpRefusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "reading the store panicked; this is a bug",
        )),
    }
}

pub(crate) fn routes(desk: Desk) -> Router {
    Router::new()
        .route("/", get(list_page))
        .route("/style.css", get(style))
        .route("/live.js", get(script))
        .route("/list.js", get(list_script))
        .route("/trend", get(trend_page))
        .route("/compare", get(compare))
        .route("/compare/page", get(compare_page))
        .route("/result/{id}", get(result))
        .route("/result/{id}/page", get(result_page))
        .route("/result/{id}/json", get(result_json))
        .route("/result/{id}/live", get(live_page))
        .route("/result/{id}/events", get(events))
        .route("/result/{id}/tag", post(tag))
        .route("/result/{id}/untag", post(untag))
        .route("/result/{id}/delete", get(confirm).post(delete))
        .fallback(nowhere)
        .with_state(desk)
}

type PageResult = Result<Html<String>, HttpRefusal>;

async fn nowhere() -> HttpRefusal {
    HttpRefusal::new(StatusCode::NOT_FOUND, "there is no such page")
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], pages::STYLE)
}

async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], pages::SCRIPT)
}

async fn list_script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], pages::LIST_SCRIPT)
}

/// Returns the values of a field in a query or a form.
fn fields(text: &[u8], wanted: &str) -> Vec<String> {
    let pairs = form_urlencoded::parse(text).filter(|(name, _)| name == wanted);
    pairs.map(|(_, value)| value.into_owned()).collect()
}

fn field(text: &[u8], wanted: &str) -> String {
    fields(text, wanted).into_iter().next().unwrap_or_default().trim().to_owned()
}

async fn list_page(State(desk): State<Desk>, RawQuery(query): RawQuery) -> PageResult {
    let query = query.unwrap_or_default();
    let of = |name: &str| field(query.as_bytes(), name);
    let (name, tag, kind, host) = (of("name"), of("tag"), of("kind"), of("host"));
    let wanted = ListQuery { name, tag, kind, host };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let filter = Filter {
        name: some(&wanted.name),
        tag: some(&wanted.tag),
        kind: ResultKind::from_name(&wanted.kind),
        since_unix_s: None,
        count_max: Some(LIST_MAX),
    };
    let file = desk.place.file().map_err(HttpRefusal::from)?;
    let file = file.map_or_else(String::new, |file| file.display().to_string());
    match desk.read(move |store| store.list(&filter)).await {
        Ok(entries) => {
            let place = StoreHead { store: &file, notes: &desk.notes() };
            Ok(Html(list::list(&entries, &wanted, place, None).into_string()))
        }
        // a missing store is not an error: the first run creates it
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => {
            let page = list::list(
                &[],
                &wanted,
                StoreHead { store: &file, notes: &desk.notes() },
                Some(&refusal.text),
            );
            Ok(Html(page.into_string()))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Renders the runs of exactly this name, oldest first.
async fn trend_page(State(desk): State<Desk>, RawQuery(query): RawQuery) -> PageResult {
    let name = field(query.unwrap_or_default().as_bytes(), "name");
    let shown =
        desk.read(move |store| Ok(trend::trend(&name, &store.history(&name, None, RUNS_MAX)?)));
    Ok(Html(shown.await?.into_string()))
}

async fn result(State(desk): State<Desk>, Path(id): Path<String>) -> PageResult {
    let entry = desk.read(move |store| store.show(&id)).await?;
    Ok(Html(pages::result(&entry).into_string()))
}

async fn load(desk: &Desk, id: String) -> Result<Stored, HttpRefusal> {
    desk.read(move |store| store.load(&id)).await
}

/// Returns a result's page unchanged: the policy in its head restricts it further.
fn framed(page: String) -> Response {
    ([(header::CONTENT_SECURITY_POLICY, REPORT_POLICY)], Html(page)).into_response()
}

async fn result_page(
    State(desk): State<Desk>,
    Path(id): Path<String>,
) -> Result<Response, HttpRefusal> {
    let stored = load(&desk, id).await?;
    Ok(framed(match &stored {
        Stored::Run(run) => report::html(run),
        Stored::Ramp(ramp) => report::ramp::html(ramp),
        Stored::Compare(compare) => report::compare::html(compare),
        Stored::Torture(torture) => report::torture::html(torture),
    }))
}

async fn result_json(
    State(desk): State<Desk>,
    Path(id): Path<String>,
) -> Result<Response, HttpRefusal> {
    let stored = load(&desk, id).await?;
    let text = match &stored {
        Stored::Run(run) => report::json(run),
        Stored::Ramp(ramp) => report::ramp::json(ramp),
        Stored::Compare(compare) => report::compare::json(compare),
        Stored::Torture(torture) => report::torture::json(torture),
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Returns the ids of a query, each once, in the order in which they were measured.
fn ids(query: Option<String>) -> Result<Vec<String>, HttpRefusal> {
    let mut ids = fields(query.unwrap_or_default().as_bytes(), "id");
    let mut seen = std::collections::BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    // an id is part of an address again
    ids.retain(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    // the earlier measurement on the left
    ids.sort_by_key(|id| id.rsplit('-').next().and_then(|number| number.parse::<u64>().ok()));
    if !(2..=SIDE_BY_SIDE_MAX).contains(&ids.len()) {
        let text = format!("tick 2 to {SIDE_BY_SIDE_MAX} results to see them side by side");
        return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, text));
    }
    Ok(ids)
}

async fn compare(State(desk): State<Desk>, RawQuery(query): RawQuery) -> PageResult {
    let ids = ids(query)?;
    // errors are reported here and not inside a frame
    render_together(&desk, &ids).await?;
    Ok(Html(pages::side_by_side(&ids).into_string()))
}

async fn compare_page(
    State(desk): State<Desk>,
    RawQuery(query): RawQuery,
) -> Result<Response, HttpRefusal> {
    Ok(framed(render_together(&desk, &ids(query)?).await?))
}

/// Renders several results on one page.
async fn render_together(desk: &Desk, ids: &[String]) -> Result<String, HttpRefusal> {
    let (mut runs, mut ramps) = (Vec::new(), Vec::new());
    for id in ids {
        match load(desk, id.clone()).await? {
            Stored::Run(run) => runs.push((id.clone(), *run)),
            Stored::Ramp(ramp) => ramps.push((id.clone(), *ramp)),
            Stored::Compare(_) => {
                let text = format!("{id} is a comparison already: tick runs, or ramps");
                return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, text));
            }
            Stored::Torture(_) => {
                let text =
                    format!("{id} is a torture run: loadstone torture diff A B compares two");
                return Err(HttpRefusal::new(StatusCode::BAD_REQUEST, text));
            }
        }
    }
    let mixed = || {
        let text = "runs and ramps, or ramps over rates and over populations, have no axis in \
                    common: tick results of one kind";
        HttpRefusal::new(StatusCode::BAD_REQUEST, text)
    };
    match (runs.is_empty(), ramps.is_empty()) {
        (false, true) => {
            let named = runs.iter().map(|(name, report)| Named { name: name.clone(), report });
            Ok(report::html_of_many(&named.collect::<Vec<_>>()))
        }
        (true, false) => {
            let all = report::combine_ramps(&ramps).ok_or_else(mixed)?;
            Ok(report::ramp::html(&all))
        }
        _ => Err(mixed()),
    }
}

async fn live_page(State(desk): State<Desk>, Path(id): Path<String>) -> PageResult {
    let known = move |store: &Store| Ok((store.show(&id)?, store.load(&id)?));
    let (entry, stored) = desk.read(known).await?;
    Ok(Html(pages::live(&entry, &stored).into_string()))
}

/// Live view in progress.
struct Watching {
    desk: Desk,
    id: String,
    sent: usize,
    ticks: Interval,
    over: bool,
    _permit: OwnedSemaphorePermit,
}

async fn events(
    State(desk): State<Desk>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, HttpRefusal> {
    let permit = desk.live.clone().try_acquire_owned().map_err(|_| {
        let text = format!("{LIVE_MAX} live views are open already: close one");
        HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    })?;
    let name = id.clone();
    desk.read(move |store| store.show(&name)).await?;
    // after a lost connection a browser reports its last event
    let sent = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching =
        Watching { desk, id, sent: sent.unwrap_or(0), ticks, over: false, _permit: permit };
    Ok(Sse::new(stream::unfold(watching, next)).keep_alive(KeepAlive::default()))
}

/// Returns the next event; `None` once the test has ended and this was reported.
async fn next(mut watching: Watching) -> Option<(Result<Event, Infallible>, Watching)> {
    if watching.over {
        return None;
    }
    watching.ticks.tick().await;
    let (id, sent) = (watching.id.clone(), watching.sent);
    let look = move |store: &Store| {
        // the state before the figures: an end in between is reported by the next event
        let progress = store.show(&id)?.progress;
        Ok((progress, live::event(&store.load(&id)?, progress, sent, store.agents(&id)?)))
    };
    let event = match watching.desk.read(look).await {
        Ok((progress, (event, rows))) => {
            watching.sent = rows;
            watching.over = progress != Progress::Running;
            Event::default().event("news").id(rows.to_string()).data(event.to_string())
        }
        Err(refusal) => {
            watching.over = refusal.status != StatusCode::SERVICE_UNAVAILABLE;
            Event::default().event("trouble").data(refusal.text.replace(['\r', '\n'], " "))
        }
    };
    Some((Ok(event), watching))
}

async fn tag(desk: State<Desk>, id: Path<String>, body: Bytes) -> Result<Redirect, HttpRefusal> {
    retag(desk, id, &body, |store, id, tag| store.tag(id, tag).map(drop)).await
}

async fn untag(desk: State<Desk>, id: Path<String>, body: Bytes) -> Result<Redirect, HttpRefusal> {
    retag(desk, id, &body, |store, _, tag| store.untag(tag).map(drop)).await
}

/// Changes the tags of a result, and redirects to it.
async fn retag(
    State(desk): State<Desk>,
    Path(id): Path<String>,
    body: &Bytes,
    change: fn(&mut Store, &RunId, &str) -> Result<(), StoreError>,
) -> Result<Redirect, HttpRefusal> {
    let tag = field(body, "tag");
    let back = desk.change(move |store| {
        let id = store.find(&id)?;
        change(store, &id, &tag)?;
        Ok(id)
    });
    Ok(Redirect::to(&format!("/result/{}", back.await?)))
}

async fn confirm(State(desk): State<Desk>, Path(id): Path<String>) -> PageResult {
    let entry = desk.read(move |store| store.show(&id)).await?;
    Ok(Html(pages::confirm_deletion(&entry).into_string()))
}

async fn delete(State(desk): State<Desk>, Path(id): Path<String>) -> Result<Redirect, HttpRefusal> {
    desk.change(move |store| {
        let id = store.find(&id)?;
        store.delete(&[id])
    })
    .await?;
    Ok(Redirect::to("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_an_opening_are_shown_above_the_list() {
        let notes = Mutex::default();
        for number in 0..NOTES_MAX + 5 {
            let mut store = Store::open(&StorePlace::Memory).expect("memory is there");
            store.notes.push(format!("note <{number}>"));
            noted(store, &notes);
        }
        let notes = notes.into_inner().expect("nobody panicked");
        assert_eq!(notes.len(), NOTES_MAX);
        let of = ListQuery::default();
        let page = list::list(&[], &of, StoreHead { store: "runs.db", notes: &notes }, None);
        assert!(page.into_string().contains("note &lt;24&gt;"));
    }
}
