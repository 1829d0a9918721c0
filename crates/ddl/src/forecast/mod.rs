//! Forecasts of a statement's cost at the size that the user asked for, from its cost at smaller sizes. Pure.
//!
//! The laws of each class of statements; the statistics are in [`measure::forecast`]. [`boundary`] knows the sizes across which
//! no law holds, [`checkpoint`] those from which on a checkpoint begins during the migration.

mod boundary;
mod checkpoint;

pub use measure::forecast::{Boundary, Cause, Figure, Memory};
use measure::forecast::{Fit, Law, Least, Models, Point, interval, sizes};
use serde::Serialize;

pub(crate) use self::boundary::Limits;
use self::boundary::{Quantity, boundaries};
pub(crate) use self::checkpoint::{Checkpoints, SoFar};
use crate::find::Class;
use crate::outcome::{AtSize, Cost, SpaceAt};
use crate::request::STEP;

/// Seconds: between runs, machines differ more than within one. Both are measured: with them, 77 to 81 of 90 intervals at 12 times
/// the largest size held (`bench/ddl.py`). Statements of a few milliseconds, most of them the flush at the commit, differ by more.
const OF_SECONDS: Least = Least { error: 0.15, growth: 0.06, absolute: 0.002 };
/// Files vary little, and their laws hold at any size.
const OF_BYTES: Least = Least { error: 0.03, growth: 0.0, absolute: 0.0 };
/// The same holds for WAL, but for pages of catalogs that it has whole: their number and their free space vary.
const OF_WAL: Least = Least { absolute: BLOCK as f64, ..OF_BYTES };
/// Temporary files are read while they grow, a little before their end.
const OF_TEMPORARY: Least = Least { error: 0.1, growth: 0.02, absolute: 0.0 };
/// The term of the bytes alone: a sort writes each row once.
const BYTES: [usize; 1] = [1];
/// The size to measure is so many times that of the boundary from which on temporary files are written, which is known roughly.
const WRITTEN: f64 = 1.5;
/// A file grows by blocks of so many bytes.
const BLOCK: u64 = 8192;
/// Files that grow by less than this may be those of catalogs alone.
const LEAST_SPACE: u64 = 1 << 20;
/// Tables beyond this part of shared_buffers are read through a ring of buffers (heapam.c: initscan).
const RING: f64 = 0.25;
/// Sizes up to this multiple of the largest measured one need no forecast.
const MEASURED: f64 = 1.02;

/// Forecasts of a statement at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Bytes of its tables at that size, with their indexes.
    pub bytes: u64,
    /// Rows of these tables at that size.
    pub rows: u64,
    /// Seconds, on a machine like this one.
    pub seconds: Figure,
    /// Bytes of WAL that the server writes meanwhile.
    pub wal: Figure,
    /// Bytes of the database's files at their peak, beyond those before.
    pub space: Figure,
    /// Bytes of temporary files at their peak; none if no measured size needs any, and none is known that does.
    pub temporary: Option<Figure>,
}

/// The forecast of a statement; none if the size was measured itself, or nothing was.
pub(crate) fn forecast(
    class: Class,
    measured: &[AtSize],
    spaces: &[SpaceAt],
    (bytes, rows): (u64, u64),
    limits: Limits,
) -> Option<Forecast> {
    let largest = measured.last()?;
    if bytes as f64 <= largest.bytes as f64 * MEASURED {
        return None;
    }
    let of = |quantity: Quantity, value: &dyn Fn(&Cost) -> f64, least: Least| {
        figure(class, quantity, measured, (bytes as f64, rows as f64), limits, value, least)
    };
    let seconds = of(Quantity::Seconds, &|cost| cost.seconds, OF_SECONDS);
    let wal = of(Quantity::Wal, &|cost| cost.wal as f64, OF_WAL);
    let space = space(spaces, bytes as f64, rows as f64);
    let temporary = temporary(class, spaces, (bytes as f64, rows as f64), limits);
    Some(Forecast { bytes, rows, seconds, wal, space, temporary })
}

/// The forecast of disk space from the sizes at which a statement was looked at.
fn space(spaces: &[SpaceAt], bytes: f64, rows: f64) -> Figure {
    let point = |at: &SpaceAt| Point {
        bytes: at.bytes as f64,
        rows: at.rows as f64,
        value: at.space.files.max(BLOCK) as f64,
    };
    let points: Vec<Point> = spaces.iter().map(point).collect();
    let grows = spaces.last().is_some_and(|largest| largest.space.files > LEAST_SPACE);
    let models = if grows { Models::OF_BYTES } else { Models::CONSTANT_OR_MORE };
    let Some(fit) = Fit::best(&points, models) else { return Figure::TooFewSizes };
    interval(&points, &fit, (bytes, rows), OF_BYTES)
}

/// The forecast of temporary files from the sizes that write any: they grow with the bytes from a boundary on, and are none below it.
/// None if neither a measured size nor a boundary tells of them, or the role may not see them.
fn temporary(class: Class, spaces: &[SpaceAt], (bytes, rows): (f64, f64), limits: Limits) -> Option<Figure> {
    let point = |at: &SpaceAt| {
        let value = at.space.temporary? as f64;
        Some(Point { bytes: at.bytes as f64, rows: at.rows as f64, value })
    };
    let points: Vec<Point> = spaces.iter().map(point).collect::<Option<_>>()?;
    let largest = points.last().copied()?;
    let writing: Vec<Point> = points.iter().filter(|point| point.value > 0.0).copied().collect();
    if writing.is_empty() {
        let of_row = largest.bytes / largest.rows.max(1.0);
        let all = boundaries(class, Quantity::Temporary, limits, of_row);
        // An index is built by a sort. The readings miss files that are there for a few milliseconds. Not every build has workers.
        let is_missed = |boundary: &Boundary| {
            let is_sort = class == Class::IndexBuild && boundary.cause == Cause::MaintenanceWorkMem;
            is_sort && largest.bytes < bytes && boundary.at as f64 <= largest.bytes
        };
        let is_between = |boundary: &Boundary| (largest.bytes..bytes).contains(&(boundary.at as f64));
        let possible = all.into_iter().filter(|boundary| is_between(boundary) || is_missed(boundary));
        let boundary = possible.min_by_key(|boundary| boundary.at)?;
        let least = if is_missed(&boundary) { largest.bytes * STEP } else { boundary.at as f64 * WRITTEN };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
        let measure = least.ceil() as u64;
        return Some(Figure::Beyond { boundary, measure });
    }
    if sizes(&points).len() < 2 {
        return Some(Figure::TooFewSizes);
    }
    let models = models(class, Quantity::Temporary);
    let fit = Fit::best(&writing, models).or_else(|| Fit::of(&writing, &BYTES))?;
    Some(interval(&writing, &fit, (bytes, rows), OF_TEMPORARY))
}

fn figure(
    class: Class,
    quantity: Quantity,
    measured: &[AtSize],
    (bytes, rows): (f64, f64),
    limits: Limits,
    value: &dyn Fn(&Cost) -> f64,
    least: Least,
) -> Figure {
    let points: Vec<Point> = measured
        .iter()
        .flat_map(|at| {
            at.runs.iter().map(|cost| Point {
                bytes: at.bytes as f64,
                rows: at.rows as f64,
                value: value(cost),
            })
        })
        .collect();
    let Some(largest) = measured.last() else { return Figure::TooFewSizes };
    let of_row = largest.bytes as f64 / (largest.rows as f64).max(1.0);
    let mut points = points;
    if quantity == Quantity::Seconds && is_scan(class) {
        let ring = limits.memory.shared_buffers as f64 * RING;
        let beyond: Vec<Point> = points.iter().filter(|point| point.bytes >= ring).copied().collect();
        // Repeated scans of smaller tables find them in shared_buffers.
        if bytes > ring && sizes(&beyond).len() >= 2 {
            points = beyond;
        }
    }
    let before = measured[measured.len().saturating_sub(2)].bytes.max(1);
    let step = (largest.bytes as f64 / before as f64).max(STEP);
    let law = Law {
        models: models(class, quantity),
        least,
        boundaries: boundaries(class, quantity, limits, of_row),
    };
    law.at(points, (bytes, rows), step)
}

fn is_scan(class: Class) -> bool {
    matches!(class, Class::Scan | Class::ScanOfAnother | Class::SeveralTables)
}

/// The terms that a quantity of a class may have: what reads or writes rows grows with them, however little it grew between
/// small tables; only seconds of sorts grow faster than the bytes.
fn models(class: Class, quantity: Quantity) -> Models {
    match (class, quantity) {
        (Class::CatalogOnly | Class::Wait, _) => Models::CONSTANT_OR_MORE,
        // A scan writes hardly any.
        (Class::Scan | Class::ScanOfAnother | Class::SeveralTables, Quantity::Wal) => {
            Models::CONSTANT_OR_MORE
        }
        (Class::Scan | Class::ScanOfAnother | Class::Copy, _) | (_, Quantity::Wal | Quantity::Temporary) => {
            Models::OF_BYTES
        }
        (Class::SeveralTables | Class::Rows | Class::IndexBuild | Class::Rewrite, Quantity::Seconds) => {
            Models::OF_SORTS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn measured(cost: impl Fn(f64, usize) -> f64) -> Vec<AtSize> {
        let size = |bytes: u64| {
            let run = |number: usize| {
                let seconds = cost(bytes as f64, number);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made up")]
                let wal = (cost(bytes as f64, 0) * 1e9) as u64;
                Cost { seconds, wal, held: 0.0 }
            };
            AtSize { bytes, rows: bytes / 100, runs: (0..3).map(run).collect() }
        };
        vec![size(10 * MB), size(40 * MB), size(160 * MB)]
    }

    fn limits() -> Limits {
        let memory = Memory {
            shared_buffers: 128 * MB,
            maintenance_work_mem: 64 * MB,
            max_wal_size: 1000 * MB,
            machine: 24_000 * MB,
        };
        Limits { memory, checkpoint: None, parallel: None }
    }

    #[test]
    fn a_law_of_the_bytes_is_continued() {
        let measured = measured(|bytes, run| bytes * 1e-9 * (1.0 + 0.02 * run as f64));
        let found = forecast(Class::Scan, &measured, &[], (1600 * MB, 16 * MB), limits()).unwrap();
        let Figure::Value { value, low, high } = found.seconds else { panic!("{found:?}") };
        assert!((value / 1.632 - 1.0).abs() < 0.05 && low < 1.6 && high > 1.7, "{found:?}");
        let Figure::Value { value, low, high } = found.wal else { panic!("{found:?}") };
        assert!((value / 1.6e9 - 1.0).abs() < 0.001 && low < 1.6e9 && high > 1.6e9, "{found:?}");
    }

    #[test]
    fn the_interval_widens_with_the_distance_and_with_the_error_where_the_law_was_tried() {
        let straight = measured(|bytes, run| bytes * 1e-9 * (1.0 + 0.02 * run as f64));
        let bent = measured(|bytes, _| bytes.powf(1.2) * 1e-9);
        let width = |measured: &[AtSize], bytes: u64| {
            let found = forecast(Class::Scan, measured, &[], (bytes, bytes / 100), limits()).unwrap();
            let Figure::Value { low, high, .. } = found.seconds else { panic!("{found:?}") };
            high / low
        };
        assert!(width(&bent, 1600 * MB) > width(&straight, 1600 * MB) * 1.2);
        assert!(width(&bent, 8000 * MB) > width(&bent, 1600 * MB));
    }

    #[test]
    fn milliseconds_of_a_commit_vary_by_milliseconds() {
        let short = measured(|_, run| 0.001 + 0.0001 * run as f64);
        let found = forecast(Class::CatalogOnly, &short, &[], (1600 * MB, 16 * MB), limits()).unwrap();
        let Figure::Value { value, low, high } = found.seconds else { panic!("{found:?}") };
        assert!(low.abs() < f64::EPSILON && value < 0.0012 && high > 0.004 && high < 0.006, "{found:?}");
    }

    #[test]
    fn beyond_a_boundary_there_is_the_size_to_measure() {
        let measured = measured(|bytes, _| bytes * 1e-9);
        // Memory for 1.14 million sorted rows: 114 MB. One size is beyond it, and two are wanted.
        let found = forecast(Class::IndexBuild, &measured, &[], (1600 * MB, 16 * MB), limits()).unwrap();
        let Figure::Beyond { boundary, measure } = found.seconds else { panic!("{found:?}") };
        assert_eq!(boundary.cause, Cause::MaintenanceWorkMem);
        // A quarter of it is beyond the boundary. That is the same if only one size was measured.
        assert!(measure > boundary.at * 4 && measure < boundary.at * 5, "{found:?}");
        let one = forecast(Class::IndexBuild, &measured[2..], &[], (1600 * MB, 16 * MB), limits()).unwrap();
        assert_eq!(one.seconds, found.seconds);
        assert!(matches!(found.wal, Figure::Value { .. }), "{found:?}");
        // Once two are, the figure is there.
        let memory = Memory { maintenance_work_mem: 16 * MB, ..limits().memory };
        let small = Limits { memory, ..limits() };
        let found = forecast(Class::IndexBuild, &measured, &[], (1600 * MB, 16 * MB), small).unwrap();
        assert!(matches!(found.seconds, Figure::Value { .. }), "{found:?}");
        // A scan does not sort.
        let found = forecast(Class::Scan, &measured, &[], (20_000 * MB, 200 * MB), limits()).unwrap();
        assert!(matches!(
            found.seconds,
            Figure::Beyond { boundary: Boundary { cause: Cause::Cache, .. }, .. }
        ));
    }

    #[test]
    fn beyond_a_checkpoint_there_is_neither_wal_nor_time_until_two_sizes_have_it() {
        let measured = measured(|bytes, _| bytes * 1e-9);
        let of = |class: Class, at: f64| {
            let limits = Limits { checkpoint: Some((Cause::MaxWalSize, at)), ..limits() };
            forecast(class, &measured, &[], (400 * MB, 4 * MB), limits).unwrap()
        };
        for class in [Class::Rows, Class::Scan, Class::IndexBuild] {
            let found = of(class, 300e6);
            let Figure::Beyond { boundary, measure } = found.wal else { panic!("{found:?}") };
            assert_eq!((boundary.cause, boundary.at), (Cause::MaxWalSize, 300 * MB));
            assert!(measure > 1200 * MB, "{found:?}");
            assert_eq!(found.seconds, found.wal);
            assert!(matches!(of(class, 30e6).wal, Figure::Value { .. }));
            assert!(matches!(of(class, 500e6).wal, Figure::Value { .. }));
        }
    }

    #[test]
    fn the_size_to_measure_is_beyond_all_boundaries() {
        let measured = measured(|bytes, _| bytes * 1e-9);
        // Sorts leave their memory from 114 MB on, and written blocks that of the machine from 4.8 GB on.
        let of = |bytes: u64| forecast(Class::IndexBuild, &measured, &[], (bytes, bytes / 100), limits());
        for (bytes, cause) in [(4000 * MB, Cause::MaintenanceWorkMem), (20_000 * MB, Cause::Cache)] {
            let found = of(bytes).unwrap();
            let Figure::Beyond { boundary, measure } = found.seconds else { panic!("{found:?}") };
            assert_eq!(boundary.cause, cause);
            assert!(measure > boundary.at * 4, "{found:?}");
        }
    }

    #[test]
    fn a_statement_without_wal_has_none_at_any_size() {
        let mut measured = measured(|bytes, _| bytes * 1e-9);
        measured.iter_mut().flat_map(|at| &mut at.runs).for_each(|run| run.wal = 0);
        let found = forecast(Class::Scan, &measured, &[], (1600 * MB, 16 * MB), limits()).unwrap();
        assert_eq!(found.wal, Figure::Value { value: 0.0, low: 0.0, high: 0.0 });
    }

    #[test]
    fn what_was_measured_is_not_forecast_and_one_size_is_too_few() {
        let measured = measured(|bytes, _| bytes * 1e-9);
        assert_eq!(forecast(Class::Scan, &measured, &[], (160 * MB, MB), limits()), None);
        assert_eq!(forecast(Class::Scan, &[], &[], (160 * MB, MB), limits()), None);
        let found = forecast(Class::Scan, &measured[2..], &[], (1600 * MB, 16 * MB), limits()).unwrap();
        assert_eq!((found.seconds, found.wal), (Figure::TooFewSizes, Figure::TooFewSizes));
        // A statement whose cost is the same at all sizes.
        let found = forecast(Class::CatalogOnly, &measured_at(0.001), &[], (20_000 * MB, 200 * MB), limits())
            .unwrap();
        let Figure::Value { value, .. } = found.seconds else { panic!("{found:?}") };
        assert!((value - 0.001).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn files_grow_with_the_tables_or_not_at_all() {
        let at = |bytes: u64, files: u64| SpaceAt {
            place: 0,
            bytes,
            rows: bytes / 100,
            space: crate::outcome::Space { files, temporary: None },
        };
        let value = |spaces: &[SpaceAt]| match space(spaces, 1e10, 1e8) {
            Figure::Value { value, low, high } => {
                assert!(low < value && value < high);
                value
            }
            other => panic!("{other:?}"),
        };
        assert!((value(&[at(MB, MB / 2), at(100 * MB, 50 * MB)]) / 5e9 - 1.0).abs() < 0.01);
        assert!((value(&[at(MB, 0), at(100 * MB, 0)]) - 8192.0).abs() < 1.0);
        assert_eq!(space(&[at(MB, 0)], 1e10, 1e8), Figure::TooFewSizes);
    }

    #[test]
    fn temporary_files_grow_with_the_tables_from_a_boundary_on() {
        let at = |bytes: u64, temporary: Option<u64>| SpaceAt {
            place: 0,
            bytes,
            rows: bytes / 100,
            space: crate::outcome::Space { files: 0, temporary },
        };
        let of = |class: Class, spaces: &[SpaceAt], bytes: u64| {
            temporary(class, spaces, (bytes as f64, bytes as f64 / 100.0), limits())
        };
        // From the size that writes them, though the smaller one sorts in memory; from both, if both do.
        for smaller in [0, 5 * MB] {
            let spaces = [at(10 * MB, Some(smaller)), at(160 * MB, Some(80 * MB))];
            let found = of(Class::IndexBuild, &spaces, 1600 * MB);
            let Some(Figure::Value { value, low, high }) = found else { panic!("{found:?}") };
            assert!((value / 8e8 - 1.0).abs() < 0.01 && low < value && value < high, "{found:?}");
        }
        // Memory for 1.14 million sorted rows: 114 MB.
        let none = [at(5 * MB, Some(0)), at(80 * MB, Some(0))];
        let found = of(Class::IndexBuild, &none, 1600 * MB);
        let Some(Figure::Beyond { boundary, measure }) = found else { panic!("{found:?}") };
        assert_eq!(boundary.cause, Cause::MaintenanceWorkMem);
        assert!(measure > boundary.at && measure < boundary.at * 2, "{found:?}");
        assert_eq!(of(Class::IndexBuild, &none, 100 * MB), None);
        // Above the boundary, a sort writes files, though no reading saw them.
        let missed = [at(10 * MB, Some(0)), at(160 * MB, Some(0))];
        let found = of(Class::IndexBuild, &missed, 1600 * MB);
        let Some(Figure::Beyond { boundary, measure }) = found else { panic!("{found:?}") };
        assert!(boundary.at < 160 * MB && measure == 640 * MB, "{found:?}");
        assert_eq!(of(Class::IndexBuild, &missed, 160 * MB), None);
        assert_eq!(of(Class::Scan, &none, 1600 * MB), None);
        // A table without indexes is rewritten without a sort.
        assert_eq!(of(Class::Rewrite, &[at(10 * MB, Some(0)), at(160 * MB, Some(0))], 1600 * MB), None);
        assert_eq!(of(Class::IndexBuild, &[at(10 * MB, None), at(80 * MB, None)], 1600 * MB), None);
        let one = [at(160 * MB, Some(80 * MB))];
        assert_eq!(of(Class::IndexBuild, &one, 1600 * MB), Some(Figure::TooFewSizes));
    }

    #[test]
    fn sorts_of_parallel_workers_write_temporary_files_from_a_boundary_on() {
        let at = |bytes: u64, temporary: u64| SpaceAt {
            place: 0,
            bytes,
            rows: bytes / 100,
            space: crate::outcome::Space { files: 0, temporary: Some(temporary) },
        };
        let parallel = Limits { parallel: Some(12e6), ..limits() };
        let of = |class: Class, spaces: &[SpaceAt], limits: Limits| {
            temporary(class, spaces, (80.0 * MB as f64, 8e5), limits)
        };
        let small = [at(2 * MB, 0), at(8 * MB, 0)];
        for class in [Class::IndexBuild, Class::Rewrite] {
            // The rows fit in maintenance_work_mem.
            assert_eq!(of(class, &small, limits()), None);
            let found = of(class, &small, parallel);
            let Some(Figure::Beyond { boundary, measure }) = found else { panic!("{found:?}") };
            assert_eq!((boundary.cause, boundary.at, measure), (Cause::ParallelWorkers, 12 * MB, 18 * MB));
        }
        assert_eq!(of(Class::Scan, &small, parallel), None);
        // This build has no workers.
        assert_eq!(of(Class::IndexBuild, &[at(4 * MB, 0), at(16 * MB, 0)], parallel), None);
        let found = of(Class::IndexBuild, &[at(4 * MB, 0), at(16 * MB, 8 * MB)], parallel);
        assert!(
            matches!(found, Some(Figure::Value { value, .. }) if (value / 4e7 - 1.0).abs() < 0.01),
            "{found:?}"
        );
        // They shorten the build, too.
        let measured = measured(|bytes, _| bytes * 1e-9);
        let seconds = |at: f64| {
            let limits = Limits { parallel: Some(at), ..parallel };
            let found = forecast(Class::IndexBuild, &measured[..2], &[], (80 * MB, MB), limits).unwrap();
            assert!(matches!(found.wal, Figure::Value { .. }), "{found:?}");
            found.seconds
        };
        assert!(matches!(seconds(5e6), Figure::Value { .. }));
        assert!(matches!(
            seconds(12e6),
            Figure::Beyond { boundary: Boundary { cause: Cause::ParallelWorkers, .. }, .. }
        ));
    }

    fn measured_at(cost: f64) -> Vec<AtSize> {
        measured(|_, _| cost)
    }
}
