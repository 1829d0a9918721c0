//! Use of this machine, from Linux's counters. On other systems only pgrig's own CPU time is known.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::stat::{major, minor};
use nix::sys::time::{TimeVal, TimeValLike};
/// Bytes of a sector in /proc/diskstats, regardless of the disk's own sectors (Linux,
/// Documentation/admin-guide/iostats.rst).
const SECTOR: u64 = 512;

/// This machine, and the disk of the data directory if it is on this machine.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// The device's name in /proc/diskstats.
    disk: Option<String>,
}

/// Counters as of now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// CPU time of this process, user and system.
    own: Duration,
    processors: Option<Processors>,
    disk: Option<Sectors>,
}

/// Ticks of all processors together since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Processors {
    idle: u64,
    waiting: u64,
    stolen: u64,
    all: u64,
}

/// A disk's counters since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sectors {
    reads: u64,
    read: u64,
    writes: u64,
    written: u64,
    busy_milliseconds: u64,
}

/// Use of the machine between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// pgrig's own CPU time, user and system, all threads together, seconds.
    pub own: f64,
    /// Use of this machine's processors; none on systems other than Linux.
    pub processors: Option<ProcessorsUsed>,
    /// Use of the disk of the data directory; none if the directory is elsewhere, or on more than
    /// one disk.
    pub disk: Option<DiskUsed>,
}

/// Shares of all processors' time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessorsUsed {
    /// Busy, for any process; includes stolen time.
    pub busy: f64,
    /// Idle while a process waited for a disk.
    pub waiting: f64,
    /// Taken by the host of this virtual machine.
    pub(crate) stolen: f64,
}

/// Use of a disk by all processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskUsed {
    /// Read requests finished.
    pub reads: u64,
    /// Bytes read from the disk.
    pub read: u64,
    /// Write requests finished.
    pub writes: u64,
    /// Bytes written to the disk.
    pub written: u64,
    /// Share of the time in which the disk was busy, 0 to 1. A disk that serves many requests at
    /// once may be far from its limit at 1.
    pub busy: f64,
}

impl Host {
    /// The machine, with the disk of this directory.
    pub(super) fn new(data_directory: Option<&Path>) -> Self {
        let disk = data_directory.and_then(|directory| {
            let device = fs::metadata(directory).ok()?.dev();
            let disks = fs::read_to_string("/proc/diskstats").ok()?;
            let numbers = (major(device), minor(device));
            disk_numbered(&disks, numbers).or_else(|| {
                // File systems such as btrfs have a number of their own; the mount names a device.
                let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
                let source = fs::canonicalize(mount_source(&mounts, numbers)?).ok()?;
                let name = source.file_name()?.to_str()?.to_owned();
                Sectors::of(&disks, &name).map(|_| name)
            })
        });
        Self { disk }
    }

    /// The disk's name, where there is one.
    pub(super) fn disk(&self) -> Option<&str> {
        self.disk.as_deref()
    }

    /// Counters as of now: two small files.
    pub(super) fn now(&self) -> Counters {
        let processors = fs::read_to_string("/proc/stat").ok().as_deref().and_then(Processors::of);
        let disk = self
            .disk
            .as_ref()
            .and_then(|name| Sectors::of(&fs::read_to_string("/proc/diskstats").ok()?, name));
        Counters { own: own_time(), processors, disk }
    }
}

impl Counters {
    /// Use since `earlier`, `length` seconds ago.
    pub(super) fn since(&self, earlier: &Self, length: f64) -> Used {
        Used {
            own: self.own.saturating_sub(earlier.own).as_secs_f64(),
            processors: self.processors.zip(earlier.processors).and_then(|(now, then)| now.since(then)),
            disk: self.disk.zip(earlier.disk).map(|(now, then)| now.since(then, length)),
        }
    }
}

fn own_time() -> Duration {
    let time =
        |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or_default());
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(Duration::ZERO, |usage| time(usage.user_time()) + time(usage.system_time()))
}

impl Processors {
    /// Reads /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    fn of(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        let &[_, _, _, idle, waiting, _, _, stolen] = ticks.as_slice() else { return None };
        Some(Self { idle, waiting, stolen, all: ticks.iter().sum() })
    }

    /// None if no time has passed.
    fn since(self, earlier: Self) -> Option<ProcessorsUsed> {
        let all = self.all.checked_sub(earlier.all).filter(|ticks| *ticks > 0)?;
        // The count of waiting may fall (proc_stat(5)).
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all as f64;
        let waiting = share(self.waiting, earlier.waiting);
        let busy = (1.0 - share(self.idle, earlier.idle) - waiting).clamp(0.0, 1.0);
        Some(ProcessorsUsed { busy, waiting, stolen: share(self.stolen, earlier.stolen) })
    }
}

impl Sectors {
    /// Reads /proc/diskstats (Linux, Documentation/admin-guide/iostats.rst).
    fn of(diskstats: &str, name: &str) -> Option<Self> {
        let fields = diskstats.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let fields = fields.into_iter().find(|fields| fields.get(2) == Some(&name))?;
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        Some(Self {
            reads: number(3)?,
            read: number(5)?,
            writes: number(7)?,
            written: number(9)?,
            busy_milliseconds: number(12)?,
        })
    }

    fn since(self, earlier: Self, length: f64) -> DiskUsed {
        let busy = self.busy_milliseconds.saturating_sub(earlier.busy_milliseconds) as f64 / 1e3 / length;
        DiskUsed {
            reads: self.reads.saturating_sub(earlier.reads),
            read: self.read.saturating_sub(earlier.read) * SECTOR,
            writes: self.writes.saturating_sub(earlier.writes),
            written: self.written.saturating_sub(earlier.written) * SECTOR,
            busy: busy.min(1.0),
        }
    }
}

/// The name of the disk with these major and minor numbers.
fn disk_numbered(diskstats: &str, numbers: (u64, u64)) -> Option<String> {
    let wanted = [numbers.0.to_string(), numbers.1.to_string()];
    diskstats.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let matches = wanted.iter().all(|number| fields.next() == Some(number));
        matches.then(|| fields.next().map(str::to_owned))?
    })
}

/// The source of the mounted file system with these numbers (proc_pid_mountinfo(5)).
fn mount_source(mountinfo: &str, (major, minor): (u64, u64)) -> Option<&str> {
    let wanted = format!("{major}:{minor}");
    let of_it = mountinfo.lines().find(|line| line.split(' ').nth(2) == Some(&wanted))?;
    of_it.split_once(" - ")?.1.split(' ').nth(1).filter(|source| source.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKS: &str = "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n\
                         \u{20}259       1 nvme0n1p1 100 0 800 9 200 0 1600 9 0 2500 9 0 0 0 0 1 2\n";

    #[test]
    fn processors_are_told_apart() {
        let then = Processors::of("cpu  10 0 10 60 20 0 0 0 7 0\ncpu0 1 2\n").unwrap();
        let now = Processors::of("cpu  40 5 25 80 40 0 0 10 9 0\n").unwrap();
        let used = now.since(then).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(near(used.busy, 0.6) && near(used.waiting, 0.2) && near(used.stolen, 0.1), "{used:?}");
        assert_eq!(now.since(now), None);
        assert_eq!(Processors::of("cpu  10 0 10\n"), None);
    }

    #[test]
    fn a_disk_is_found_by_its_number_and_its_name() {
        assert_eq!(disk_numbered(DISKS, (259, 1)).as_deref(), Some("nvme0n1p1"));
        assert_eq!(disk_numbered(DISKS, (259, 0)), None);
        let now = Sectors::of(DISKS, "nvme0n1p1").unwrap();
        let then = Sectors { reads: 90, read: 700, writes: 150, written: 600, busy_milliseconds: 500 };
        let used = now.since(then, 4.0);
        assert_eq!((used.reads, used.writes), (10, 50));
        assert_eq!((used.read, used.written), (51_200, 512_000));
        assert!((used.busy - 0.5).abs() < 1e-9);
        assert_eq!(Sectors::of(DISKS, "nvme0n1"), None);
    }

    #[test]
    fn a_mount_names_its_device() {
        let mounts = "36 35 0:45 /sub /data rw,noatime shared:1 - btrfs /dev/mapper/pool rw\n\
                      37 35 0:46 / /tmp rw - tmpfs tmpfs rw\n";
        assert_eq!(mount_source(mounts, (0, 45)), Some("/dev/mapper/pool"));
        assert_eq!(mount_source(mounts, (0, 46)), None);
        assert_eq!(mount_source(mounts, (1, 45)), None);
    }
}
