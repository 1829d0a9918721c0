//! Runs the user's command: finds it before anything is prepared, runs it in a process group of its
//! own, times it, and ends all processes that it started.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use connect::Target;
use server::interruption::GRACE;
use server::quote::shell_word;

/// Most lines of a failed command's output that are shown.
const TAIL_LINES: usize = 40;
/// Most bytes of a failed command's output that are shown.
const TAIL_BYTES: u64 = 16_384;

/// The command of each trial.
#[derive(Clone, Debug)]
pub struct TestCommand {
    program: OsString,
    arguments: Vec<OsString>,
    shown: String,
}

impl TestCommand {
    /// A program and its arguments, run directly. A single word that contains blanks is a script
    /// for `sh -c`. The program is looked up at once.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn new(words: &[OsString]) -> Result<Self, String> {
        let Some((program, arguments)) = words.split_first() else {
            return Err("no command is given: write it after --".to_owned());
        };
        let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let is_script = arguments.is_empty() && program.to_string_lossy().contains(char::is_whitespace);
        if is_script {
            let arguments = vec!["-c".into(), program.clone()];
            return Ok(Self { program: "sh".into(), arguments, shown });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        match find(program, &path) {
            Some(_) => Ok(Self { program: program.clone(), arguments: arguments.to_vec(), shown }),
            None if Path::new(program).is_file() && program.as_encoded_bytes().contains(&b'/') => {
                let file = shell_word(&program.to_string_lossy());
                Err(format!(
                    "cannot run {file}, because it is not executable: run chmod +x {file}, or write sh {file}"
                ))
            }
            None => Err(format!("cannot find the program {}: check its name and PATH", program.display())),
        }
    }

    /// The command as the user typed it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Starts it on that database, with its output in the log. A caller that stops waiting must
    /// call [`Run::end`].
    pub(crate) fn start(&self, target: &Target, output: &Output) -> io::Result<Run> {
        let (log, begins) = output.open()?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).process_group(0).stdin(Stdio::null());
        if output.is_shown {
            command.stdout(io::stderr()).stderr(io::stderr());
        } else {
            command.stdout(log.try_clone()?).stderr(log);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(Target::is_in_the_way) {
                command.env_remove(name);
            }
        }
        command.envs(target.variables()).env("DATABASE_URL", target.url());
        let began = Instant::now();
        let child = command.spawn()?;
        // Its id, which is asked for here because a child that was waited for has none any more.
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Run { child, group, began, log: output.path.clone(), begins })
    }
}

/// Destination of a command's output.
#[derive(Clone, Debug)]
pub struct Output {
    /// The log, which is appended to.
    pub path: PathBuf,
    /// Whether the output is shown to the user instead of written to the log.
    pub is_shown: bool,
}

impl Output {
    /// Writes a title into the log.
    pub(crate) fn title(&self, title: &str) -> io::Result<()> {
        writeln!(self.open()?.0, "== {title}")
    }

    /// Opens the log to append to it; returns also the offset at which this begins.
    fn open(&self) -> io::Result<(File, u64)> {
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        let end = file.seek(SeekFrom::End(0))?;
        Ok((file, end))
    }
}

/// A command that runs.
pub(crate) struct Run {
    child: Child,
    /// The process group of the command and of the processes that it starts, unless they move to
    /// another group.
    group: Option<Pid>,
    began: Instant,
    log: PathBuf,
    begins: u64,
}

/// End of a command.
pub(crate) enum Ended {
    /// It exited with status 0, after so many seconds.
    Well(f64),
    /// It failed: how, and the end of its output.
    Badly { how: String, output: String },
}

impl Run {
    /// Waits for its end, then kills processes that it left in the background, so that they do not
    /// disturb the next trial.
    pub(crate) async fn wait(&mut self) -> io::Result<Ended> {
        let status = self.child.wait().await?;
        let seconds = self.began.elapsed().as_secs_f64();
        self.signal(Signal::SIGKILL);
        if status.success() {
            return Ok(Ended::Well(seconds));
        }
        // ExitStatus says `exit status: 3` or `signal: 9 (SIGKILL)`.
        Ok(Ended::Badly { how: status.to_string(), output: tail(&self.log, self.begins)? })
    }

    /// Ends all processes of its group, first with SIGTERM.
    pub(crate) async fn end(mut self) {
        self.signal(Signal::SIGTERM);
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that they are gone.
            let _ = killpg(group, signal);
        }
    }
}

/// The last lines of the log after this offset.
fn tail(path: &Path, begins: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let end = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(begins.max(end.saturating_sub(TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

/// Path at which a shell would find the program.
fn find(program: &OsStr, path: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    std::env::split_paths(path).map(|directory| directory.join(program)).find(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    #[test]
    fn a_single_word_with_blanks_is_a_script() {
        let script = TestCommand::new(&words(&["cd there && ./test"])).unwrap();
        assert_eq!((script.program, script.arguments), ("sh".into(), words(&["-c", "cd there && ./test"])));
        let plain = TestCommand::new(&words(&["sh", "a b"])).unwrap();
        assert_eq!((plain.program, plain.arguments), ("sh".into(), words(&["a b"])));
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        assert!(
            TestCommand::new(&words(&["no-such-program-here", "x"])).unwrap_err().contains("no-such-program")
        );
        assert!(TestCommand::new(&words(&["/etc/passwd"])).is_err());
        assert!(TestCommand::new(&[]).is_err());
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        std::fs::write(file.path(), format!("before\n{}\n", lines.join("\n"))).unwrap();
        let found = tail(file.path(), 7).unwrap();
        assert!(found.starts_with("line 60\n") && found.ends_with("line 99"), "{found}");
        std::fs::write(file.path(), "before\nafter\n").unwrap();
        assert_eq!(tail(file.path(), 7).unwrap(), "after");
    }
}
