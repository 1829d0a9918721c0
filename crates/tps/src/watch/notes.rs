//! Turns observations into sentences.

use crate::watch::period::Period;
use crate::watch::{Used, Watched};
use server::machine;

/// Share of its time above which a processor or disk counts as the limit.
const FULL: f64 = 0.9;
/// Share of their time above which pgrig's threads count as the limit.
const CLIENT_FULL: f64 = 0.8;
/// Share of the processors' time that the host of a virtual machine took, above which it is
/// mentioned.
const STOLEN: f64 = 0.05;
/// More events of the same kind than this are summed up.
const MANY: usize = 3;

/// Things that could not be watched.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The role, quoted, if it may not see other sessions and the server's own processes.
    pub(super) others: Option<String>,
    /// The first reason for which an observation failed.
    pub(super) why: Option<String>,
}

/// All sentences about a measured part of `length` seconds, with so many jobs.
pub(super) fn of(
    watched: &Watched,
    length: f64,
    jobs: usize,
    disk: Option<&str>,
    unseen: &Unseen,
) -> Vec<String> {
    let mut notes = happened("a checkpoint ran", "checkpoints ran", &watched.checkpoints, length);
    for maintained in &watched.maintenance {
        let what = format!("{} ran on {}", maintained.who, maintained.relation);
        notes.extend(happened(&what, &what, &maintained.periods, length));
    }
    notes.extend(others(watched));
    notes.extend(watched.used.iter().flat_map(|used| limits(used, length, jobs, disk)));
    notes.extend(unseen.others.iter().map(|role| {
        format!(
            "pgrig does not know the work of other sessions and of autovacuum, because role {role} is not a member of \
             pg_read_all_stats: run GRANT pg_read_all_stats TO {role}"
        )
    }));
    notes.extend(unseen.why.iter().map(|why| format!("pgrig could not watch everything: {why}")));
    notes
}

/// `a checkpoint ran from 12 s to 39 s`, or how often it did.
fn happened(once: &str, often: &str, periods: &[Period], length: f64) -> Vec<String> {
    if periods.len() <= MANY {
        return periods.iter().map(|period| format!("{once} {}", period.words(length))).collect();
    }
    let seconds: f64 = periods.iter().map(|period| period.seconds(length)).sum();
    let altogether = format!("for {seconds:.0} of {length:.0} s in total");
    let times = periods.len();
    vec![if once == often {
        format!("{once} {times} times, {altogether}")
    } else {
        format!("{times} {often}, {altogether}")
    }]
}

/// Other sessions and processes that were at work.
fn others(watched: &Watched) -> Option<String> {
    let counts: Vec<u64> = watched.seconds.iter().filter_map(|second| second.others).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let busy = counts.iter().filter(|count| **count > 0).count();
    let sessions = match most {
        1 => "another session ran".to_owned(),
        _ => format!("up to {most} other sessions ran"),
    };
    Some(format!("{sessions} during the measurement, in {busy} of {} samples", counts.len()))
}

/// Resources of this machine at their limit.
fn limits(used: &Used, length: f64, jobs: usize, disk: Option<&str>) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let cores = f64::from(machine::cores());
    let threads = used.own / length / (jobs as f64).min(cores);
    let mut notes = Vec::new();
    if threads > CLIENT_FULL {
        let remedy = if (jobs as f64) < cores { ": give more threads with -j" } else { "" };
        notes.push(format!(
            "the client was the bottleneck: pgrig's own threads were busy {} of the time{remedy}",
            percent(threads)
        ));
    }
    if let Some(processors) = used.processors {
        if processors.busy > FULL {
            notes.push(format!(
                "this machine's processors were {} busy; pgrig itself used {} of this time",
                percent(processors.busy),
                percent(used.own / length / cores / processors.busy)
            ));
        }
        if processors.stolen > STOLEN {
            notes.push(format!(
                "other virtual machines took {} of this one's processors",
                percent(processors.stolen)
            ));
        }
    }
    let busy = used.disk.map(|disk| disk.busy).filter(|busy| *busy > FULL);
    notes.extend(disk.zip(busy).map(|(name, busy)| {
        format!("the data directory's disk ({name}) was busy {} of the time", percent(busy))
    }));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{DiskUsed, ProcessorsUsed, WatchedSecond};

    #[test]
    fn many_of_the_same_are_summed_up() {
        let periods = |count: u32| -> Vec<Period> {
            let period = |at: f64| Period { from: at, until: Some(at + 2.5) };
            (1..=count).map(|number| period(f64::from(number) * 10.0)).collect()
        };
        let told = |count| happened("a checkpoint ran", "checkpoints ran", &periods(count), 60.0);
        assert_eq!(told(0), [""; 0]);
        assert_eq!(told(1), ["a checkpoint ran from 10 s to 12 s"]);
        assert_eq!(told(3).len(), 3);
        assert_eq!(told(4), ["4 checkpoints ran, for 10 of 60 s in total"]);
        let vacuum = "autovacuum worked on t";
        let told = happened(vacuum, vacuum, &periods(5), 60.0);
        assert_eq!(told, ["autovacuum worked on t 5 times, for 12 of 60 s in total"]);
    }

    #[test]
    fn other_sessions_are_counted() {
        let told = |counts: &[Option<u64>]| {
            let second = |others: &Option<u64>| WatchedSecond {
                at: 1.0,
                length: 1.0,
                wal: None,
                others: *others,
                used: Used::default(),
            };
            others(&Watched { seconds: counts.iter().map(second).collect(), ..Watched::default() })
        };
        assert_eq!(told(&[None, None]), None);
        assert_eq!(told(&[Some(0), Some(0)]), None);
        assert_eq!(
            told(&[Some(0), Some(1)]).unwrap(),
            "another session ran during the measurement, in 1 of 2 samples"
        );
        let three = told(&[Some(2), Some(3), None, Some(0)]).unwrap();
        assert_eq!(three, "up to 3 other sessions ran during the measurement, in 2 of 3 samples");
    }

    #[test]
    fn limits_of_the_machine_are_told() {
        let disk = DiskUsed { reads: 1, read: 1, writes: 1, written: 1, busy: 0.95 };
        let processors = ProcessorsUsed { busy: 0.5, waiting: 0.1, stolen: 0.12 };
        let used = Used { own: 9.0, processors: Some(processors), disk: Some(disk) };
        let notes = limits(&used, 10.0, 1, Some("sda")).join("\n");
        for part in [
            "the client was the bottleneck: pgrig's own threads were busy 90 %",
            "took 12 %",
            "(sda) was busy 95 %",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        let idle = Used { own: 1.0, processors: None, disk: None };
        assert_eq!(limits(&idle, 10.0, 1, None), [""; 0]);
    }
}
