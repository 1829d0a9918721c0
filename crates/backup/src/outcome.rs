//! Results: trials, summaries of ways, and the front.

use measure::human::bytes;
use measure::{Event, Median, Sample, Unit};
use serde::Serialize;
use serde_json::json;

use crate::beside::Beside;
use crate::forecast::Forecast;
use crate::front::{Costs, front};
use crate::held::Held;
use crate::load::WalOfLoad;
use crate::network::Network;
use crate::verified::{Verified, Witness};
use crate::way::Way;

/// A backup that was made, restored and verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The way.
    pub way: Way,
    /// Seconds of the backup.
    pub backup: f64,
    /// Seconds of the restore, until the server accepts connections or the data are loaded.
    pub restore: f64,
    /// CPU seconds of the client programs, during the backup.
    pub backup_cpu: f64,
    /// CPU seconds of the client programs, during the restore.
    pub restore_cpu: f64,
    /// CPU seconds of the server, during the backup, with those of other sessions; none if its processes cannot be seen here.
    pub backup_server_cpu: Option<f64>,
    /// CPU seconds of the scratch server, during the restore; none on a system without /proc.
    pub restore_server_cpu: Option<f64>,
    /// Bytes of the backup's files.
    pub size: u64,
    /// Most bytes that backup and restored server took together; of the WAL of a dump's restore, at most `max_wal_size`.
    pub peak_disk: u64,
    /// The proof that the restored content is right.
    pub verified: Verified,
    /// The effects on other clients, if rows were looked up.
    pub beside: Option<Beside>,
    /// The data, if they are one of several sizes.
    pub at: Option<DataSize>,
    /// Its parts, if it is an incremental backup upon a full one. Its size and times are those of both then.
    pub increment: Option<Increment>,
    /// Its parts, if it was recovered to a point in time. Its size and its restore are those of all parts then.
    pub recovery: Option<Recovery>,
    /// Bytes of one more backup, if they were counted: in the last trial of a way, at the largest size.
    pub network: Option<Network>,
}

/// The parts of a backup that is recovered to a point in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// Bytes of the base backup.
    pub base_size: u64,
    /// Bytes of the segments of WAL that were received, or that a tool has stored.
    pub wal_size: u64,
    /// Bytes of WAL that the server wrote under the load, before and after the target time.
    pub written: u64,
    /// Bytes of all tables with their indexes, before the base backup.
    pub data: u64,
    /// Seconds of the restore without the replay: files, start, the checkpoint at the end.
    pub files: f64,
    /// Seconds of the replay.
    pub replay: f64,
    /// Bytes of WAL that were replayed: from the end of the base backup to the target time.
    pub replayed: u64,
    /// The target time, by the server's clock.
    pub target: String,
    /// Rows of the witness that were committed before the target time: all are there.
    pub before: u64,
    /// Those committed after it: none is there.
    pub after: u64,
}

impl Recovery {
    /// Bytes of WAL that were replayed each second.
    pub fn rate(&self) -> f64 {
        self.replayed as f64 / self.replay.max(f64::MIN_POSITIVE)
    }

    /// The part of the written WAL that is stored; none if nothing is. It is at most 1: the last segment of a short load is not full, those of a
    /// day are.
    pub(crate) fn stored_ratio(&self) -> Option<f64> {
        let ratio = self.wal_size as f64 / self.written.max(1) as f64;
        (self.wal_size > 0).then(|| ratio.min(1.0))
    }
}

/// The parts of an incremental backup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Increment {
    /// Bytes of the full backup.
    pub full_size: u64,
    /// Seconds of the full backup.
    pub full: f64,
    /// Bytes of the incremental backup.
    pub size: u64,
    /// Seconds of the incremental backup.
    pub seconds: f64,
    /// Seconds of pg_combinebackup.
    pub combine: f64,
    /// Bytes of the WAL records from the beginning of the full backup to that of the incremental one.
    pub wal: u64,
    /// Share of all rows that pgrig updated between them; none if it only read the database.
    pub changes: Option<f64>,
}

/// One of the sizes of data that are rehearsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DataSize {
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes of all tables with their indexes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Whether it is the largest of the sizes.
    pub is_largest: bool,
}

/// Results of a rehearsal: trials, ways that failed, forecasts, notes.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Trials in the order in which they ended, without those of ways that failed.
    pub trials: Vec<Trial>,
    /// Ways that failed, with the reason.
    pub failed: Vec<(Way, String)>,
    /// Ways with fewer trials than planned, because a server was lost, with the reason.
    pub cut_short: Vec<(Way, String)>,
    /// Whether the rehearsal ended early, because a server was gone or could not start.
    pub is_lost: bool,
    /// A sentence for each other result that is missing, because a server was lost.
    pub unmeasured: Vec<String>,
    /// Forecasts of the ways that worked.
    pub forecasts: Vec<Forecast>,
    /// The WAL that the load wrote.
    pub wal: Vec<WalOfLoad>,
    /// The row versions that the snapshot of a dump kept under the load.
    pub held: Vec<Held>,
    /// Limits of the results.
    pub notes: Vec<String>,
}

/// CPU seconds of a step.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Those of the client programs.
    pub programs: Median,
    /// Those of the server; none if they were not measured.
    pub server: Option<Median>,
}

/// The results of one way.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The way.
    pub way: Way,
    /// Bytes of the backup.
    pub size: Median,
    /// Seconds of the backup.
    pub backup: Median,
    /// Seconds of the restore.
    pub restore: Median,
    /// CPU time of the backup.
    pub backup_cpu: Cpu,
    /// CPU time of the restore.
    pub restore_cpu: Cpu,
    /// Peak of the disk space, bytes.
    pub peak_disk: Median,
    /// The proof; of all trials the weakest.
    pub verified: Verified,
    /// The effects on other clients in all trials, if rows were looked up.
    pub beside: Option<Beside>,
    /// Bytes of one more backup, if they were counted.
    pub network: Option<Network>,
    /// Whether no other way is better in size, backup or restore without being worse in another of them.
    pub is_front: bool,
}

impl Trial {
    /// For the run document. The largest of several sizes stands for the way.
    pub fn document(&self) -> measure::Trial {
        let config = match &self.at {
            Some(at) if !at.is_largest => format!("{} at {}", self.way, bytes(at.asked)),
            _ => self.way.to_string(),
        };
        let mut trial = measure::Trial { config, ..measure::Trial::default() };
        trial.observe("backup", self.backup, Unit::Seconds);
        trial.observe("restore", self.restore, Unit::Seconds);
        trial.observe("backup-cpu", self.backup_cpu, Unit::Seconds);
        trial.observe("restore-cpu", self.restore_cpu, Unit::Seconds);
        let of_server =
            [("backup-server-cpu", self.backup_server_cpu), ("restore-server-cpu", self.restore_server_cpu)];
        for (name, seconds) in of_server {
            if let Some(seconds) = seconds {
                trial.observe(name, seconds, Unit::Seconds);
            }
        }
        trial.observe("size", self.size as f64, Unit::Bytes);
        trial.observe("peak-disk", self.peak_disk as f64, Unit::Bytes);
        trial.observe("rows", self.verified.rows as f64, Unit::Rows);
        if let Some(parts) = &self.increment {
            trial.observe("full-size", parts.full_size as f64, Unit::Bytes);
            trial.observe("incremental-size", parts.size as f64, Unit::Bytes);
            trial.observe("full", parts.full, Unit::Seconds);
            trial.observe("incremental", parts.seconds, Unit::Seconds);
            trial.observe("combine", parts.combine, Unit::Seconds);
            trial.observe("wal", parts.wal as f64, Unit::Bytes);
        }
        if let Some(parts) = &self.recovery {
            trial.observe("base-size", parts.base_size as f64, Unit::Bytes);
            trial.observe("wal-size", parts.wal_size as f64, Unit::Bytes);
            trial.observe("files", parts.files, Unit::Seconds);
            trial.observe("replay", parts.replay, Unit::Seconds);
            trial.observe("replayed", parts.replayed as f64, Unit::Bytes);
        }
        if let Some(at) = &self.at {
            trial.observe("data", at.bytes as f64, Unit::Bytes);
        }
        if let Some(network) = &self.network {
            trial.observe("network-received", network.received as f64, Unit::Bytes);
            trial.observe("network-sent", network.sent as f64, Unit::Bytes);
        }
        let text = self.verified.to_string();
        let what = json!({ "event": "verified", "verified": self.verified });
        trial.events.push(Event { at: self.backup + self.restore, text, what });
        trial.events.extend(self.network.and_then(|network| network.event(self.backup)));
        if let Some(recovery) = &self.recovery {
            let what = json!({ "event": "recovery", "recovery": recovery });
            trial.events.push(Event { at: self.backup + self.restore, text: "recovery".to_owned(), what });
        }
        if let Some(beside) = &self.beside {
            let what = json!({ "event": "beside", "beside": beside });
            trial.events.push(Event { at: self.backup, text: beside.to_string(), what });
        }
        trial
    }
}

impl Outcome {
    /// Whether a way has neither failed nor been cut short.
    pub(crate) fn goes_on(&self, way: &Way) -> bool {
        !self.failed.iter().chain(&self.cut_short).any(|(one, _)| one == way)
    }

    /// The sizes of data, ascending; none if there is only one database.
    pub fn sizes(&self) -> Vec<DataSize> {
        let mut sizes: Vec<DataSize> = self.trials.iter().filter_map(|trial| trial.at).collect();
        sizes.sort_by_key(|size| size.asked);
        sizes.dedup();
        sizes
    }

    /// The `--up-to` with which all tables have at least so many bytes: they come out smaller or larger than asked for.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, not negative")]
    pub fn up_to(&self, bytes: u64) -> u64 {
        let ratio = |largest: &DataSize| largest.asked as f64 / largest.bytes.max(1) as f64;
        (bytes as f64 * self.sizes().last().map_or(1.0, ratio)).ceil() as u64
    }

    /// The results at one of the sizes.
    #[must_use]
    pub fn at(&self, size: DataSize) -> Self {
        let trials = self.trials.iter().filter(|trial| trial.at == Some(size)).cloned().collect();
        Self { trials, failed: self.failed.clone(), ..Self::default() }
    }

    /// The results of each way that worked, in the order of the plan.
    pub fn summaries(&self, ways: &[Way]) -> Vec<Summary> {
        let mut all: Vec<Summary> = ways.iter().filter_map(|way| self.summary(way)).collect();
        let costs: Vec<Costs> = all.iter().map(Summary::costs).collect();
        for (one, is_front) in all.iter_mut().zip(front(&costs)) {
            one.is_front = is_front;
        }
        all
    }

    fn summary(&self, way: &Way) -> Option<Summary> {
        let trials: Vec<&Trial> = self.trials.iter().filter(|trial| trial.way == *way).collect();
        let median = |value: &dyn Fn(&Trial) -> f64| {
            let values = trials.iter().map(|trial| value(trial)).collect();
            Sample::new(values).map(|sample| Median::of(&sample))
        };
        let cpu = |programs: &dyn Fn(&Trial) -> f64, server: &dyn Fn(&Trial) -> Option<f64>| {
            let server = Sample::new(trials.iter().filter_map(|trial| server(trial)).collect());
            Some(Cpu { programs: median(programs)?, server: server.map(|sample| Median::of(&sample)) })
        };
        let weakest = trials.iter().find(|trial| trial.verified.witness == Witness::Changed);
        let mut verified = weakest.or(trials.last())?.verified.clone();
        let mut others = trials.iter().map(|trial| &trial.verified.other_databases);
        if let Some(names) = others.find(|names| !names.is_empty()) {
            verified.other_databases.clone_from(names);
        }
        Some(Summary {
            way: way.clone(),
            size: median(&|trial| trial.size as f64)?,
            backup: median(&|trial| trial.backup)?,
            restore: median(&|trial| trial.restore)?,
            backup_cpu: cpu(&|trial| trial.backup_cpu, &|trial| trial.backup_server_cpu)?,
            restore_cpu: cpu(&|trial| trial.restore_cpu, &|trial| trial.restore_server_cpu)?,
            peak_disk: median(&|trial| trial.peak_disk as f64)?,
            verified,
            beside: Beside::together(
                &trials.iter().filter_map(|trial| trial.beside.as_ref()).collect::<Vec<_>>(),
            ),
            network: trials.iter().rev().find_map(|trial| trial.network),
            is_front: true,
        })
    }
}

impl Summary {
    fn costs(&self) -> Costs {
        [self.size.median, self.backup.median, self.restore.median]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(way: &str, size: u64, backup: f64, restore: f64) -> Trial {
        let verified = Verified {
            witness: Witness::SameSnapshot,
            tables: 1,
            hidden: 0,
            rows: 1,
            sequences: 0,
            large_objects: 0,
            constraints: 0,
            indexes: None,
            other_order: 0,
            other_databases: Vec::new(),
        };
        let way = way.parse().unwrap();
        Trial {
            way,
            backup,
            restore,
            backup_cpu: 0.0,
            restore_cpu: 0.0,
            backup_server_cpu: None,
            restore_server_cpu: Some(0.5),
            size,
            peak_disk: 0,
            verified,
            beside: None,
            at: None,
            increment: None,
            recovery: None,
            network: None,
        }
    }

    #[test]
    fn a_size_is_asked_for_with_what_tables_come_out_smaller() {
        let at = |asked: u64, bytes: u64, is_largest: bool| Trial {
            at: Some(DataSize { asked, bytes, rows: 1, is_largest }),
            ..trial("plain", 1, 1.0, 1.0)
        };
        let trials = vec![at(400, 200, false), at(1200, 900, true), at(133, 10, false)];
        assert_eq!(Outcome { trials, ..Outcome::default() }.up_to(3000), 4000);
        assert_eq!(Outcome::default().up_to(3000), 3000);
    }

    #[test]
    fn the_other_databases_of_one_trial_stand_for_the_way() {
        let mut first = trial("base", 1, 1.0, 1.0);
        first.verified.other_databases = vec!["a".to_owned(), "postgres".to_owned()];
        let later = trial("base", 1, 1.0, 1.0);
        assert!(first.verified.to_string().ends_with("; 2 other databases read, and not compared"));
        let what = &first.document().events[0].what;
        assert_eq!(what["verified"]["other_databases"], json!(["a", "postgres"]));
        let (way, names) = (first.way.clone(), first.verified.other_databases.clone());
        let found = Outcome { trials: vec![first, later], ..Outcome::default() }.summaries(&[way]);
        assert_eq!(found[0].verified.other_databases, names);
    }

    #[test]
    fn counted_bytes_are_observations_of_one_trial_and_stand_for_the_way() {
        let network = Some(Network { received: 70, sent: 5, is_partial: false });
        let without = trial("plain", 1, 1.0, 1.0);
        let with = Trial { network, ..without.clone() };
        let observed =
            |trial: &Trial| ["network-received", "network-sent"].map(|name| trial.document().value(name));
        assert_eq!((observed(&without), observed(&with)), ([None, None], [Some(70.0), Some(5.0)]));
        let way = with.way.clone();
        let found = Outcome { trials: vec![without, with], ..Outcome::default() }.summaries(&[way]);
        assert_eq!(found[0].network, network);
    }

    #[test]
    fn the_cpu_time_of_a_server_counts_where_it_was_measured() {
        let trials = [0.2, 0.3, 0.4].map(|seconds| Trial {
            restore_cpu: seconds,
            restore_server_cpu: Some(10.0 * seconds),
            ..trial("plain", 1, 1.0, 1.0)
        });
        let observed =
            ["backup-server-cpu", "restore-server-cpu"].map(|name| trials[0].document().value(name));
        assert_eq!(observed, [None, Some(2.0)]);
        let way = trials[0].way.clone();
        let found = &Outcome { trials: trials.into(), ..Outcome::default() }.summaries(&[way])[0];
        assert!(found.backup_cpu.server.is_none());
        let restore = (found.restore_cpu.programs.median, found.restore_cpu.server.map(|one| one.median));
        assert_eq!(restore, (0.3, Some(3.0)));
    }

    #[test]
    fn the_front_holds_what_nothing_beats_in_all_three() {
        let trials = vec![
            trial("plain", 100, 1.0, 5.0),
            trial("plain:gzip", 20, 2.0, 5.0),
            trial("custom:none", 100, 1.0, 4.0),
            trial("custom:gzip", 20, 2.5, 6.0),
            trial("custom:gzip", 20, 1.9, 7.0),
            trial("custom:gzip", 20, 1.8, 8.0),
        ];
        let ways: Vec<Way> = ["plain", "plain:gzip", "custom:none", "custom:gzip", "base"]
            .map(|way| way.parse().unwrap())
            .into();
        let found = Outcome { trials, ..Outcome::default() }.summaries(&ways);
        let front: Vec<(String, bool)> =
            found.iter().map(|one| (one.way.to_string(), one.is_front)).collect();
        let expected =
            [("plain:none", false), ("plain:gzip", true), ("custom:none", true), ("custom:gzip", true)];
        assert_eq!(front, expected.map(|(way, front)| (way.to_owned(), front)));
        assert!((found[3].backup.median - 1.9).abs() < 1e-9);
    }
}
