//! The disk space that a measurement needs at its peak, about, before anything is filled: the databases of all sizes, a copy of the largest, the
//! new files of the migration there, and WAL.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use server::volume::Volume;

use super::Site;
use super::assumed::Assumed;
use super::databases::Databases;
use super::settings;
use crate::error::DdlError;
use crate::find::Class;
use crate::plan::{Plan, PlannedTable};

/// Part of the largest `--up-to` that fits which is advised: tables may come out larger than planned.
const ADVISED: f64 = 0.9;

/// Bytes that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    filled: u64,
    copy: u64,
    new: u64,
    wal: u64,
}

impl Need {
    /// Of a plan, and the work of the statements. `is_logged` tells whether the fill writes WAL, which then grows by no
    /// more than `most`.
    fn of(plan: &Plan, works: &[Assumed], (is_logged, most): (bool, u64)) -> Self {
        // The old files of rewrites go when their transaction commits. Indexes and new row versions stay.
        let (mut rewritten, mut added): (BTreeMap<usize, u64>, u64) = (BTreeMap::new(), 0);
        for work in works {
            let of_table = |table: &PlannedTable| Some((table.bytes, *work.tables.get(&table.name)?));
            let of_tables = plan.tables.iter().filter_map(of_table);
            match work.class {
                Class::Rewrite | Class::Copy => {
                    let bytes: u64 = of_tables.map(|(bytes, times)| bytes * times).sum();
                    *rewritten.entry(work.transaction).or_default() += bytes;
                }
                Class::IndexBuild | Class::Rows => added += of_tables.map(|(bytes, _)| bytes).sum::<u64>(),
                _ => {}
            }
        }
        let new = rewritten.into_values().max().unwrap_or_default() + added / 2;
        let copy = plan.bytes();
        let filled = plan.sizes.iter().map(|size| size.bytes).sum();
        // Each fill and each run begins after a checkpoint. WAL has headers, and keeps segments of the time before.
        let logged = if is_logged { copy.max(new) } else { new };
        Self { filled, copy, new, wal: (logged + logged / 2).min(most) }
    }

    fn all(self) -> u64 {
        self.filled + self.copy + self.new + self.wal
    }
}

/// Refuses a measurement for which the disk has no room, if pgrig sees the server's disk. `up_to` is the `--up-to` of the plan.
pub(super) async fn check(
    site: &Site<'_>,
    databases: &Databases,
    (plan, works): (&Plan, &[Assumed]),
    (max_wal_size, up_to): (u64, f64),
) -> Result<(), DdlError> {
    let survey = settings::survey(site, databases.outside()).await?;
    let (Some(directory), Some(disk)) = (&survey.data_directory, &survey.environment.data_volume) else {
        return Ok(());
    };
    let need = Need::of(plan, works, (site.restarter.is_none(), growth_of_wal(directory, max_wal_size)));
    if need.all() <= disk.free {
        return Ok(());
    }
    let fitting = up_to * disk.free as f64 / need.all() as f64 * ADVISED;
    Err(DdlError::Disk {
        needed: need.all(),
        filled: need.filled,
        copy: need.copy,
        new: need.new,
        wal: need.wal,
        free: disk.free,
        mount: disk.mount.clone(),
        up_to: Some(rounded_down(fitting)),
    })
}

/// Bytes by which the directory of WAL grows at most; none if it is on another volume.
fn growth_of_wal(data: &Path, max_wal_size: u64) -> u64 {
    let wal = data.join("pg_wal");
    if let (Some(data), Some(wal)) = (Volume::of(data), Volume::of(&wal))
        && !data.is_same_as(&wal)
    {
        return 0;
    }
    let files = fs::read_dir(&wal).into_iter().flatten().flatten();
    let held: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    max_wal_size.saturating_sub(held)
}

/// A size in two digits, rounded down.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size, not negative")]
fn rounded_down(bytes: f64) -> u64 {
    let whole = bytes as u64;
    let step = 10_u64.pow(whole.checked_ilog10().unwrap_or_default().saturating_sub(1));
    whole / step * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlannedSize;

    #[test]
    fn all_sizes_a_copy_and_new_files_are_needed() {
        let table = |name: &str, bytes: u64| PlannedTable { name: name.to_owned(), rows: 1, bytes };
        let size = |bytes: u64| PlannedSize { bytes, runs: 1 };
        let plan = Plan {
            tables: vec![table("a", 600), table("b", 200)],
            empty: Vec::new(),
            without_rows: Vec::new(),
            sizes: [50, 200, 800].map(size).to_vec(),
            suited: Vec::new(),
            defaults: Vec::new(),
            settings: Vec::new(),
            seconds: 0,
            warnings: Vec::new(),
        };
        let work = |class: Class, (name, times): (&str, u64), transaction: usize| {
            let tables = BTreeMap::from([(name.to_owned(), times)]);
            Assumed { class, tables, transaction }
        };
        let rewrites = [work(Class::Rewrite, ("a", 1), 1), work(Class::Rewrite, ("b", 1), 2)];
        let need = |works: &[Assumed], wal: (bool, u64)| Need::of(&plan, works, wal);
        let expected = Need { filled: 1050, copy: 800, new: 600, wal: 1200 };
        assert_eq!(need(&rewrites, (true, 10_000)), expected);
        assert_eq!(need(&rewrites, (false, 10_000)), Need { wal: 900, ..expected });
        assert_eq!(need(&rewrites, (true, 100)), Need { wal: 100, ..expected });
        // One transaction keeps the files of all its rewrites, also of one table.
        let together = [work(Class::Rewrite, ("a", 1), 1), work(Class::Copy, ("b", 1), 1)];
        assert_eq!(need(&together, (true, 0)), Need { new: 800, wal: 0, ..expected });
        let twice = [work(Class::Rewrite, ("b", 2), 1), work(Class::Rewrite, ("b", 2), 1)];
        assert_eq!(need(&twice, (true, 0)), Need { new: 800, wal: 0, ..expected });
        let indexes = [work(Class::IndexBuild, ("a", 1), 1), work(Class::IndexBuild, ("b", 1), 2)];
        assert_eq!(need(&indexes, (true, 0)), Need { new: 400, wal: 0, ..expected });
        assert_eq!(need(&[work(Class::Scan, ("a", 1), 1)], (false, 10_000)).all(), 1850);
    }

    #[test]
    fn advice_has_two_digits() {
        assert_eq!([167_900_000.0, 9.0, 0.0].map(rounded_down), [160_000_000, 9, 0]);
    }
}
