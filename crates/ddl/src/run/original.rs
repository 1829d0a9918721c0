//! The original's settings: sessions get those that a session can have; pgrig's own server is restarted with the others.

use std::collections::BTreeMap;

use connect::ConnectError;
use server::{Session, Survey};

use super::databases::Databases;
use super::failure;
use super::settings::Settings;
use super::{Observer, Site};
use crate::error::DdlError;

/// The settings that pgrig takes over, and warnings about those that it does not.
pub(crate) struct TakenOver {
    pub(crate) settings: Settings,
    pub(crate) of_server: Settings,
    pub(crate) warnings: Vec<String>,
}

/// A setting that has another value in the original.
struct Differing {
    name: String,
    own: String,
    original: String,
}

/// The differing settings, by the way in which they are set.
#[derive(Default)]
struct Difference {
    /// By a session of this role.
    by_session: Vec<Differing>,
    /// By a session of a superuser.
    by_superuser: Vec<Differing>,
    /// By a restart of the server.
    by_restart: Vec<Differing>,
    /// Never, once the cluster exists.
    fixed: Vec<Differing>,
}

/// Part of the machine's memory that shared_buffers may take. The PostgreSQL documentation advises no more.
const OF_MEMORY: f64 = 0.4;
/// Part of the free disk space that max_wal_size may take.
const OF_DISK: f64 = 0.25;

/// Restarts the server with the original's settings, where they differ, and it is pgrig's own.
pub(crate) async fn take_over(
    site: &Site<'_>,
    original: &BTreeMap<String, String>,
    (databases, survey): (&mut Databases, &Survey),
    observer: &mut dyn Observer,
) -> Result<TakenOver, DdlError> {
    let session = Session::open(databases.outside()).await?;
    let difference = difference(&session, original).await?;
    let mut warnings: Vec<String> = difference.fixed.iter().map(fixed).collect();
    warnings.extend(difference.by_superuser.iter().map(|one| {
        format!(
            "{}. This role may not set {}: connect as a superuser, or set it in the configuration of the server that measures",
            one.values(),
            one.name
        )
    }));
    let (settings, refused) = accepted(&session, &difference.by_session).await?;
    warnings.extend(refused);
    let (fitting, too_large) = split_by_size(&session, difference.by_restart, survey).await?;
    session.close().await;
    warnings.extend(too_large);

    let of_server = fitting.iter().map(Differing::of_original).collect::<Settings>();
    let of_server = match site.restarter {
        _ if of_server.is_empty() => of_server,
        Some(restarter) => {
            observer.step("restarting the server with the settings of the original");
            match databases.restart(restarter, &of_server).await? {
                Ok(()) => of_server,
                Err(why) => {
                    let list = listed(&of_server);
                    warnings.push(format!("the server does not start with the settings of the original ({list}), so pgrig measures with its own: {why}"));
                    Settings::new()
                }
            }
        }
        None => {
            let values: Vec<String> = fitting.iter().map(Differing::values).collect();
            warnings.push(format!(
                "{}. For results like the original's, use the original's values on the server that measures",
                values.join("; ")
            ));
            Settings::new()
        }
    };
    Ok(TakenOver { settings, of_server, warnings })
}

impl Differing {
    fn values(&self) -> String {
        let Self { name, own, original } = self;
        format!("the server that measures has {name} = {own}, the original {original}")
    }

    fn of_original(&self) -> (String, String) {
        (self.name.clone(), self.original.clone())
    }
}

/// `a=1, b=2`.
fn listed(settings: &[(String, String)]) -> String {
    let one = |(name, value): &(String, String)| format!("{name}={value}");
    settings.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A warning about a setting that was fixed when the cluster was created.
fn fixed(one: &Differing) -> String {
    // Both make the first change of a hint bit after a checkpoint write the page.
    let remedy = if one.name == "data_checksums" && one.original == "on" {
        ". For WAL like the original's, give --set wal_log_hints=on"
    } else {
        ""
    };
    format!("{}{remedy}", one.values())
}

async fn difference(
    session: &Session,
    original: &BTreeMap<String, String>,
) -> Result<Difference, ConnectError> {
    let names: Vec<&String> = original.keys().collect();
    let mut difference = Difference::default();
    for row in session.rows(include_str!("../sql/taken_over.sql"), &[&names]).await? {
        let (name, own): (String, String) = (row.get("name"), row.get("value"));
        let Some(value) = original.get(&name).filter(|value| **value != own) else { continue };
        let one = Differing { name, own, original: value.clone() };
        match row.get::<_, &str>("context") {
            "internal" => difference.fixed.push(one),
            "user" => difference.by_session.push(one),
            "superuser" if row.get("is_superuser") => difference.by_session.push(one),
            "superuser" => difference.by_superuser.push(one),
            _ => difference.by_restart.push(one),
        }
    }
    Ok(difference)
}

/// The settings that the server accepts in a session, and warnings about the others: another version, or one that was built without a library,
/// does not have all values.
async fn accepted(
    session: &Session,
    settings: &[Differing],
) -> Result<(Settings, Vec<String>), ConnectError> {
    let (mut accepted, mut warnings) = (Settings::new(), Vec::new());
    for one in settings {
        let query = "SELECT pg_catalog.set_config($1, $2, false)";
        match failure::refused(session.rows(query, &[&one.name, &one.original]).await.map(drop))? {
            Ok(()) => accepted.push(one.of_original()),
            Err(error) => warnings.push(format!(
                "{}: the server that measures does not accept the original's value: {}",
                one.values(),
                failure::of(&error).message
            )),
        }
    }
    Ok((accepted, warnings))
}

/// The settings that fit on this machine, and warnings about those that do not.
async fn split_by_size(
    session: &Session,
    settings: Vec<Differing>,
    survey: &Survey,
) -> Result<(Vec<Differing>, Vec<String>), ConnectError> {
    let (mut fitting, mut warnings) = (Vec::new(), Vec::new());
    let environment = &survey.environment;
    let memory = (environment.server_is_local == Some(true)).then_some(environment.client.memory);
    let free = environment.data_volume.as_ref().map(|volume| volume.free);
    for one in settings {
        let (part, whole, of) = match one.name.as_str() {
            "shared_buffers" => (OF_MEMORY, memory, "of this machine's memory"),
            "max_wal_size" => (OF_DISK, free, "of the free disk space"),
            _ => {
                fitting.push(one);
                continue;
            }
        };
        let bytes: i64 =
            session.row("SELECT pg_catalog.pg_size_bytes($1) AS bytes", &[&one.original]).await?.get("bytes");
        #[expect(clippy::cast_precision_loss, reason = "sizes need no more")]
        let is_too_large = whole.is_some_and(|whole| bytes as f64 > whole as f64 * part);
        if is_too_large {
            let (values, percent, name) = (one.values(), part * 100.0, &one.name);
            warnings.push(format!(
                "{values}. pgrig does not use the original's value, because it is more than {percent:.0} % {of}; to use it nevertheless, give --set {name}={}",
                one.original
            ));
        } else {
            fitting.push(one);
        }
    }
    Ok((fitting, warnings))
}
