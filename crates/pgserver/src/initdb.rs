//! Makes a data directory, wholly or not at all.

use crate::account::Account;
use crate::error::OnPath;
use crate::files::{free_bytes, name_of, replace, sync};
use crate::spawn::{OnParentDeath, detach};
use crate::{Binaries, Error, Result, config_file, diagnose};
use nix::sys::signal::Signal;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prefix of directories that a killed initdb may leave behind. They do not count as instances.
const STAGING: &str = ".initdb-";

/// Runs initdb beside `<instance>/data` and renames the result, so that a data directory is always
/// complete.
pub(crate) fn create(instance: &Path, binaries: &Binaries, account: &Account) -> Result<()> {
    sweep(instance);
    let password = write_password(instance, account)?;
    let staging =
        tempfile::Builder::new().prefix(STAGING).tempdir_in(instance).on("create directory in", instance)?;
    account.give(staging.path())?;
    let data = staging.path().join("data");
    run(instance, &data, &password, binaries, account)?;
    config_file::include(&data, account)?;
    let place = instance.join("data");
    fs::rename(&data, &place).on("create", &place)?;
    sync(instance)
}

/// The superuser's password, if the instance has one.
pub(crate) fn password(instance: &Path) -> Option<String> {
    let text = fs::read_to_string(instance.join("password")).ok()?;
    Some(text.trim().to_owned())
}

fn sweep(instance: &Path) {
    for entry in fs::read_dir(instance).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            // A leftover costs space only.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn write_password(instance: &Path, account: &Account) -> Result<PathBuf> {
    let source = Path::new("/dev/urandom");
    let mut random = [0_u8; 24];
    File::open(source).and_then(|mut file| file.read_exact(&mut random)).on("read", source)?;
    let number = |half: &[u8]| half.iter().fold(0_u128, |n, byte| n << 8 | u128::from(*byte));
    let (one, two) = random.split_at(12);
    let text = format!("{:024x}{:024x}\n", number(one), number(two));
    let path = instance.join("password");
    replace(&path, text.as_bytes(), 0o600, Some(account))?;
    Ok(path)
}

fn run(instance: &Path, data: &Path, password: &Path, binaries: &Binaries, account: &Account) -> Result<()> {
    let program = binaries.program("initdb");
    let mut command = Command::new(&program);
    command
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "--encoding=UTF8", "--locale=C"])
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg("--pwfile")
        .arg(password);
    clean_environment(&mut command);
    account.apply(&mut command);
    // Its children read their orders from it and end with it.
    detach(&mut command, OnParentDeath::Send(Signal::SIGKILL));
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| diagnose::not_run(&program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = diagnose::explain(&said, free_bytes(instance));
    let name = name_of(instance);
    Err(Error::Initdb {
        remedy: why.remedy(&name),
        instance: name,
        cause: format!("{} ({})", why.cause, output.status),
    })
}

/// Removes PG* variables (PGPORT, PGDATA, PGTZ …) from the command's environment: PostgreSQL would
/// take defaults from them that are meant for other servers or for clients. Makes messages English,
/// and changes to a directory that the account can enter.
pub(crate) fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").current_dir("/");
}
