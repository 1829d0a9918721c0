//! Which server a verb works on: the one that was named, or the embedded one.

use std::path::{Path, PathBuf};

use anyhow::Context;
use pgserver::{Home, Instance, Running, Spec};
use workload::connect::{ConnectOptions, Connection, Target, resolve};
use workload::fill::DataDirectory;
use workload::server::differing_settings;

use crate::args::{EmbeddedArgs, ServerChoice};
use crate::exit::Usage;
use crate::printer::Printer;

/// The server that a verb works on. An embedded one that was started for it stops with it.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    embedded: Option<Embedded>,
}

/// pgrig's own server, running.
struct Embedded {
    instance: String,
    running: Running,
}

/// Finds the server, and starts the embedded one if that is meant.
pub(crate) fn choose(choice: &ServerChoice, home: &Home, printer: &Printer) -> anyhow::Result<Chosen> {
    let options = ConnectOptions {
        dbname: choice.dbname.clone(),
        host: choice.host.clone(),
        port: choice.port.clone(),
        user: choice.username.clone(),
    };
    let env = |name: &str| std::env::var(name).ok();
    let named = options.names_a_server(&|_| None);
    if named && choice.embedded.any() {
        return Err(Usage(
            "-d, -h, -p and -U name a server; --instance, --pg-version, --pg-bin, --profile and --set mean \
             pgrig's own: give one or the other"
                .to_owned(),
        )
        .into());
    }
    if named || !choice.embedded.any() && options.names_a_server(&env) {
        let target = resolve(&options, &env)?;
        return Ok(Chosen { target, embedded: None });
    }
    let instance = Instance::open(home, spec(&choice.embedded))?;
    let running = instance.attach_or_start(&|event| printer.say(event))?;
    announce(&running, home, printer);
    let at = running.connection();
    let target = Target::embedded(&at.socket_dir, at.port, at.user, at.database);
    let embedded = Embedded { instance: instance.name().to_owned(), running };
    Ok(Chosen { target, embedded: Some(embedded) })
}

/// What the arguments ask of an instance.
pub(crate) fn spec(embedded: &EmbeddedArgs) -> Spec {
    let default = Spec::default();
    Spec {
        name: embedded.instance.clone().unwrap_or(default.name),
        version: embedded.pg_version,
        pg_bin: embedded.pg_bin.clone(),
        profile: embedded.profile,
        set: embedded.set.clone(),
        tcp: None,
    }
}

/// Says which server this is, where it lives, and if a crash may cost data.
pub(crate) fn announce(running: &Running, home: &Home, printer: &Printer) {
    printer.say(format!(
        "pgrig's own PostgreSQL {}, profile {}, in {}",
        running.version(),
        running.profile(),
        running.data_dir().display(),
    ));
    if let Some(moved) = home.relocated() {
        printer.say(format!(
            "(not under {}: the server's account cannot reach that; it is in {})",
            home.root().display(),
            moved.display(),
        ));
    }
    let off: Vec<&str> = DURABILITY.into_iter().filter(|name| is_off(running.settings(), name)).collect();
    if !off.is_empty() {
        printer.danger(format!(
            "DANGEROUS: off are {}. A crash of the machine may destroy everything in this instance.",
            off.join(", ")
        ));
    }
}

/// What keeps data through a crash.
const DURABILITY: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// Whether the setting is off; the last of several counts. Spellings as PostgreSQL's parse_bool.
fn is_off(settings: &[(String, String)], name: &str) -> bool {
    let last = settings.iter().rev().find(|(set, _)| set.eq_ignore_ascii_case(name));
    last.is_some_and(|(_, value)| {
        let value = value.to_ascii_lowercase();
        ["off", "false", "no", "0", "of", "f", "fa", "fal", "fals", "n"].contains(&value.as_str())
    })
}

impl Chosen {
    /// Connects, and makes sure that an embedded server runs with the settings it was given.
    pub(crate) async fn connect(&self, printer: &Printer) -> anyhow::Result<Connection> {
        let connection = self.target.connect().await?;
        for warning in self.target.warnings().iter().chain(connection.warnings()) {
            printer.warn(warning);
        }
        if let Some(embedded) = &self.embedded {
            assert_settings(&connection, &embedded.running).await?;
        }
        Ok(connection)
    }

    /// The data directory; `named` is where somebody says it is.
    ///
    /// # Errors
    /// If that is said of pgrig's own server.
    pub(crate) fn data_directory(&self, named: Option<&Path>) -> Result<DataDirectory, Usage> {
        match (&self.embedded, named) {
            (Some(_), Some(_)) => Err(Usage(
                "pgrig knows where its own server's data directory is: leave out --data-directory".to_owned(),
            )),
            (Some(embedded), None) => Ok(DataDirectory::Own(embedded.running.data_dir())),
            (None, Some(named)) => Ok(DataDirectory::Named(named.to_owned())),
            (None, None) => Ok(DataDirectory::Asked),
        }
    }

    /// The embedded instance's name, if it was started for this verb and stops with it.
    pub(crate) fn stopped_instance(&self) -> Option<&str> {
        let stopping = self.embedded.as_ref().filter(|embedded| !embedded.running.leaves_running());
        stopping.map(|embedded| embedded.instance.as_str())
    }

    /// Leaves the server as it was found.
    pub(crate) fn release(self, printer: &Printer) -> anyhow::Result<()> {
        match self.embedded {
            Some(embedded) => Ok(embedded.running.stop_telling(&|event| printer.say(event))?),
            None => Ok(()),
        }
    }

    /// The embedded server's log, for hints.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        self.embedded.as_ref().map(|embedded| embedded.running.log_path())
    }
}

/// SHOW must agree with what the server was started with, or results would be labelled wrongly.
pub(crate) async fn assert_settings(connection: &Connection, running: &Running) -> anyhow::Result<()> {
    let differing =
        differing_settings(&connection.client, running.settings()).await.context("cannot read settings")?;
    let Some((name, expected, active)) = differing.into_iter().next() else { return Ok(()) };
    anyhow::bail!(
        "{name} is {active}, not {expected} as this instance was started with (ALTER SYSTEM, or ALTER ROLE \
         or DATABASE … SET?): run ALTER SYSTEM RESET {name}, or give --set {name}={active}"
    )
}
