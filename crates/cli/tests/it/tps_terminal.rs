//! The live view of `pgrig tps` on a terminal, and the state of the terminal after it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use crate::support::Rig;
use nix::poll::{PollFd, PollFlags, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::tcgetattr;
use nix::unistd::Pid;
use serde_json::Value;

const SIZE: Winsize = size(40, 100);
/// The terminal is asked where its cursor is, and answers.
const WHERE: &[u8] = b"\x1b[6n";
const HERE: &[u8] = b"\x1b[1;1R";
const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";
/// It is in the picture as long as that is drawn.
const HINT: &str = "Ctrl-C ends the run";

const fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// A pgrig that is killed if the test ends before it.
struct OnTerminal {
    child: Child,
    /// The person's end of the terminal.
    person: File,
    seen: Vec<u8>,
    /// Whether the terminal answers a question for its cursor.
    answers: bool,
}

impl OnTerminal {
    fn start(mut command: Command, person: OwnedFd, program: &OwnedFd) -> Self {
        let same = || program.try_clone().unwrap();
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm");
        }
        command.stdin(same()).stdout(same()).stderr(same());
        Self { child: command.spawn().unwrap(), person: person.into(), seen: Vec::new(), answers: true }
    }

    /// Reads what there is, for a short while; whether there was any.
    fn read(&mut self) -> bool {
        let mut ready = [PollFd::new(self.person.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, 20_u16).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let read = self.person.read(&mut buffer).unwrap();
        if self.answers && buffer[..read].windows(WHERE.len()).any(|bytes| bytes == WHERE) {
            self.person.write_all(HERE).unwrap();
        }
        self.seen.extend_from_slice(&buffer[..read]);
        true
    }

    fn draws(&self) -> bool {
        self.seen.windows(HINT.len()).any(|bytes| bytes == HINT.as_bytes())
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs pgrig on a terminal; returns its output and its exit status. pgrig gets the signal as soon as it draws.
fn on_a_terminal(command: Command, signal: Option<Signal>) -> (String, Option<i32>) {
    on_a_terminal_of(SIZE, command, signal)
}

fn on_a_terminal_of(size: Winsize, command: Command, signal: Option<Signal>) -> (String, Option<i32>) {
    seen_on(size, true, command, signal)
}

fn seen_on(
    size: Winsize,
    answers: bool,
    command: Command,
    mut signal: Option<Signal>,
) -> (String, Option<i32>) {
    let terminal = openpty(&size, None).unwrap();
    let before = tcgetattr(&terminal.slave).unwrap();
    let mut pgrig = OnTerminal::start(command, terminal.master, &terminal.slave);
    pgrig.answers = answers;
    let code = loop {
        let status = pgrig.child.try_wait().unwrap();
        // The output before its end is read too.
        if !pgrig.read()
            && let Some(status) = status
        {
            break status.code();
        }
        if pgrig.draws()
            && let Some(signal) = signal.take()
        {
            pgrig.signal(signal);
        }
    };
    let after = tcgetattr(&terminal.slave).unwrap();
    assert_eq!(after.local_flags, before.local_flags, "the terminal no longer echoes input");
    (String::from_utf8(pgrig.seen.clone()).unwrap(), code)
}

fn filled() -> Rig {
    let rig = Rig::new();
    rig.done("server start --set shared_buffers=128MB");
    rig.done("fill --scale 1 -q");
    rig
}

#[test]
fn a_picture_is_drawn_and_the_terminal_given_back() {
    let rig = filled();
    for (arguments, signal, code) in [
        ("tps -S -T 2", None, 0),
        ("tps -S -T 1h", Some(Signal::SIGINT), 130),
        ("tps -S -T 1h", Some(Signal::SIGTERM), 130),
    ] {
        let (seen, status) = on_a_terminal(rig.command(arguments), signal);
        assert_eq!(status, Some(code), "{arguments}: {seen}");
        assert!(seen.contains('─'), "no axes: {seen}");
        let (hidden, shown) = (seen.rfind(HIDE), seen.rfind(SHOW));
        assert!(hidden.is_some() && hidden < shown, "the cursor is hidden: {seen}");
        let (picture, results) = seen.split_at(shown.unwrap());
        assert!(picture.contains(HINT), "{seen}");
        assert!(results.contains(" transactions in "), "{seen}");
    }
}

/// Whether a line of progress is there. A busy machine prints it a little late, and says when.
fn has_progress(seen: &str) -> bool {
    seen.lines().any(|line| line.contains(" s: ") && line.contains(" tps"))
}

#[test]
fn lines_are_printed_instead_or_nothing() {
    let rig = filled();
    let (seen, _) = on_a_terminal(rig.command("tps -S -T 2 -P 1"), None);
    assert!(has_progress(&seen) && !seen.contains(HINT), "{seen}");
    let (seen, _) = on_a_terminal(rig.command("tps -S -T 1 -q"), None);
    assert!(seen.contains(" tps: ") && !seen.contains(HINT), "{seen}");
    // A terminal that takes plain lines only.
    for (arguments, shown) in
        [("tps -S -T 2", " transactions in "), ("fill 5MB --drop", "accounts in database")]
    {
        let mut command = rig.command(arguments);
        command.env("TERM", "dumb");
        let (seen, status) = on_a_terminal(command, None);
        assert_eq!(status, Some(0), "{arguments}: {seen}");
        assert!(seen.contains(shown) && !seen.contains('\x1b'), "{arguments}: {seen:?}");
    }
}

/// It gets plain lines after the question, and no other escape code.
#[test]
fn a_terminal_that_does_not_answer_gets_plain_lines() {
    let rig = filled();
    let mut command = rig.command("tps -S -T 6");
    command.env("NO_COLOR", "1");
    let (seen, status) = seen_on(SIZE, false, command, None);
    assert_eq!(status, Some(0), "{seen}");
    let question = std::str::from_utf8(WHERE).unwrap();
    assert_eq!(seen.matches(question).count(), 1, "{seen:?}");
    let rest = seen.replace(question, "");
    assert!(!rest.contains('\x1b'), "{rest:?}");
    assert!(has_progress(&rest) && rest.contains(" transactions in "), "{rest}");
}

#[test]
fn colours_are_left_out_if_nobody_wants_them() {
    let rig = filled();
    // Foreground colours that a chart has, in either way to write them.
    let coloured = |seen: &str| ["\x1b[38;5;", "\x1b[33m", "\x1b[36m"].iter().any(|code| seen.contains(code));
    let (seen, _) = on_a_terminal(rig.command("tps -S -T 3"), None);
    assert!(seen.contains(HINT) && coloured(&seen), "{seen:?}");
    let mut plain = rig.command("tps -S -T 3");
    plain.env("NO_COLOR", "1");
    let (seen, _) = on_a_terminal(plain, None);
    assert!(seen.contains(HINT) && !coloured(&seen), "{seen:?}");
}

#[test]
fn nothing_of_the_picture_goes_to_a_file() {
    let rig = filled();
    let out = rig.home.path().join("out");
    let terminal = openpty(&SIZE, None).unwrap();
    let mut pgrig = rig.command("tps -S -T 1 --json -");
    pgrig.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(terminal.slave);
    assert!(pgrig.status().unwrap().success());
    let text = std::fs::read_to_string(out).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["status"], "done");
}

/// Lines on a terminal of 80 columns without escape codes.
fn lines_of_80_columns(rig: &Rig, rows: u16, arguments: &str) -> Vec<String> {
    let mut command = rig.command(arguments);
    command.env("TERM", "dumb");
    let (seen, status) = on_a_terminal_of(size(rows, 80), command, None);
    assert_eq!(status, Some(0), "{arguments}: {seen}");
    seen.replace('\r', "").lines().map(str::to_owned).collect()
}

#[test]
fn the_headline_is_the_last_thing_on_a_small_screen() {
    let rig = filled();
    let is_headline = |line: &&String| line.contains(" tps: ") && line.contains(" transactions in ");
    let small = lines_of_80_columns(&rig, 24, "tps -T 1 -r");
    assert!(small[small.len() - 2..].iter().any(|line| is_headline(&line)), "{small:#?}");
    let large = lines_of_80_columns(&rig, 200, "tps -T 1 -r");
    assert_eq!(large.iter().filter(is_headline).count(), 1, "{large:#?}");
    assert!(large[large.len() - 2..].iter().any(|line| line.starts_with("run document:")), "{large:#?}");
    for (arguments, first) in [
        ("micro i i+1 --rows 100 --budget 2s", "candidate "),
        ("blockio 10MB --trials 1", "step "),
        ("tps -S -T 1 --matrix clients=1,2 --trials 2", "tps "),
    ] {
        let lines = lines_of_80_columns(&rig, 24, arguments);
        let document = lines.iter().rposition(|line| line.starts_with("run document:")).unwrap();
        // A line that stays on the screen is not repeated.
        let results = lines.iter().position(|line| line.starts_with(first));
        let results =
            results.unwrap_or_else(|| panic!("{arguments}: no line begins with {first:?}: {lines:#?}"));
        let is_repeated = lines[document..].iter().any(|line| line.starts_with(first));
        assert_eq!(is_repeated, lines.len() - results > 24, "{arguments}: {lines:#?}");
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let rig = filled();
    rig.done("server start --instance with-a-long-name --set work_mem=64MB");
    let whole = |line: &str| line.contains("pgrig ") || !line.trim().contains(' ');
    for arguments in [
        "server status",
        "tps -T 1 -r",
        "tps -S -T 1 --matrix durability --matrix clients=1,2 --trials 1",
        "blockio 10MB --trials 2 --clients 2",
        "micro md5(i::text) sha256(i::text::bytea) --budget 1s",
        "fill 5MB --all-tables --append",
        "size 1GB",
        "doctor",
    ] {
        let lines = lines_of_80_columns(&rig, 24, arguments);
        let wide = lines.iter().find(|line| line.chars().count() > 80 && !whole(line));
        assert_eq!(wide, None, "{arguments}: {lines:#?}");
    }
}

/// The text without escape codes.
fn plain(seen: &str) -> String {
    let mut parts = seen.split('\x1b');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|end: char| end.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        text += &part[end..];
    }
    text
}

#[test]
fn progress_takes_one_line() {
    let rig = filled();
    let (seen, status) = on_a_terminal_of(size(24, 80), rig.command("fill 60MB --drop --method copy"), None);
    assert_eq!(status, Some(0), "{seen}");
    let text = plain(&seen);
    let drawn: Vec<&str> = text.split(['\r', '\n']).filter(|line| line.contains(" %  ")).collect();
    assert!(drawn.iter().any(|line| line.starts_with("generate ")), "{seen:?}");
    assert!(drawn.iter().all(|line| line.chars().count() <= 80), "{drawn:#?}");
}
