//! Identifies processes uniquely, although ids are reused. From proc(5).

mod cpu;
mod exit;

use std::fs;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::signal::kill;
use serde::{Deserialize, Serialize};

pub use cpu::cpu_with_children;

/// A process, identified uniquely among all processes that ever had or will have its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id, valid in the pid namespace of `machine`.
    pub pid: u32,
    /// Its start, in clock ticks since the machine was booted.
    pub start: u64,
    /// Boot id of the machine, and the pid namespace in which the id is valid.
    pub machine: String,
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// The process runs.
    Runs,
    /// The process has ended.
    Gone,
    /// It belongs to another pid namespace or another machine, or is invisible to this process.
    Unknown,
}

impl Process {
    /// The process with this id; none if there is none.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start: Stat::read(pid)?.start, machine: machine().to_owned() })
    }

    /// This process; none without /proc.
    pub(crate) fn this() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether it still runs. A zombie does not.
    pub fn is_alive(&self) -> bool {
        self.machine == machine() && Stat::read(self.pid).as_ref().is_some_and(|stat| self.is(stat))
    }

    /// Whether it still runs, or unknown. `host` is the value of [`host`] in that
    /// process. Processes of another host cannot be seen from here; after this host has been
    /// rebooted, all of its earlier processes are gone.
    pub fn state(&self, host: &str) -> ProcessState {
        let (Some((boot, space)), Some((own_boot, own_space))) = (parts(&self.machine), parts(machine()))
        else {
            return ProcessState::Unknown;
        };
        if boot != own_boot {
            return if host == self::host() { ProcessState::Gone } else { ProcessState::Unknown };
        }
        if space != own_space {
            return ProcessState::Unknown;
        }
        match Stat::read(self.pid) {
            Some(stat) if self.is(&stat) => ProcessState::Runs,
            Some(_) => ProcessState::Gone,
            // /proc may hide others' processes (hidepid).
            None => {
                let pid = i32::try_from(self.pid).map(nix::unistd::Pid::from_raw);
                let is_gone = pid.is_ok_and(|pid| kill(pid, None) == Err(Errno::ESRCH));
                if is_gone { ProcessState::Gone } else { ProcessState::Unknown }
            }
        }
    }

    /// Its command line, for people; none if it is gone.
    pub fn command(&self) -> Option<String> {
        self.is_alive().then(|| command_line(self.pid)).flatten()
    }

    /// Whether its id is valid here, or was before the machine was rebooted.
    pub(crate) fn is_here(&self) -> bool {
        let space = |machine: &str| machine.split_once(' ').map(|(_, space)| space.to_owned());
        space(&self.machine) == space(machine())
    }

    fn is(&self, stat: &Stat) -> bool {
        stat.start == self.start && !stat.is_dead()
    }
}

/// The command line of the process with this id, its words joined by spaces; none if there is none.
pub fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Some(words.join(" "))
}

/// The fields of /proc/PID/stat.
pub struct Stat {
    /// The program's name, at most 15 bytes.
    pub name: String,
    state: char,
    /// Id of the process that started it.
    pub parent: u32,
    /// Ticks of its CPU time, user and system.
    used: u64,
    /// The same of the children that it has waited for, with theirs.
    waited_for: u64,
    start: u64,
}

impl Stat {
    /// Status of the process with this id; none if there is none.
    pub fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the text. The name is in parentheses, and may contain parentheses itself.
    fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(") ")?;
        let name = before.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = after.split(' ').collect();
        let state = fields.first()?.chars().next()?;
        // The state is field 3, the parent 4, the CPU times 14 to 17, the start 22.
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        let (used, waited_for) = (number(11)? + number(12)?, number(13)? + number(14)?);
        let parent = fields.get(1)?.parse().ok()?;
        Some(Self { name, state, parent, used, waited_for, start: number(19)? })
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Identifies the boot and the pid namespace: it changes at a reboot, and differs between
/// containers.
fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        format!("{} {}", boot.trim(), space.display())
    })
}

/// Both parts of [`machine`], if both are known.
fn parts(machine: &str) -> Option<(&str, &str)> {
    machine.split_once(' ').filter(|(boot, space)| !boot.is_empty() && !space.is_empty())
}

/// Identifies the host: it stays the same after a reboot, and differs between machines that share a
/// directory. Containers of one image have the same machine-id, but different host names.
pub fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        format!("{} {}", read("/etc/machine-id").trim(), read("/proc/sys/kernel/hostname").trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Process {
        Process::this().unwrap()
    }

    #[test]
    fn a_name_may_hold_parentheses() {
        let fields = "S 4 1 1 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0 777 1 2";
        let stat = Stat::parse(&format!("12 (a) (b) {fields}")).unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent, stat.start), ("a) (b", 'S', 4, 777));
        assert_eq!((stat.used, stat.waited_for), (11, 15));
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn this_process_lives_and_others_of_its_id_do_not() {
        let own = this();
        assert!(own.is_alive());
        assert!(own.command().is_some());
        let earlier = Process { start: own.start - 1, ..own.clone() };
        let elsewhere = Process { machine: "elsewhere".to_owned(), ..own };
        assert!(!earlier.is_alive() && !elsewhere.is_alive());
        assert_eq!(elsewhere.command(), None);
    }

    #[test]
    fn a_process_is_gone_only_if_that_can_be_known() {
        let own = this();
        let (boot, space) = own.machine.split_once(' ').unwrap();
        let on = |machine: String| Process { machine, ..own.clone() };
        assert_eq!(own.state(host()), ProcessState::Runs);
        assert_eq!(Process { start: own.start - 1, ..own.clone() }.state(host()), ProcessState::Gone);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = Process { pid: child.id(), ..own.clone() };
        child.wait().unwrap();
        assert_eq!(ended.state(host()), ProcessState::Gone);
        // In a container; before this machine started anew; on a machine that shares a directory with this one.
        assert_eq!(on(format!("{boot} pid:[1]")).state(host()), ProcessState::Unknown);
        for space in [space, "pid:[1]"] {
            assert_eq!(on(format!("earlier {space}")).state(host()), ProcessState::Gone);
            assert_eq!(on(format!("another {space}")).state("another host"), ProcessState::Unknown);
        }
        // Without /proc.
        assert_eq!(on(" ".to_owned()).state(host()), ProcessState::Unknown);
    }
}
