//! The handlers of requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::api::{
    Dropped, Format, Lease, LendRequest, List, Listed, ListedOwner, ListedState, OwnerName, Refusal, Status,
    Which,
};
use super::http::{Access, respond};
use super::keeper::{KeeperHandle, Offer};
use super::name::{self, Meaning, meaning};
use super::owner::Owner;
use super::state::{Answer, Fact, FoundDatabase, Origin, Recipe, Wanted};
use super::tag::Purpose;
use super::time::Time;

/// Lease time of a database without an owner.
const WITHOUT_OWNER: Duration = Duration::from_hours(1);
/// Longest lease that may be asked for.
const LONGEST: Duration = Duration::from_hours(366 * 24);
/// Longest lease over TCP, also with an owner.
const LONGEST_OPEN: Duration = Duration::from_hours(24);
const JSON: &str = "application/json";

type Answered = Result<Response<Full<Bytes>>, Refusal>;

/// Answers a request.
pub(super) async fn answer(parts: &Parts, body: &[u8], access: Access, handle: &KeeperHandle) -> Answered {
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    let query = parts.uri.query().unwrap_or_default();
    match (&parts.method, path.as_slice()) {
        (&Method::POST, ["databases"]) if !query.is_empty() => Err(Refusal::new(
            400,
            format!("POST /databases does not accept parameters in the URL (?{query})"),
            "put them into the body as JSON, or use GET /database?…",
        )),
        (&Method::POST, ["databases"]) => lend(json(body)?, Format::Json, access, handle).await,
        (&Method::GET, ["database"]) => {
            let (request, format) = asked(query)?;
            lend(request, format, access, handle).await
        }
        (&Method::GET, ["databases"]) => tell(StatusCode::OK, &list(handle).await?),
        (&Method::DELETE, ["databases"]) => {
            trusted(access)?;
            dropped(handle.drop_many(which(query)?).await?)
        }
        (&Method::DELETE, ["databases", name]) => {
            return_database(name, parameter(query, "wait").is_some(), access, handle).await
        }
        (&Method::POST, ["databases", name, "keep"]) => {
            trusted(access)?;
            let name = (*name).to_owned();
            changed(handle.ask(|ticket| Fact::Keep { ticket, name }).await?, access, handle)
        }
        (&Method::POST, ["databases", name, "renew"]) => {
            let LendRequest { seconds, .. } = json(body)?;
            let length = length(seconds, access)?.unwrap_or(WITHOUT_OWNER);
            let name = (*name).to_owned();
            changed(handle.ask(move |ticket| Fact::Renew { ticket, name, length }).await?, access, handle)
        }
        (&Method::GET, ["status"]) => tell(StatusCode::OK, &status(handle).await?),
        (&Method::POST, ["retire"]) => {
            trusted(access)?;
            handle.retire().await?;
            Ok(nothing())
        }
        (_, ["databases" | "database" | "status" | "retire", ..]) => {
            let error = format!("method not allowed: {} {}", parts.method, parts.uri.path());
            Err(Refusal::new(405, error, REQUESTS))
        }
        _ => Err(Refusal::new(404, format!("not found: {}", parts.uri.path()), REQUESTS)),
    }
}

const REQUESTS: &str = "requests: POST /databases, GET /database, GET /databases, DELETE /databases/NAME, POST \
                        /databases/NAME/keep, POST /databases/NAME/renew, GET /status";

async fn lend(request: LendRequest, format: Format, access: Access, handle: &KeeperHandle) -> Answered {
    if request.keep {
        trusted(access)?;
    }
    let recipe = recipe(&request, access, handle)?;
    let owner = request.owner.map(owner).transpose()?;
    let default = match (&owner, access) {
        (None, _) => Some(WITHOUT_OWNER),
        (Some(_), Access::Untrusted) => Some(LONGEST_OPEN),
        (Some(_), Access::Trusted) => None,
    };
    let length = length(request.seconds, access)?.or(default);
    let wanted = Wanted { owner, length, keep: request.keep };
    let template = template(&recipe, handle).await?;
    let answer = handle.ask(|ticket| Fact::Lend { ticket, template, recipe, wanted }).await?;
    let Answer::Lent { name, until } = answer else { return Ok(nothing()) };
    let kind = if format == Format::Json { JSON } else { "text/plain; charset=utf-8" };
    let lease = lease(name, until.filter(|_| !request.keep), access, handle);
    Ok(respond(StatusCode::CREATED, kind, lease.told(format) + "\n"))
}

/// Requested lease time of a database, if given.
fn length(seconds: Option<u64>, access: Access) -> Result<Option<Duration>, Refusal> {
    let longest = if access == Access::Untrusted { LONGEST_OPEN } else { LONGEST };
    match seconds.map(Duration::from_secs) {
        Some(length) if length.is_zero() || length > longest => {
            let error = format!("for {} seconds is out of range", length.as_secs());
            Err(Refusal::new(422, error, format!("give 1 to {} seconds", longest.as_secs())))
        }
        length => Ok(length),
    }
}

/// The offered file whose path ends with this path: a client need not know the keeper's working
/// directory.
fn offered_as(path: &Path, offers: &[Offer]) -> PathBuf {
    let is_end = path.is_relative() && path.file_name().is_some();
    let files = offers.iter().filter_map(|offer| match offer {
        Offer::File(file, _) => Some(file),
        Offer::Database(_) => None,
    });
    files
        .into_iter()
        .find(|file| is_end && file.ends_with(path))
        .map_or_else(|| path.to_owned(), Clone::clone)
}

/// The source that a request names.
fn recipe(request: &LendRequest, access: Access, handle: &KeeperHandle) -> Result<Recipe, Refusal> {
    let offers = &handle.config.offers;
    let LendRequest { from, template, unlogged, .. } = request;
    let recipe = match (from, template) {
        (Some(_), Some(_)) => {
            return Err(Refusal::new(422, "from and template are both given", "give one of them"));
        }
        (Some(path), None) => Recipe { from: Origin::File(offered_as(path, offers)), unlogged: *unlogged },
        (None, Some(database)) => Recipe { from: Origin::Database(database.clone()), unlogged: *unlogged },
        (None, None) => match offers.first() {
            Some(Offer::File(path, as_unlogged)) => {
                Recipe { from: Origin::File(path.clone()), unlogged: *unlogged || *as_unlogged }
            }
            Some(Offer::Database(name)) => {
                Recipe { from: Origin::Database(name.clone()), unlogged: *unlogged }
            }
            None => Recipe { from: Origin::Nothing, unlogged: false },
        },
    };
    let offered = |offer: &Offer| match (offer, &recipe.from) {
        (Offer::File(path, _), Origin::File(asked)) => path == asked,
        (Offer::Database(name), Origin::Database(asked)) => name == asked,
        _ => false,
    };
    match &recipe.from {
        Origin::File(_) | Origin::Database(_)
            if access == Access::Untrusted && !offers.iter().any(offered) =>
        {
            Err(Refusal::new(
                403,
                format!(
                    "{} is not available over TCP: every user of this machine can connect, so pgrig testdb serve offers \
                     only the sources that you gave to it",
                    recipe.source()
                ),
                "start it with --from or --template, or listen on a Unix socket: --listen unix:PATH",
            ))
        }
        Origin::File(path) if !path.is_absolute() => {
            let error = format!("{} is a relative path", path.display());
            Err(Refusal::new(422, error, "give an absolute path"))
        }
        Origin::Database(name) if recipe.unlogged => Err(Refusal::new(
            422,
            format!("pgrig copies database {name} unchanged"),
            format!("make its tables unlogged first: pgrig testdb unlog -d '{}'", url(name, handle)),
        )),
        _ => Ok(recipe),
    }
}

/// The URL for commands that people paste, without the password.
fn url(database: &str, handle: &KeeperHandle) -> String {
    handle.config.target.clone().with_database(database).url_without_password()
}

/// The name of the template that has this content.
async fn template(recipe: &Recipe, handle: &KeeperHandle) -> Result<String, Refusal> {
    let keeper = &handle.config.keeper;
    match &recipe.from {
        Origin::Nothing => Ok(name::template(keeper, &["nothing"])),
        Origin::File(path) => {
            let hash = match handle.hashes.known(path) {
                Some(hash) => hash,
                None => hash(path.clone(), handle).await?,
            };
            let how = if recipe.unlogged { "unlogged" } else { "as it is" };
            Ok(name::template(keeper, &["file", &hash, how]))
        }
        Origin::Database(database) if handle.executor.is_connected_to(database) => Err(Refusal::new(
            422,
            format!("database {database} cannot be copied: the keeper itself is connected to it"),
            format!("pg_dump '{}' > {database}.sql, and --from {database}.sql", url(database, handle)),
        )),
        Origin::Database(database) => {
            let missing = || {
                let error = format!("there is no database {database} on this server");
                Refusal::new(422, error, "create it, or give another one")
            };
            let found = handle.executor.fingerprint(database).await.map_err(Refusal::failed)?;
            Ok(name::template(keeper, &["database", &found.ok_or_else(missing)?]))
        }
    }
}

async fn hash(path: PathBuf, handle: &KeeperHandle) -> Result<String, Refusal> {
    let hashes = Arc::clone(&handle.hashes);
    let read = tokio::task::spawn_blocking(move || hashes.read(&path)).await.map_err(Refusal::failed)?;
    read.map_err(|error| Refusal { status: 422, error: error.to_string(), remedy: None })
}

fn owner(named: OwnerName) -> Result<Owner, Refusal> {
    let gone = |pid| {
        let error = format!("there is no process {pid} to own a database");
        Refusal::new(422, error, "give a running process, or a time instead (for)")
    };
    match named {
        OwnerName::Pid(pid) => Owner::of(pid).ok_or_else(|| gone(pid)),
        OwnerName::Exactly(owner) if owner.is_alive() => Ok(owner),
        OwnerName::Exactly(owner) => Err(gone(owner.pid)),
    }
}

fn lease(name: String, until: Option<Time>, access: Access, handle: &KeeperHandle) -> Lease {
    let target = handle.config.target.clone().with_database(&name);
    let (host, port, user) = (target.host_list(), target.port_list(), target.user().to_owned());
    let (url, password) = match access {
        Access::Trusted => (target.url(), target.password()),
        Access::Untrusted => (target.url_without_password(), None),
    };
    Lease { name, url, host, port, user, password, expires: until.map(Time::unix_seconds) }
}

fn changed(answer: Answer, access: Access, handle: &KeeperHandle) -> Answered {
    let Answer::Changed { name, until } = answer else { return Ok(nothing()) };
    tell(StatusCode::OK, &lease(name, until, access, handle))
}

async fn return_database(name: &str, wait: bool, access: Access, handle: &KeeperHandle) -> Answered {
    let name = name.to_owned();
    let asked = name.clone();
    let (known, lent) = handle.inspect(move |state| (state.knows(&asked), state.lends(&asked))).await?;
    if known && !lent {
        // Templates and spares are everybody's, and what is kept stays until its owner drops it.
        trusted(access)?;
    }
    let answer = if known || access == Access::Untrusted || !handle.is_foreign(&name).await? {
        handle.ask(move |ticket| Fact::Return { ticket, name, wait }).await?
    } else {
        handle.ask(move |ticket| Fact::DropForeign { ticket, names: vec![name] }).await?
    };
    match answer {
        Answer::Dropped(Dropped { failed, .. }) if !failed.is_empty() => {
            let errors: Vec<String> = failed.into_iter().map(|(_, error)| error).collect();
            Err(Refusal::failed(errors.join("; ")))
        }
        _ => Ok(nothing()),
    }
}

fn dropped(answer: Answer) -> Answered {
    match answer {
        Answer::Dropped(dropped) => tell(StatusCode::OK, &dropped),
        _ => Ok(nothing()),
    }
}

async fn list(handle: &KeeperHandle) -> Result<List, Refusal> {
    let found = handle.executor.find().await.map_err(Refusal::failed)?;
    let names: Vec<String> = found.iter().map(|found| found.name.clone()).collect();
    let asked = names.clone();
    // A database that was given back is no longer listed, even if its drop still takes a moment.
    let going =
        handle.inspect(move |state| asked.iter().map(|name| state.drops(name)).collect::<Vec<_>>()).await?;
    let sizes = handle.executor.sizes(&names).await.map_err(Refusal::failed)?;
    let there = found.into_iter().zip(sizes).zip(going);
    let sources: Vec<(String, String)> = there
        .clone()
        .filter_map(|((found, _), _)| {
            let tag = found.tag?;
            match tag.state {
                Purpose::Template(content) => Some((found.name, content.source)),
                _ => None,
            }
        })
        .collect();
    let mut databases: Vec<Listed> = there
        .filter(|((_, size), going)| size.is_some() && !going)
        .filter_map(|((found, size), _)| listed(found, size, &sources, handle))
        .collect();
    databases.sort_by(|a, b| (a.state, a.created, &a.name).cmp(&(b.state, b.created, &b.name)));
    let settings = handle.executor.settings().await.map_err(Refusal::failed)?;
    Ok(List { databases, settings })
}

fn listed(
    found: FoundDatabase,
    bytes: Option<u64>,
    sources: &[(String, String)],
    handle: &KeeperHandle,
) -> Option<Listed> {
    let FoundDatabase { name, tag, .. } = found;
    let own = &handle.config.keeper;
    let making = match meaning(&name) {
        Some(Meaning::Making(keeper)) => Some(keeper == *own),
        _ => None,
    };
    let Some(tag) = tag.filter(|_| making.is_none()) else {
        // Without a tag it is pgrig's only if its name says that it is not finished.
        let own = making?;
        let state = ListedState::Making;
        let created = Time::now().unix_seconds();
        return Some(Listed {
            name,
            state,
            source: String::new(),
            own,
            owner: None,
            created,
            bytes,
            expires: None,
        });
    };
    let source = sources.iter().find(|(template, _)| *template == tag.template);
    let source = source.map_or_else(String::new, |(_, source)| source.clone());
    let (state, owner, expires) = match tag.state {
        Purpose::Template(_) => (ListedState::Template, None, None),
        Purpose::Spare => (ListedState::Spare, None, None),
        Purpose::Lent(terms) => {
            let owner = terms.owner.map(|owner| ListedOwner { pid: owner.pid, command: owner.command() });
            if terms.kept {
                (ListedState::Kept, owner, None)
            } else {
                (ListedState::Lent, owner, terms.until)
            }
        }
    };
    let (created, expires) = (tag.created.unix_seconds(), expires.map(Time::unix_seconds));
    Some(Listed { name, state, source, own: tag.keeper == *own, owner, created, bytes, expires })
}

async fn status(handle: &KeeperHandle) -> Result<Status, Refusal> {
    let (counts, strategies) = handle.inspect(|state| (state.counts(), state.strategies())).await?;
    Ok(Status {
        pid: std::process::id(),
        serves: handle.config.serves.clone(),
        owns_server: handle.config.owns_server,
        server_version: handle.version.clone(),
        settings: handle.executor.settings().await.map_err(Refusal::failed)?,
        lent: counts.lent,
        kept: counts.kept,
        spare: counts.spare,
        templates: counts.templates,
        waiting: counts.waiting,
        strategies: strategies.into_iter().map(|(source, best)| (source, best.name().to_owned())).collect(),
    })
}

fn trusted(access: Access) -> Result<(), Refusal> {
    match access {
        Access::Trusted => Ok(()),
        Access::Untrusted => Err(Refusal::new(
            403,
            "not allowed over TCP, which every user of this machine can reach",
            "use pgrig testdb drop, or listen on a Unix socket: --listen unix:PATH",
        )),
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| {
        let error = format!("the body is not valid JSON for this request: {error}");
        Refusal::new(
            400,
            error,
            "{\"from\": \"/absolute/path\", \"for\": seconds, \"owner\": pid, …}: see pgrig testdb serve --help",
        )
    })
}

/// `GET /database?…`: the fields of the JSON as parameters, and `format`.
fn asked(query: &str) -> Result<(LendRequest, Format), Refusal> {
    let mut request = LendRequest::default();
    let mut format = Format::Json;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let bad = || {
            let error = format!("unknown parameter or value: {name}={value}");
            Refusal::new(
                400,
                error,
                "parameters are from, template, unlogged, owner, for (seconds), keep, format",
            )
        };
        let flag = || match value.as_ref() {
            "" | "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(bad()),
        };
        match name.as_ref() {
            "from" => request.from = Some(PathBuf::from(value.as_ref())),
            "template" => request.template = Some(value.to_string()),
            "unlogged" => request.unlogged = flag()?,
            "owner" => request.owner = Some(OwnerName::Pid(value.parse().map_err(|_| bad())?)),
            "for" => request.seconds = Some(value.parse().map_err(|_| bad())?),
            "keep" => request.keep = flag()?,
            "format" => format = serde_json::from_value(value.as_ref().into()).map_err(|_| bad())?,
            _ => return Err(bad()),
        }
    }
    Ok((request, format))
}

fn which(query: &str) -> Result<Which, Refusal> {
    let which = parameter(query, "which").and_then(|which| serde_json::from_value(which.into()).ok());
    which.ok_or_else(|| Refusal::new(400, "which databases?", "give which=all, templates or orphans"))
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

fn tell(status: StatusCode, body: &impl Serialize) -> Answered {
    Ok(respond(status, JSON, serde_json::to_string(body).map_err(Refusal::failed)? + "\n"))
}

fn nothing() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_for_fields() {
        let (request, format) = asked("from=%2Fa+b.sql&unlogged&for=60&owner=7&keep=no&format=url").unwrap();
        let expected = LendRequest {
            from: Some("/a b.sql".into()),
            unlogged: true,
            seconds: Some(60),
            owner: Some(OwnerName::Pid(7)),
            ..LendRequest::default()
        };
        assert_eq!((request, format), (expected, Format::Url));
        for query in ["form=x", "for=soon", "owner=me", "keep=perhaps", "format=xml"] {
            assert_eq!(asked(query).unwrap_err().status, 400, "{query}");
        }
    }
}
