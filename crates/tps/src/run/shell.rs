//! `\shell` and `\setshell`: commands that the system's shell carries out.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use script::Shell;

/// Runs a command, and waits for it. Its output goes to standard error, because results go to
/// standard output.
pub(crate) fn carry_out(command: &str) -> Result<(), String> {
    let shown = std::io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    match shell(command).stdout(shown).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("\\shell: the command failed: {status}")),
        Err(error) => Err(format!("\\shell: the command could not be started: {error}")),
    }
}

/// The integer that a command prints.
pub(crate) fn ask(command: &str) -> Result<i64, String> {
    let output = shell(command).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("\\setshell: the command could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.is_empty() {
        return Err(format!("\\setshell: the command printed nothing: {}", output.status));
    }
    Shell::printed(&text).ok_or_else(|| {
        let line = text.lines().next().unwrap_or_default();
        format!("\\setshell: the command must print an integer, not \"{line}\"")
    })
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    shell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read() {
        assert_eq!(ask("echo 42; echo more"), Ok(42));
        // pgbench does not look at the status either.
        assert_eq!(ask("echo -1; exit 3"), Ok(-1));
        assert_eq!(ask("echo x").unwrap_err(), "\\setshell: the command must print an integer, not \"x\"");
        assert_eq!(ask("exit 3").unwrap_err(), "\\setshell: the command printed nothing: exit status: 3");
    }

    #[test]
    fn failures_are_told() {
        assert_eq!(carry_out("true"), Ok(()));
        assert_eq!(carry_out("exit 2").unwrap_err(), "\\shell: the command failed: exit status: 2");
    }
}
