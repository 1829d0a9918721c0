//! `pgrig doctor`: the verbs that work on this machine and with this server.

pub(crate) mod args;
mod rights;

use backup::{BackupError, Readiness};
use connect::{Target, resolve};
use measure::human::bytes;
use pgserver::{Home, Instance, InstanceState, Programs, ServerStatus};
use server::{DataDirectory, Survey, volume_of};

use self::rights::Rights;
use crate::app::failure::Failure;
use crate::app::interrupt;
use crate::app::printer::Printer;
use crate::app::target::{self, ServerKind};
use crate::app::version::VERSION;
use crate::cmd::doctor::args::DoctorArgs;

/// Checks, and prints a line for each result.
pub(crate) fn run(arguments: &DoctorArgs, printer: &Printer) -> Result<(), Failure> {
    let home = Home::locate()?;
    line(printer, "pgrig", VERSION)?;
    line(printer, "home", &place(&home))?;
    line(printer, "downloaded", &downloaded(&home))?;
    let server_kind = target::server_kind(&arguments.server)?;
    let target = match server_kind {
        ServerKind::Named => resolve(&target::options(&arguments.server), &|name| std::env::var(name).ok())?,
        ServerKind::Own => {
            let instance = Instance::open(&home, target::spec(&arguments.server.address.embedded))?;
            let status = instance.status()?;
            let InstanceState::Running(server) = &status.state else {
                return resting(&instance, &status.state, printer);
            };
            if let Some(why) = status.in_use() {
                return in_use(server, &why, printer);
            }
            let at = instance.connection()?;
            Target::embedded(&at.socket_dir, at.port, at.user, at.database)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    interrupt::block_on(runtime, printer, async {
        let connection = target.connect_when_ready(&|text| printer.say(text)).await?;
        let own = target::own_data_directory(&home, &connection).await?;
        let directory = own.map_or(DataDirectory::Asked, DataDirectory::Own);
        let survey = Survey::of(&connection, &directory, VERSION).await?;
        let rights = Rights::ask(&connection).await?;
        let environment = &survey.environment;
        let own = if survey.site.own { "pgrig's own " } else { "" };
        let release = environment.server.release();
        line(printer, "server", &format!("{own}{release}, {}", environment.transport))?;
        line(printer, "role", &format!("{}: {}", environment.role, rights.phrase()))?;
        if let Some(disk) = &environment.data_volume {
            line(
                printer,
                "disk",
                &format!("{} free on {} for the server's data", bytes(disk.free), disk.mount),
            )?;
        }
        let mut backup = Readiness::of(&target, survey.server.version_num).await?;
        if !survey.site.own {
            backup.programs = backup.programs.map_err(BackupError::of_fixed_version);
        }
        for (verb, answer) in rights.verbs(&survey, &backup) {
            line(printer, verb, &answer)?;
        }
        Ok(())
    })
}

/// pgrig's own server belongs to another pgrig process, so no verb can use it now.
fn in_use(server: &ServerStatus, why: &pgserver::Error, printer: &Printer) -> Result<(), Failure> {
    let version = server.version.as_ref().map(|version| format!(", version {version}")).unwrap_or_default();
    let owner = server.owner_pid.map(|pid| format!(", in use by pgrig process {pid}")).unwrap_or_default();
    line(printer, "server", &format!("pgrig's own PostgreSQL{version}{owner}"))?;
    line(printer, "verbs", &format!("not checked: {why}"))
}

/// pgrig's own server does not run. Only its programs can be checked, not the verbs.
fn resting(instance: &Instance, state: &InstanceState, printer: &Printer) -> Result<(), Failure> {
    let state = match state {
        InstanceState::NotCreated => "not created yet".to_owned(),
        InstanceState::Stopped { version: Some(version), data_bytes, .. } => {
            format!("version {version}, stopped, {} of data", bytes(*data_bytes))
        }
        InstanceState::Stopped { .. } | InstanceState::Running(_) => "stopped".to_owned(),
    };
    line(printer, "server", &format!("pgrig's own PostgreSQL, {state}"))?;
    let programs = match instance.programs()? {
        Programs::Run(programs) => {
            format!("PostgreSQL {} runs on this machine: {}", programs.version(), programs.dir().display())
        }
        Programs::Missing { version, is_downloaded: true } => {
            format!("PostgreSQL {version} is not installed yet: the first command downloads it")
        }
        Programs::Missing { version, is_downloaded: false } => {
            format!("PostgreSQL {version} is not installed: run pgrig server fetch --from FILE")
        }
    };
    line(printer, "programs", &programs)?;
    let name = instance.name();
    let named =
        if name == pgserver::Spec::default().name { String::new() } else { format!(" --instance {name}") };
    line(
        printer,
        "verbs",
        &format!(
            "not checked, since the server is not running: run pgrig server start{named}, then pgrig doctor{named}"
        ),
    )?;
    line(printer, "another server", "pgrig doctor -d postgresql://USER@HOST/DBNAME")
}

fn place(home: &Home) -> String {
    let root = home.root();
    let existing = root.ancestors().find(|path| path.exists()).unwrap_or(root);
    match volume_of(existing) {
        Some(disk) => format!("{}, {} free on {}", root.display(), bytes(disk.free), disk.mount),
        None => root.display().to_string(),
    }
}

fn downloaded(home: &Home) -> String {
    let entries = std::fs::read_dir(home.postgresql_dir()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_version = |name: &String| {
        let number = name.strip_suffix("-musl").unwrap_or(name);
        number.chars().all(|char| char.is_ascii_digit() || char == '.')
    };
    let mut versions: Vec<String> = names.filter(|name| !name.starts_with('.') && is_version(name)).collect();
    versions.sort();
    let fetch = std::env::var("PGRIG_FETCH").is_ok_and(|value| value == "never");
    let more =
        if fetch { "downloading is off (PGRIG_FETCH=never)" } else { "13 to 18 are downloaded when needed" };
    if versions.is_empty() {
        return format!("no PostgreSQL yet; {more}");
    }
    format!("PostgreSQL {}; {more}", versions.join(", "))
}

fn line(printer: &Printer, name: &str, text: &str) -> Result<(), Failure> {
    Ok(printer.result(format!("{name:<16}{text}"))?)
}
