//! Names and values of settings that a server program knows.

use crate::account::Account;
use crate::initdb::clean_environment;
use crate::spawn::{OnParentDeath, detach};
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::{Command, Stdio};

/// Message of `postgres -C` for a name that it does not know (`find_option` in `guc.c`).
const UNKNOWN: &str = "unrecognized configuration parameter";

/// The value of a setting in a data directory, in the server's base unit, or the value that it would have if it were set to this one; none if the
/// program does not tell.
pub(crate) fn value(
    postgres: &Path,
    data: &Path,
    (name, set): (&str, Option<&str>),
    account: &Account,
) -> Option<String> {
    let mut command = Command::new(postgres);
    command.arg("-D").arg(data).args(["-C", name]).stdin(Stdio::null());
    if let Some(value) = set {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    clean_environment(&mut command);
    account.apply(&mut command);
    detach(&mut command, OnParentDeath::Send(Signal::SIGKILL));
    let told = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(told.stdout).ok()
}

/// Whether the server program does not know a setting. It reads the configuration of this data directory, on which a server may run.
/// False if it does not tell: for settings of extensions, and if it cannot run.
pub(crate) fn is_unknown(postgres: &Path, data: &Path, name: &str, account: &Account) -> bool {
    if name.contains('.') {
        return false;
    }
    let mut command = Command::new(postgres);
    command.arg("-D").arg(data).args(["-C", name]).stdin(Stdio::null());
    clean_environment(&mut command);
    account.apply(&mut command);
    detach(&mut command, OnParentDeath::Send(Signal::SIGKILL));
    let told = command.output();
    told.is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains(UNKNOWN))
}
