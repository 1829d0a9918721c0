//! CPU time of a process and its children, from proc(5).

use std::fs;

use rustix::param::clock_ticks_per_second;

use super::Stat;

/// Most readings, if a child ends during each of them.
const ATTEMPTS: u32 = 5;

/// CPU seconds (user and system) that a process and its children have used so far, with the children that they have waited for. The kernel
/// counts in ticks, usually of 0.01 s; the times of each process are rounded down. None if the process is gone, and on a system without /proc.
pub fn cpu_with_children(pid: u32) -> Option<f64> {
    let mut waited_for = Stat::read(pid)?.waited_for;
    for attempt in 1.. {
        let children = of_children(pid);
        let own = Stat::read(pid)?;
        // A child that ended meanwhile would be among both.
        if own.waited_for == waited_for || attempt == ATTEMPTS {
            return Some((own.ticks() + children) as f64 / clock_ticks_per_second() as f64);
        }
        waited_for = own.waited_for;
    }
    None
}

/// Ticks of all processes whose parent is this one, also of zombies.
fn of_children(pid: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Stat::read).filter(|stat| stat.parent == pid).map(|stat| stat.ticks()).sum()
}

impl Stat {
    /// Its ticks, with those of the children that it has waited for.
    fn ticks(&self) -> u64 {
        self.used + self.waited_for
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    /// Uses CPU time itself, in a child that ends, and in a child that lives. Prints the shell's own account of each.
    const SCRIPT: &str = "burn() { i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }\n\
        burn\n(burn)\ntimes\n(burn; times; read line)\nexit 0\n";
    /// Two lines of each shell: its own times, and those of its children.
    const LINES: usize = 4;
    /// The rounding of the times of two processes, here and in the shell.
    const ROUNDING: f64 = 0.08;

    /// Seconds of a word such as `0m1.23s`.
    fn seconds(word: &str) -> f64 {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    }

    #[test]
    fn own_time_and_that_of_live_and_ended_children_are_those_of_the_shells_account() {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(LINES);
        let told: Vec<String> = lines.map(Result::unwrap).collect();
        let found = cpu_with_children(child.id());
        // The live child reads to the end.
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(told.len(), LINES, "{told:?}");
        let told: f64 = told.iter().flat_map(|line| line.split_whitespace()).map(seconds).sum();
        let found = found.unwrap();
        assert!((found - told).abs() < ROUNDING && found > 0.0, "{found} {told}");
        assert_eq!(cpu_with_children(child.id()), None);
    }
}
