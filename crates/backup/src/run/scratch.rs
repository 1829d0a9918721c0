//! The servers into which backups are restored, and the directory of the backups. Only one rehearsal of a home has them.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use connect::{Ending, Target};
use pgserver::{Home, Instance, Major, Profile, Running, Spec};
use server::Session;
use server::quote::{identifier, literal};

use crate::error::{BackupError, OnPath};
use crate::run::extensions::Lacks;
use crate::run::instances::{destroy, started, without_log};
use crate::run::logins;
use crate::run::memberships::grants;
use crate::run::only::Only;
use crate::run::room::{self, ServerSpace};
use crate::run::source::{CLUSTER, Facts};

/// Directory below the user's home. The scratch servers have a home of their own there, so that no instance of the user's is one of
/// them.
const OWN: &str = "backup";
/// The instance into which dumps are restored. It runs as long as the rehearsal.
const DUMPS: &str = "dumps";
/// The instance whose data are those of a base backup.
const BASE: &str = "base";
/// Most servers with data that pgrig makes.
pub(crate) const SIZES: usize = 3;
/// Directory of the backups.
const WORK: &str = "work";
/// The database into which dumps are restored.
pub(crate) const RESTORED: &str = "restored";
const AGAIN: Duration = Duration::from_millis(100);
/// Time in which a server that answers no more ends.
const ENDS: Duration = Duration::from_secs(20);

/// See the module's documentation.
pub(crate) struct Scratch {
    home: Home,
    pub(crate) work: PathBuf,
    dumps: Instance,
    pub(crate) base: Instance,
    /// Its properties.
    of_base: Spec,
    running: RefCell<Option<Running>>,
    /// Whether the server for dumps was started, so that there may be files to delete.
    is_started: bool,
    /// Servers with data of one size each, that pgrig makes.
    filled: Vec<(Instance, Option<Running>)>,
    /// Held while a server is started or deleted, also by a step that nothing waits for any more.
    shared: Arc<Mutex<Shared>>,
    /// The right to all of it; none before the start.
    only: Option<Only>,
}

/// State that steps have in common which nothing waits for any more.
#[derive(Default)]
struct Shared {
    /// Whether all servers are to be deleted: none is started then.
    is_over: bool,
    /// The server for dumps between its start and the end of the step that starts it.
    started: Option<Running>,
}

impl Scratch {
    /// Describes them. Creates nothing.
    pub(crate) fn new(
        home: &Home,
        pg_bin: Option<&Path>,
        facts: &Facts,
        settings: &[(String, String)],
        (sizes, more): (usize, &[(&str, &str)]),
    ) -> Result<Self, BackupError> {
        let version = Major::from_number(facts.major);
        if version.is_none() && pg_bin.is_none() {
            return Err(BackupError::UnknownMajor(facts.major));
        }
        let home = &home.twin(&home.root().join(OWN))?;
        let spec = |name: &str, set: &[(&str, &str)]| {
            let own = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let set = own.chain(settings.iter().cloned()).collect();
            let version = version.filter(|_| pg_bin.is_none());
            let pg_bin = pg_bin.map(Path::to_owned);
            let profile = Some(Profile::Stock);
            Spec { name: name.to_owned(), version, pg_bin, profile, set, ..Spec::default() }
        };
        let open = |name: &str, set: &[(&str, &str)]| Instance::open(home, spec(name, set));
        // A restored database must not get rows from its event triggers.
        let quiet = logins::setting(facts.major);
        // Recovery needs room for the transactions that were prepared. A subscription of the original must not take changes from its
        // publisher, which keeps them for the original. A vacuum against wraparound would hold locks that the checks of constraints
        // wait for; these are the largest values.
        let of_restored = [
            ("max_prepared_transactions", facts.prepared.as_str()),
            ("max_logical_replication_workers", "0"),
            ("autovacuum", "off"),
            ("autovacuum_freeze_max_age", "2000000000"),
            ("autovacuum_multixact_freeze_max_age", "2000000000"),
        ];
        let of_restored: Vec<(&str, &str)> = of_restored.into_iter().chain(quiet).collect();
        let of_base = spec(BASE, &of_restored);
        let base = Instance::open(home, of_base.clone())?;
        // Autovacuum's transactions would hinder the comparison of base backups.
        let set: Vec<(&str, &str)> = [("autovacuum", "off")].iter().chain(more).copied().collect();
        let filled = (0..sizes).map(|number| Ok((open(&size(number), &set)?, None)));
        let filled = filled.collect::<Result<_, BackupError>>()?;
        Ok(Self {
            home: home.clone(),
            work: home.root().join(WORK),
            dumps: open(DUMPS, quiet.as_slice())?,
            base,
            of_base,
            running: RefCell::default(),
            is_started: false,
            filled,
            shared: Arc::default(),
            only: None,
        })
    }

    /// Starts the server for dumps, and deletes the files that a killed run has left.
    ///
    /// # Errors
    /// [`BackupError::Busy`] if another run is under way: nothing is deleted then. [`BackupError::NoRoom`] if the disk has no room for the server,
    /// beside the space that this original needs.
    pub(crate) async fn start(&mut self, original: Option<&ServerSpace>) -> Result<(), BackupError> {
        // From here on, all that is there was left by a killed run.
        self.only = Some(Only::take(&self.home)?);
        destroy(&self.left(DUMPS)?)?;
        if self.check_room(original).is_err() {
            // A killed run may have filled the disk.
            self.delete_left()?;
            self.check_room(original)?;
        }
        self.fetch().await?;
        let dumps = self.dumps.clone();
        self.unless_over(move |shared| {
            shared.started = Some(match started(&dumps) {
                Ok(running) => running,
                Err(BackupError::Server(pgserver::Error::InUse { pid, .. })) => {
                    return Err(BackupError::Busy(Some(pid)));
                }
                Err(error) => {
                    let _ = destroy(&dumps);
                    return Err(error);
                }
            });
            Ok(())
        })
        .await?;
        self.take_started();
        self.is_started = true;
        self.delete_left()?;
        fs::create_dir_all(&self.work).on("create", &self.work)
    }

    /// Downloads PostgreSQL if need be. An interruption does not wait for that, as it does for a start.
    async fn fetch(&self) -> Result<(), BackupError> {
        let Some(version) = self.of_base.version else { return Ok(()) };
        let (home, dumps) = (self.home.clone(), self.dumps.clone());
        blocking(move || {
            if let pgserver::Programs::Missing { is_downloaded: true, .. } = dumps.programs()? {
                pgserver::fetch(&home, Some(version), None, &|_| ())?;
            }
            Ok(())
        })
        .await
    }

    /// Starts or deletes servers beside the runtime. [`Self::end`] waits for that, even if nothing else does any more.
    async fn unless_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shared) -> Result<T, BackupError> + Send + 'static,
    ) -> Result<T, BackupError> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let mut shared = locked(&shared);
            if shared.is_over { Err(BackupError::Interrupted) } else { work(&mut shared) }
        })
        .await
    }

    /// Takes the server for dumps over from the step that has started it.
    fn take_started(&self) {
        let started = locked(&self.shared).started.take();
        self.running.replace(started);
    }

    /// An instance that a killed run may have left.
    fn left(&self, name: &str) -> Result<Instance, BackupError> {
        Ok(Instance::open(&self.home, Spec { name: name.to_owned(), ..Spec::default() })?)
    }

    /// Deletes what a killed run has left, except the server for dumps.
    fn delete_left(&self) -> Result<(), BackupError> {
        destroy(&self.left(BASE)?)?;
        for number in 0..SIZES {
            destroy(&self.left(&size(number))?)?;
        }
        if self.work.exists() {
            fs::remove_dir_all(&self.work).on("delete", &self.work)?;
        }
        Ok(())
    }

    /// Refuses the start of a server for which the disk has no room.
    fn check_room(&self, original: Option<&ServerSpace>) -> Result<(), BackupError> {
        let directory = self.home.server_root().ancestors().find(|path| path.exists());
        directory.map_or(Ok(()), |directory| {
            room::check("the start of a scratch server", directory, CLUSTER, original)
        })
    }

    /// Starts the server for data of a size. Returns its database, whose event triggers run only for a load.
    pub(crate) async fn start_filled(&mut self, number: usize) -> Result<Target, BackupError> {
        let instance = self.filled[number].0.clone();
        let running = self.unless_over(move |_| started(&instance)).await?;
        let at = running.connection();
        let target = Target::embedded(&at.socket_dir, at.port, at.user, at.database);
        let target = logins::without_event_triggers(target, running.version().major());
        self.filled[number].1 = Some(running);
        Ok(target)
    }

    /// The data directory of that server.
    pub(crate) fn filled_data_dir(&self, number: usize) -> PathBuf {
        self.filled[number].1.as_ref().expect("it was started").data_dir()
    }

    /// The process id of that server.
    pub(crate) fn filled_server_pid(&self, number: usize) -> u32 {
        self.filled[number].1.as_ref().expect("it was started").server_pid()
    }

    /// Creates the roles of the original, which dumps name. Returns the extensions of the original that the server lacks, if there are any.
    pub(crate) async fn create_roles(&self, facts: &Facts) -> Result<Option<Lacks>, BackupError> {
        let session = Session::open(&self.target("postgres")).await?;
        let roles = facts.roles.iter().filter(|role| *role != "postgres");
        // Here, only superusers can own event triggers and foreign-data wrappers. No role may log in.
        let create = |role: &String| {
            let rights = if facts.superusers.contains(role) { " SUPERUSER" } else { "" };
            format!("CREATE ROLE {} NOLOGIN{rights}", identifier(role))
        };
        let create: Vec<String> = roles.map(create).collect();
        session.run_all(&create).await?;
        // Owners of materialized views read the tables that their memberships allow. The server may lack predefined roles of a managed one.
        let query = "SELECT rolname::text FROM pg_catalog.pg_roles";
        let known: Vec<String> = session.rows(query, &[]).await?.iter().map(|row| row.get(0)).collect();
        session.run_all(&grants(&facts.memberships, &known)).await?;
        let query = "SELECT name::text FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT a.name::text FROM pg_available_extensions a)";
        let names: Vec<String> =
            session.rows(query, &[&facts.extensions]).await?.iter().map(|row| row.get(0)).collect();
        session.close().await;
        let version = self.of_running(|running| running.version().to_string());
        Ok((!names.is_empty()).then_some(Lacks { names, version, major: facts.major }))
    }

    /// A database of the server for dumps.
    pub(crate) fn target(&self, database: &str) -> Target {
        self.of_running(|running| {
            let at = running.connection();
            Target::embedded(&at.socket_dir, at.port, at.user, database)
        })
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.of_running(Running::data_dir)
    }

    /// Its process id.
    pub(crate) fn server_pid(&self) -> u32 {
        self.of_running(Running::server_pid)
    }

    fn of_running<T>(&self, ask: impl FnOnce(&Running) -> T) -> T {
        ask(self.running.borrow().as_ref().expect("it was started"))
    }

    /// Starts the server for dumps again, if it has ended by itself. Returns the cause of its end.
    pub(crate) async fn revive(&self) -> Result<Option<String>, BackupError> {
        if !self.has_ended().await {
            return Ok(None);
        }
        let (ended, dumps) = (self.running.borrow_mut().take(), self.dumps.clone());
        let revived = self.unless_over(move |shared| {
            let end = ended.map(Running::stop);
            shared.started = Some(started(&dumps)?);
            Ok(end)
        });
        let end = revived.await?;
        self.take_started();
        Ok(Some(match end {
            Some(Err(pgserver::Error::Died { how, cause, .. })) => format!("{how}: {cause}"),
            Some(Err(error)) => error.to_string(),
            _ => "its log names no cause".to_owned(),
        }))
    }

    /// Whether the server for dumps has ended. If it answers no more, its end is awaited.
    async fn has_ended(&self) -> bool {
        let began = Instant::now();
        loop {
            if !self.running.borrow_mut().as_mut().is_some_and(Running::is_alive) {
                return true;
            }
            if began.elapsed() > ENDS {
                return false;
            }
            if let Ok(session) = Session::open(&self.target("postgres")).await {
                session.close().await;
                return false;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Creates the empty database for a dump. Returns whether it has the original's locale.
    pub(crate) async fn create_database(&self, facts: &Facts) -> Result<bool, BackupError> {
        let session = Session::open(&self.target("postgres")).await?;
        let create = |collate: &str, ctype: &str, provided: &str| {
            format!(
                "CREATE DATABASE {RESTORED} TEMPLATE template0 ENCODING {} LC_COLLATE {} LC_CTYPE {}{provided}",
                literal(&facts.encoding),
                literal(collate),
                literal(ctype)
            )
        };
        let provided = facts.provided.as_ref().map_or_else(String::new, |(provider, locale)| {
            format!(" LOCALE_PROVIDER {provider} {provider}_LOCALE {}", literal(locale))
        });
        let created = session.run(&create(&facts.collate, &facts.ctype, &provided)).await;
        let has_locale = created.is_ok();
        if !has_locale {
            session.run(&create("C", "C", "")).await?;
        }
        if facts.monetary != "C" {
            let set = format!("ALTER DATABASE {RESTORED} SET lc_monetary = {}", literal(&facts.monetary));
            // The machine may lack this locale; then only values of type money show it.
            if let Err(error) = session.run(&set).await
                && error.sqlstate().is_none()
            {
                return Err(error.into());
            }
        }
        session.close().await;
        Ok(has_locale)
    }

    /// Drops it.
    pub(crate) async fn drop_database(&self) -> Result<(), BackupError> {
        let session = Session::open(&self.target("postgres")).await?;
        session.run(&format!("DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)")).await?;
        session.close().await;
        Ok(())
    }

    /// Deletes the restored files that a failed trial has left, so that the next one has their space.
    pub(crate) async fn clear(&self) -> Result<(), BackupError> {
        self.base.place_for_restored()?;
        self.revive().await?;
        self.drop_database().await
    }

    /// Starts the server of a base backup.
    pub(crate) async fn start_base(&self) -> Result<Running, BackupError> {
        self.start_restored(self.base.clone(), Instance::adopt_restored).await
    }

    /// Starts the server of a base backup, which then replays WAL as these settings say. Returns before all of it is replayed.
    pub(crate) async fn start_recovery(&self, settings: &[(String, String)]) -> Result<Running, BackupError> {
        let mut spec = self.of_base.clone();
        spec.set.extend_from_slice(settings);
        let base = Instance::open(&self.home, spec)?;
        self.start_restored(base, Instance::adopt_restored_for_recovery).await
    }

    async fn start_restored(
        &self,
        base: Instance,
        adopt: fn(&Instance) -> pgserver::Result<()>,
    ) -> Result<Running, BackupError> {
        self.unless_over(move |_| {
            adopt(&base)?;
            started(&base)
        })
        .await
    }

    /// Stops it and deletes its data.
    pub(crate) async fn end_base(&self, running: Option<Running>) -> Result<(), BackupError> {
        let (base, shared) = (self.base.clone(), Arc::clone(&self.shared));
        blocking(move || {
            let (_lock, _ending) = (locked(&shared), Ending::new());
            running.map_or(Ok(()), Running::stop).map_err(without_log)?;
            match base.destroy(&|_| ()) {
                Err(pgserver::Error::NotCreated { .. }) => Ok(()),
                ended => ended.map_err(BackupError::from),
            }
        })
        .await
    }

    /// Stops and deletes everything.
    pub(crate) fn end(self) -> Result<(), BackupError> {
        let _ending = Ending::new();
        // Waits for a start or a deletion that was under way when the run was interrupted.
        let started = {
            let mut shared = locked(&self.shared);
            shared.is_over = true;
            shared.started.take()
        };
        let running = self.running.into_inner().or(started);
        // Without the right, this run has made nothing.
        let Some(only) = self.only else { return Ok(()) };
        if !self.is_started && running.is_none() {
            drop(only);
            remove_empty(&self.home);
            return Ok(());
        }
        let removed =
            if self.work.exists() { fs::remove_dir_all(&self.work).on("delete", &self.work) } else { Ok(()) };
        let mut destroyed = destroy(&self.base);
        for (instance, running) in self.filled {
            let stopped = running.map_or(Ok(()), Running::discard).map_err(BackupError::from);
            destroyed = destroyed.and(stopped).and(destroy(&instance));
        }
        // Without it, the server could not be started again.
        running.map_or(Ok(()), Running::discard)?;
        destroyed.and(destroy(&self.dumps)).and(removed)?;
        drop(only);
        remove_empty(&self.home);
        Ok(())
    }
}

/// Removes the directories if they are empty. If another run has begun, they are not.
fn remove_empty(home: &Home) {
    let root = home.server_root();
    for directory in [&root.join("instances"), root, home.root(), home.root().parent().unwrap_or(root)] {
        let _ = fs::remove_dir(directory);
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The target with options that win over settings of roles and databases, which stay in force in a restored server: this machine may lack
/// the libraries that they name, and they may limit the time of statements. Its role has to be a superuser.
pub(crate) fn undisturbed(target: Target) -> Target {
    ["session_preload_libraries", "local_preload_libraries"]
        .into_iter()
        .fold(target, |target, name| target.with_setting(name, ""))
        .with_setting("statement_timeout", "0")
}

/// The instance with data of a size.
fn size(number: usize) -> String {
    format!("size-{}", number + 1)
}

/// Does blocking work beside the runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
