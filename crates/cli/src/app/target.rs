//! The server that a verb works on: a server that options or the environment name, or pgrig's own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use connect::{ConnectError, ConnectOptions, Connection, SERVER_VARIABLES, Target, recipe, resolve};
use pgserver::{Home, Instance, Running, Spec};
use server::quote::shell_word;
use server::settings::{Restart, ServerRef};
use server::{DataDirectory, DifferingSetting, Restarter, differing_settings, runs_on};
use tps::matrix::ServerFacts;

use crate::app::announce::{announce, announce_temporary};
use crate::app::args::{EmbeddedArgs, ServerAddress, ServerChoice};
use crate::app::failure::{Failure, MachineFailure, Usage};
use crate::app::instance::{create_database, refuse_new, run_sql, unreachable_at};
use crate::app::printer::Printer;
use crate::app::{near, pooler, recovery, variables};

/// `server` and `pgserver` know the oldest release each for itself, since neither uses the other.
const _: () = assert!(server::OLDEST_MAJOR == pgserver::Major::OLDEST.number());

/// The server that a verb works on. An embedded server that was started for the verb is stopped
/// with it.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    home: Home,
    kind: Kind,
    /// Whether the verb works through a pooler that changes sessions.
    may_change_sessions: bool,
    /// Whether pgrig has created the instance for a plan, and deletes it at the end.
    is_temporary: bool,
    /// Whether the warnings of a connection were printed.
    has_warned: AtomicBool,
}

/// The owner of the server.
enum Kind {
    Embedded(Box<Embedded>),
    /// A server that an option or the environment names, and the connection string to reach it
    /// again.
    Named {
        recipe: String,
        /// The instance, if the server turns out to be pgrig's own; known once there was a
        /// connection.
        own: OnceLock<Box<Embedded>>,
    },
}

/// pgrig's own server, running.
struct Embedded {
    instance: Instance,
    /// The running server; a restart replaces it.
    running: Mutex<Running>,
}

/// Finds the server, and starts the embedded one if that is meant.
pub(crate) fn choose(choice: &ServerChoice, home: &Home, printer: &Printer) -> Result<Chosen, Failure> {
    if server_kind(choice)? == ServerKind::Named {
        let target = named(choice)?;
        let kind = Kind::Named { recipe: recipe(&options(choice), &env)?, own: OnceLock::new() };
        let may_change_sessions = choice.may_change_sessions;
        return Ok(Chosen {
            target,
            home: home.clone(),
            kind,
            may_change_sessions,
            is_temporary: false,
            has_warned: AtomicBool::new(false),
        });
    }
    if let (Some(name), Some(database)) = (&choice.address.embedded.instance, database_of_own(choice)) {
        refuse_new(home, name, database)?;
    }
    let instance = Instance::open(home, spec(&choice.address.embedded))?;
    let mut running = instance.attach_or_start(&|event| printer.say(event))?;
    announce(&running, home, printer);
    let is_temporary = choice.only_plans && running.is_new();
    if is_temporary {
        // Also after an error.
        running.delete_at_end(&instance);
        announce_temporary(instance.name(), printer);
    }
    let at = running.connection();
    let target = Target::embedded(&at.socket_dir, at.port, at.user, at.database);
    recovery::put_back_own(home, instance.name(), &target, !running.leaves_running(), printer)?;
    let target =
        Target::embedded(&at.socket_dir, at.port, at.user, database_of_own(choice).unwrap_or(at.database));
    let embedded = Box::new(Embedded { instance, running: Mutex::new(running) });
    Ok(Chosen {
        target,
        home: home.clone(),
        kind: Kind::Embedded(embedded),
        may_change_sessions: false,
        is_temporary,
        has_warned: AtomicBool::new(false),
    })
}

/// The kind of server that the arguments select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// The PostgreSQL that pgrig brings and starts.
    Own,
    /// The server that an option or the environment names.
    Named,
}

/// Decides which server the arguments select.
///
/// # Errors
/// If both are asked for, or a variable is not UTF-8.
pub(crate) fn server_kind(choice: &ServerChoice) -> Result<ServerKind, Usage> {
    if database_of_own(choice).is_some() {
        return Ok(ServerKind::Own);
    }
    let named = options(choice).names_a_server(&|_| None);
    if named && choice.address.embedded.any() {
        return Err(choice.of_two_servers());
    }
    if !choice.address.embedded.any() {
        variables::check()?;
    }
    let named = named || !choice.address.embedded.any() && options(choice).names_a_server(&env);
    Ok(if named { ServerKind::Named } else { ServerKind::Own })
}

/// The database of pgrig's own server that -d names beside --instance and the like.
fn database_of_own(choice: &ServerChoice) -> Option<&str> {
    let ServerChoice { dbname, address: ServerAddress { host, port, username, embedded }, .. } = choice;
    let is_alone = embedded.any() && host.is_none() && port.is_none() && username.is_none();
    dbname.as_deref().filter(|name| is_alone && !name.contains('=') && !name.contains("://"))
}

/// The connection options among the arguments.
pub(crate) fn options(choice: &ServerChoice) -> ConnectOptions {
    ConnectOptions {
        dbname: choice.dbname.clone(),
        host: choice.address.host.clone(),
        port: choice.address.port.clone(),
        user: choice.address.username.clone(),
    }
}

/// A server that options name, without a connection.
pub(crate) fn named(choice: &ServerChoice) -> Result<Target, Failure> {
    let resolved = resolve(&options(choice), &env);
    Ok(resolved.map_err(|error| {
        let instance = own_instead(choice, "-d then names one of its databases");
        error.with_own(format!(
            "{instance}, or leave out all connection options and database names{}",
            and_unset()
        ))
    })?)
}

/// The variables to unset, so that a command without options uses pgrig's own server.
fn and_unset() -> String {
    let is_set = |name: &&str| env(name).is_some_and(|value| !value.is_empty());
    let set: Vec<&str> = SERVER_VARIABLES.into_iter().filter(is_set).collect();
    match set.as_slice() {
        [] => String::new(),
        [one] => format!(", and unset {one}"),
        [others @ .., last] => format!(", and unset {} and {last}", others.join(", ")),
    }
}

/// The option that selects pgrig's own server, and the options to replace. `databases` says how its databases are named.
fn own_instead(choice: &ServerChoice, databases: &str) -> String {
    let ServerChoice { dbname, address: ServerAddress { host, port, username, .. }, .. } = choice;
    let is_uri = dbname.as_deref().is_some_and(|name| name.contains('=') || name.contains("://"));
    let instead = if is_uri {
        " instead of -h, -p, -U and a URI"
    } else if [host, port, username].into_iter().any(Option::is_some) {
        " instead of -h, -p and -U"
    } else {
        ""
    };
    format!("give --instance default{instead} ({databases})")
}

/// The error of a verb that uses pgrig's own server only if --instance or the like names it.
pub(crate) fn only_by_instance(failure: Failure, choice: &ServerChoice, databases: &str) -> Failure {
    match failure.error::<ConnectError>() {
        Some(ConnectError::NoSocket { port, directories, .. }) => {
            let own = own_instead(choice, databases);
            ConnectError::NoSocket { port: *port, directories: directories.clone(), own }.into()
        }
        _ => failure,
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The instance that the arguments describe.
pub(crate) fn spec(embedded: &EmbeddedArgs) -> Spec {
    let default = Spec::default();
    Spec {
        name: embedded.instance.clone().unwrap_or(default.name),
        version: embedded.pg_version,
        pg_bin: embedded.pg_bin.clone(),
        profile: embedded.profile,
        set: embedded.set.clone(),
        tcp: None,
        defaults: embedded.defaults.clone(),
    }
}

impl Chosen {
    /// Connects, and makes sure that an embedded server runs with the settings it was given.
    pub(crate) async fn connect(&self, printer: &Printer) -> Result<Connection, Failure> {
        let connection = self.connect_or_restart(printer).await?;
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            for warning in self.target.warnings().iter().chain(connection.warnings()) {
                printer.warn(warning);
            }
        }
        match &self.kind {
            Kind::Embedded(embedded) => {
                let settings = embedded.running().settings().to_vec();
                assert_settings(&connection, &settings).await?;
            }
            Kind::Named { own, .. } if own.get().is_none() => {
                pooler::refuse(&self.target, &connection, self.may_change_sessions, printer).await?;
                if let Some(embedded) = own_server(&self.home, &connection).await? {
                    announce(&embedded.running(), &self.home, printer);
                    // Another connection of this process may have found it meanwhile: it is the same one.
                    let _ = own.set(Box::new(embedded));
                }
            }
            Kind::Named { .. } => {}
        }
        Ok(connection)
    }

    /// pgrig's own server, however it was named. For a named server this is known only after the
    /// first connection.
    fn own(&self) -> Option<&Embedded> {
        match &self.kind {
            Kind::Embedded(embedded) => Some(embedded),
            Kind::Named { own, .. } => own.get().map(|embedded| &**embedded),
        }
    }

    /// Whether an option or the environment names the server, and with it a database.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.kind, Kind::Named { .. })
    }

    /// Connects, waiting for a server that is not ready yet. If pgrig's own server has died, it is
    /// started again.
    async fn connect_or_restart(&self, printer: &Printer) -> Result<Connection, Failure> {
        let error = match self.target.connect_when_ready(&|text| printer.say(text)).await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        match &self.kind {
            Kind::Embedded(embedded) if !embedded.running().is_alive() => {
                printer.say(format!("the server has died ({error}): starting it again"));
                let started = embedded.instance.attach_or_start(&|event| printer.say(event))?;
                *embedded.running() = started;
                Ok(self.target.connect_when_ready(&|text| printer.say(text)).await?)
            }
            _ => Err(match unreachable_at(&self.home, &self.target.host_list(), &error) {
                Some(stopped) => stopped.into(),
                None => self.refused(&self.target, error).await.into(),
            }),
        }
    }

    /// The error of a connection to one of the server's databases. createdb does not reach pgrig's own server, which stops with this
    /// command.
    pub(crate) async fn refused(&self, target: &Target, error: ConnectError) -> ConnectError {
        let error = match &self.kind {
            Kind::Embedded(own) if target.is_embedded() => {
                error.with_creation(&create_database(own.instance.name(), target.dbname()))
            }
            Kind::Embedded(_) | Kind::Named { .. } => error,
        };
        near::with_databases(target, error).await
    }

    /// The way to another database of pgrig's own server; none for a server that the user names.
    pub(crate) fn another_database(&self) -> Option<String> {
        match &self.kind {
            Kind::Embedded(own) => {
                let instance = own.instance.name();
                let created = create_database(instance, "other");
                Some(format!("run {created}, and give --instance {} -d other", shell_word(instance)))
            }
            Kind::Named { .. } => None,
        }
    }

    /// The command that runs SQL on pgrig's own server; none for a server that the user names.
    pub(crate) fn command_for(&self, sql: &str) -> Option<String> {
        match &self.kind {
            Kind::Embedded(own) => Some(run_sql(own.instance.name(), self.target.dbname(), sql)),
            Kind::Named { .. } => None,
        }
    }

    /// Makes sure that nothing is left changed on a named server. (pgrig's own server is restored
    /// when it is chosen.)
    ///
    /// # Errors
    /// If something is still changed.
    pub(crate) fn check_restored(&self, home: &Home, printer: &Printer) -> Result<(), Failure> {
        match &self.kind {
            Kind::Embedded(_) => Ok(()),
            Kind::Named { .. } => recovery::check_restored(home, &self.target, printer),
        }
    }

    /// The data directory; `named` is the path that the user gives.
    ///
    /// # Errors
    /// If the user gives a path for pgrig's own server.
    pub(crate) fn data_directory(&self, named: Option<&Path>) -> Result<DataDirectory, Usage> {
        match (&self.kind, named) {
            (Kind::Embedded(_), Some(_)) => {
                Err(Usage("--data-directory is not for pgrig's own server: leave it out".to_owned()))
            }
            (Kind::Named { .. }, Some(named)) => Ok(DataDirectory::Named(named.to_owned())),
            (_, None) => {
                let own = self.own().map(|own| DataDirectory::Own(own.running().data_dir()));
                Ok(own.unwrap_or(DataDirectory::Asked))
            }
        }
    }

    /// The embedded instance's name, if it was started for this verb and stops with it.
    pub(crate) fn stopped_instance(&self) -> Option<&str> {
        match &self.kind {
            Kind::Embedded(own) if !own.running().leaves_running() => Some(own.instance.name()),
            _ => None,
        }
    }

    /// Refuses a part on a server that this part has started: the server would stop when this part ends.
    ///
    /// # Errors
    /// If this process has started the server.
    pub(crate) fn refuse_parts(&self) -> Result<(), Usage> {
        match self.stopped_instance() {
            None => Ok(()),
            Some(_) => Err(Usage(
                "--part: this command has started pgrig's own server, which would stop when this part ends: run pgrig server start \
                 before the parts start"
                    .to_owned(),
            )),
        }
    }

    /// The server, as a journal of changes names it.
    pub(crate) fn place(&self) -> ServerRef {
        match &self.kind {
            Kind::Embedded(embedded) => ServerRef::Own(embedded.instance.name().to_owned()),
            Kind::Named { recipe, .. } => ServerRef::Named(recipe.clone()),
        }
    }

    /// The owner of the server, and whether pgrig may restart it.
    pub(crate) fn server_facts(&self) -> ServerFacts {
        match self.own() {
            None => ServerFacts {
                is_own: false,
                restart: Restart::Impossible(
                    "pgrig does not restart this server. Set it and restart the server yourself, or use pgrig's own server \
                     (no -d, -h, -p, -U)",
                ),
            },
            Some(own) if own.running().leaves_running() => ServerFacts {
                is_own: true,
                restart: Restart::Impossible(
                    "pgrig server start keeps this server for other commands, so pgrig does not restart it. Run pgrig \
                     server stop (with --instance NAME, unless it is the instance default); this command then starts its own",
                ),
            },
            Some(_) => ServerFacts { is_own: true, restart: Restart::Possible },
        }
    }

    /// Restarts the server; none if it is not one that this process has started.
    pub(crate) fn restarter(&self) -> Option<&dyn Restarter> {
        self.stopped_instance().map(|_| self as &dyn Restarter)
    }

    /// Leaves the server in the state in which it was found: stops it if it was started for the
    /// verb, and deletes an instance that was created for a plan.
    pub(crate) fn release(self, printer: &Printer) -> Result<(), Failure> {
        let own = match self.kind {
            Kind::Embedded(embedded) => Some(embedded),
            Kind::Named { own, .. } => own.into_inner(),
        };
        let Some(own) = own else { return Ok(()) };
        let running = own.running.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _ending = connect::Ending::new();
        if self.is_temporary {
            return Ok(running.discard()?);
        }
        Ok(running.stop_telling(&|event| printer.say(event))?)
    }

    /// The embedded server's log, for hints; none if it is deleted at the end.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        self.own().filter(|_| !self.is_temporary).map(|own| own.running().log_path())
    }
}

impl Embedded {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Restarter for Chosen {
    fn restart(&self, settings: &[(String, String)]) -> Result<(), String> {
        match &self.kind {
            Kind::Embedded(embedded) => {
                let restarted = embedded.instance.restart(&mut embedded.running(), settings, &|_| ());
                restarted.map_err(|error| error.to_string())
            }
            Kind::Named { .. } => Err("it is not pgrig's own".to_owned()),
        }
    }
}

/// The instance of pgrig's that the connection leads to, if its server outlives the pgrig that
/// started it. The session's process must be a child of the instance's postmaster, and the data
/// directory must have the server's system identifier: so the directory is no copy, and the server
/// is not on another machine or in a container.
async fn own_server(home: &Home, connection: &Connection) -> Result<Option<Embedded>, Failure> {
    let pid: i32 = match connection.client.query_one("SELECT pg_backend_pid()", &[]).await {
        Ok(row) => row.get(0),
        Err(error) => return Err(connection.explain(error).await.into()),
    };
    let Some((instance, running)) = Instance::serving(home, pid.unsigned_abs())? else { return Ok(None) };
    let is_it = runs_on(connection, &running.data_dir()).await;
    Ok(is_it.then(|| Embedded { instance, running: Mutex::new(running) }))
}

/// The data directory of the instance of pgrig's that the connection leads to, if it does.
pub(crate) async fn own_data_directory(
    home: &Home,
    connection: &Connection,
) -> Result<Option<PathBuf>, Failure> {
    Ok(own_server(home, connection).await?.map(|own| own.running().data_dir()))
}

/// Checks with SHOW that the server has the settings that it was started with; otherwise results
/// would be labelled wrongly.
pub(crate) async fn assert_settings(
    connection: &Connection,
    settings: &[(String, String)],
) -> Result<(), Failure> {
    let differing = differing_settings(&connection.client, settings)
        .await
        .map_err(|error| MachineFailure(format!("cannot read settings: {error}")))?;
    let Some(DifferingSetting { name, expected, active, remedy }) = differing.into_iter().next() else {
        return Ok(());
    };
    Err(MachineFailure(format!(
        "{name} is {active}, but pgrig started this instance with {expected}: {remedy}, or give --set {name}={active}"
    ))
    .into())
}
