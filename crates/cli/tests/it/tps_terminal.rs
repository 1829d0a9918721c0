//! What `pgrig tps` draws on a terminal, and that it gives it back.

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

const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
/// The terminal is asked where its cursor is, and answers.
const WHERE: &[u8] = b"\x1b[6n";
const HERE: &[u8] = b"\x1b[1;1R";
const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";
/// It is in the picture as long as that is drawn.
const HINT: &str = "Ctrl-C ends the run";

/// A pgrig that is killed if the test ends before it.
struct OnTerminal {
    child: Child,
    /// What a person sees and types.
    person: File,
    seen: Vec<u8>,
}

impl OnTerminal {
    fn start(mut command: Command, person: OwnedFd, program: &OwnedFd) -> Self {
        let same = || program.try_clone().unwrap();
        if command.get_envs().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm");
        }
        command.stdin(same()).stdout(same()).stderr(same());
        Self { child: command.spawn().unwrap(), person: person.into(), seen: Vec::new() }
    }

    /// Reads what there is, for a short while; whether there was any.
    fn read(&mut self) -> bool {
        let mut ready = [PollFd::new(self.person.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, 20_u16).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        let read = self.person.read(&mut buffer).unwrap();
        if buffer[..read].windows(WHERE.len()).any(|bytes| bytes == WHERE) {
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

/// What is seen of pgrig on a terminal, and its exit status. As soon as it draws, it gets the signal.
fn on_a_terminal(command: Command, mut signal: Option<Signal>) -> (String, Option<i32>) {
    let terminal = openpty(&SIZE, None).unwrap();
    let before = tcgetattr(&terminal.slave).unwrap();
    let mut pgrig = OnTerminal::start(command, terminal.master, &terminal.slave);
    let code = loop {
        let status = pgrig.child.try_wait().unwrap();
        // What it wrote last is read too.
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
    assert_eq!(after.local_flags, before.local_flags, "what is typed is not shown as before");
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

#[test]
fn lines_are_printed_instead_or_nothing() {
    let rig = filled();
    let (seen, _) = on_a_terminal(rig.command("tps -S -T 2 -P 1"), None);
    assert!(seen.contains("1.0 s: ") && !seen.contains(HINT), "{seen}");
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
