//! Forecasts of the cost of a way at a size, from its trials at smaller sizes. The statistics are in [`measure::forecast`].

use measure::forecast::{Boundary, Cause, Figure, Fit, Law, Least, Memory, Models, Point, interval, sizes};
use serde::Serialize;

use crate::held::HOUR;
use crate::load::spread;
use crate::outcome::{Recovery, Trial};
use crate::way::Way;

/// Seconds differ more between runs than within one; the growth is for laws that hold less well the farther the size is.
const OF_SECONDS: Least = Least { error: 0.15, growth: 0.06, absolute: 0.0 };
/// Sizes of backups vary little, and their laws hold at any size.
const OF_BYTES: Least = Least { error: 0.03, growth: 0.0, absolute: 0.0 };
/// The peak of disk space is read twice a second, and servers of base backups have whole segments of WAL.
const OF_DISK: Least = Least { error: 0.05, growth: 0.02, absolute: 0.0 };
/// Up to this multiple of the largest measured size, only its own trials count.
pub(crate) const MEASURED: f64 = 1.02;
/// The ratio of the largest size to the one before it (`plan.rs`).
const STEP: f64 = 3.0;
/// A checkpoint begins after this part of max_wal_size (xlog.c: CalculateCheckpointSegments, with
/// checkpoint_completion_target = 0.9).
const CHECKPOINT: f64 = 1.0 / 1.9;

/// The forecast of a way at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The way.
    pub way: Way,
    /// Bytes of all tables with their indexes.
    pub bytes: u64,
    /// Bytes of the backup.
    pub size: Figure,
    /// Price of the backup for a month.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Figure>,
    /// Seconds to back up, on a machine like this one.
    pub backup: Figure,
    /// Seconds to restore.
    pub restore: Figure,
    /// Most bytes that backup and restored server take together.
    pub disk: Figure,
    /// The WAL of a day, which a recovery to a point in time needs, too. It is part of `size`, `restore` and `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<Day>,
    /// Bytes of the row versions that VACUUM cannot remove until a dump ends, at the load all the time. None if the way is no dump, or if
    /// they were not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Figure>,
    /// Whether the restore ends in the time that it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<Rto>,
}

/// The WAL of a day of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Day {
    /// Its bytes, not compressed.
    pub wal: Figure,
    /// Its bytes as a tool stores them, which are part of the size. None if the server's files of WAL are stored as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<Figure>,
    /// Seconds to replay it, at the rate that was measured at the largest size.
    pub replay: Figure,
}

impl Day {
    /// From the WAL of a day (median, least, greatest value) and the rates of replay, in bytes each second.
    fn of((wal, least, most): (f64, f64, f64), rates: Vec<f64>) -> Option<Self> {
        let (rate, slowest, fastest) = spread(rates)?;
        let [shrunk, grown] = [1.0 - OF_SECONDS.error, 1.0 + OF_SECONDS.error];
        let (least, most) = (least * shrunk, most * grown);
        let replay =
            Figure::Value { value: wal / rate, low: least / fastest * shrunk, high: most / slowest * grown };
        Some(Self { wal: Figure::Value { value: wal, low: least, high: most }, stored: None, replay })
    }

    /// That of a way, if its trials are recoveries.
    fn of_trials(way: &Way, trials: &[&Trial], wal: Option<(f64, f64, f64)>) -> Option<Self> {
        let is_largest = |trial: &&&Trial| trial.at.is_some_and(|at| at.is_largest);
        let recoveries = trials.iter().filter(is_largest).filter_map(|trial| trial.recovery.as_ref());
        let recoveries: Vec<&Recovery> = recoveries.collect();
        let day = Self::of(wal?, recoveries.iter().copied().map(Recovery::rate).collect())?;
        let stored = way.tool.is_some().then(|| stored(day.wal, &recoveries));
        Some(Self { stored, ..day })
    }

    /// The bytes that are part of the size.
    fn of_size(self) -> Figure {
        self.stored.unwrap_or(self.wal)
    }
}

/// WAL as a tool stores it, at the ratio that was measured.
fn stored(wal: Figure, recoveries: &[&Recovery]) -> Figure {
    let ratios: Option<Vec<f64>> = recoveries.iter().copied().map(Recovery::stored_ratio).collect();
    match (wal, ratios.and_then(spread)) {
        (Figure::Value { value, low, high }, Some((ratio, least, most))) => {
            Figure::Value { value: value * ratio, low: low * least, high: high * most }
        }
        (Figure::Value { .. }, None) => Figure::NotMeasured,
        (unknown, _) => unknown,
    }
}

/// Size, restore and disk space of a recovery: with the WAL of a day.
fn with_day(way: &Way, day: Option<Day>, [size, restore, disk]: [Figure; 3]) -> [Figure; 3] {
    match day {
        None => [Figure::NotMeasured; 3],
        // Its restore command also fetches that WAL. Time and space of that were measured with the WAL of a short load only.
        Some(day) if way.tool.is_some() => {
            [size.plus(day.of_size()), Figure::NotMeasured, Figure::NotMeasured]
        }
        Some(day) => [size.plus(day.of_size()), restore.plus(day.replay), disk.plus(day.wal)],
    }
}

/// The peak of disk space of a trial, without the WAL of a recovery, which depends on the time since the base backup.
fn peak_disk(trial: &Trial) -> u64 {
    trial.peak_disk.saturating_sub(trial.recovery.as_ref().map_or(0, |parts| parts.wal_size))
}

/// Whether a restore ends in the time that it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rto {
    /// Even the upper end of the interval does.
    Keeps,
    /// The upper end of the interval does not.
    DoesNotKeep,
    /// There is no figure.
    NotKnown,
}

impl Rto {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keeps => "meets",
            Self::DoesNotKeep => "misses",
            Self::NotKnown => "not known",
        }
    }

    fn of(restore: Figure, seconds: f64) -> Self {
        match restore {
            Figure::Value { high, .. } if high <= seconds => Self::Keeps,
            Figure::Value { .. } => Self::DoesNotKeep,
            _ => Self::NotKnown,
        }
    }
}

/// The question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Bytes of all tables with their indexes.
    pub(crate) bytes: u64,
    pub(crate) price: Option<f64>,
    pub(crate) rto: Option<f64>,
    /// Bytes of WAL of a day: median, least and greatest value.
    pub(crate) wal: Option<(f64, f64, f64)>,
    /// Bytes of row versions that the snapshot of a dump keeps in an hour: median, least and greatest value.
    pub(crate) held: Option<(f64, f64, f64)>,
}

/// Facts on which boundaries depend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// That of the servers into which backups are restored.
    pub(crate) memory: Memory,
    /// Rows of the largest table, at the largest size, if there are any indexes.
    pub(crate) sorted: u64,
}

/// The forecasts of a way; none without trials. The trials have sizes.
pub(crate) fn forecast(
    way: &Way,
    trials: &[&Trial],
    asked: Asked,
    conditions: Conditions,
) -> Option<Forecast> {
    let point = |trial: &&Trial, value: f64| {
        let at = trial.at.as_ref()?;
        Some(Point { bytes: at.bytes as f64, rows: at.rows as f64, value })
    };
    let points = |value: &dyn Fn(&Trial) -> f64| -> Vec<Point> {
        trials.iter().filter_map(|trial| point(trial, value(trial))).collect()
    };
    // Of a recovery, the base backup alone: its WAL depends on the time since then.
    let of_size = points(&|trial| trial.recovery.as_ref().map_or(trial.size, |parts| parts.base_size) as f64);
    let largest = of_size.iter().max_by(|one, other| one.bytes.total_cmp(&other.bytes))?;
    let measured = sizes(&of_size);
    let before = measured[measured.len().saturating_sub(2)];
    let bytes = asked.bytes as f64;
    let goal = (bytes, largest.rows * bytes / largest.bytes);
    // The size of the question was filled, though its tables may have come out smaller.
    let is_filled = trials.iter().filter_map(|trial| trial.at).any(|at| at.asked >= asked.bytes);
    let law = |models, least, boundaries| Law { models, least, boundaries };
    let at = |law: Law, mut points: Vec<Point>| {
        if bytes > largest.bytes * MEASURED && !is_filled {
            return law.at(points, goal, (largest.bytes / before).max(STEP));
        }
        points.retain(|point| point.bytes >= largest.bytes);
        let fit = Fit::of(&points, &[1]);
        fit.map_or(Figure::TooFewSizes, |fit| interval(&points, &fit, goal, law.least))
    };

    // It hardly differs between trials, so a small slope is known, too.
    let continued = |points: &[Point], least: Least| {
        let fit = Fit::best(points, Models::OF_BYTES);
        fit.map_or(Figure::TooFewSizes, |fit| interval(points, &fit, goal, least))
    };
    let size = continued(&of_size, OF_BYTES);
    let of_disk = points(&|trial| peak_disk(trial) as f64);
    let disk = if way.is_dump() {
        // Its restore writes WAL, which no longer grows once checkpoints begin.
        let boundaries = Boundary::known([of_checkpoints(conditions.memory)]);
        at(law(Models::OF_BYTES, OF_DISK, boundaries), of_disk)
    } else {
        continued(&of_disk, OF_DISK)
    };
    let of_byte = largest.value / largest.bytes;
    let of_backup = law(Models::OF_BYTES, OF_SECONDS, of_backup(conditions.memory, of_byte));
    let backup = at(of_backup, points(&|trial| trial.backup));
    let models = if way.is_base() { Models::OF_BYTES } else { Models::OF_SORTS };
    let of_restore = law(models, OF_SECONDS, of_restore(way, conditions, largest.bytes));
    let files = points(&|trial| trial.recovery.as_ref().map_or(trial.restore, |parts| parts.files));
    let restore = at(of_restore, files);
    let day = Day::of_trials(way, trials, asked.wal);
    let is_recovery = trials.iter().any(|trial| trial.recovery.is_some());
    let all = [size, restore, disk];
    let [size, restore, disk] = if is_recovery { with_day(way, day, all) } else { all };
    Some(Forecast {
        way: way.clone(),
        bytes: asked.bytes,
        size,
        price: asked.price.map(|price| size.scaled(price / 1e9)),
        backup,
        restore,
        disk,
        day,
        held: asked.held.filter(|_| way.is_dump()).map(|hour| held(backup, hour)),
        rto: asked.rto.map(|seconds| Rto::of(restore, seconds)),
    })
}

/// Bytes that the snapshot of a dump keeps until its end, from those of an hour: median, least and greatest value.
fn held(backup: Figure, (hour, least, most): (f64, f64, f64)) -> Figure {
    let [shrunk, grown] = [1.0 - OF_SECONDS.error, 1.0 + OF_SECONDS.error];
    match backup.scaled(1.0 / HOUR) {
        Figure::Value { value, low, high } => {
            Figure::Value { value: value * hour, low: low * least * shrunk, high: high * most * grown }
        }
        unknown => unknown,
    }
}

/// Tables no longer stay in memory, or files of the backup no longer do. `of_byte` is the size of the backup of a byte.
fn of_backup(memory: Memory, of_byte: f64) -> Vec<Boundary> {
    let written = if of_byte > 0.0 { memory.dirty() / of_byte } else { f64::INFINITY };
    Boundary::known([(Cause::Cache, memory.cached().min(written))])
}

/// The restore of a dump writes every byte to WAL, too.
fn of_checkpoints(memory: Memory) -> (Cause, f64) {
    (Cause::MaxWalSize, memory.max_wal_size as f64 * CHECKPOINT)
}

/// Written tables no longer stay in memory, checkpoints begin meanwhile, or sorts leave their memory.
fn of_restore(way: &Way, conditions: Conditions, largest: f64) -> Vec<Boundary> {
    let Conditions { memory, sorted } = conditions;
    let mut found = vec![(Cause::Cache, memory.dirty())];
    if !way.is_base() {
        found.push(of_checkpoints(memory));
        if sorted > 0 {
            found.push((Cause::MaintenanceWorkMem, largest / sorted as f64 * memory.sorted_rows()));
        }
    }
    Boundary::known(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::DataSize;
    use crate::verified::{Verified, Witness};

    const MB: u64 = 1_000_000;

    fn trials(way: &str, cost: impl Fn(f64) -> f64) -> Vec<Trial> {
        let size = |bytes: u64| {
            let verified = Verified {
                witness: Witness::SameSnapshot,
                tables: 1,
                hidden: 0,
                rows: bytes / 100,
                sequences: 0,
                large_objects: 0,
                constraints: 0,
                indexes: None,
                other_order: 0,
                other_databases: Vec::new(),
            };
            Trial {
                way: way.parse().unwrap(),
                backup: cost(bytes as f64),
                restore: 2.0 * cost(bytes as f64),
                backup_cpu: 0.0,
                restore_cpu: 0.0,
                backup_server_cpu: None,
                restore_server_cpu: None,
                size: bytes / 4,
                peak_disk: 2 * bytes,
                verified,
                beside: None,
                at: Some(DataSize { asked: bytes, bytes, rows: bytes / 100, is_largest: bytes == 90 * MB }),
                increment: None,
                recovery: None,
                network: None,
            }
        };
        [10 * MB, 10 * MB, 30 * MB, 30 * MB, 90 * MB, 90 * MB].map(size).into()
    }

    fn of(way: &str, size: u64, rto: f64, memory: Memory) -> Forecast {
        let trials = trials(way, |bytes| 0.1 + 1e-8 * bytes);
        let trials: Vec<&Trial> = trials.iter().collect();
        let asked = Asked { bytes: size, price: Some(0.02), rto: Some(rto), wal: None, held: None };
        let conditions = Conditions { memory, sorted: 900_000 };
        forecast(&way.parse().unwrap(), &trials, asked, conditions).unwrap()
    }

    fn memory() -> Memory {
        Memory {
            shared_buffers: 128 * MB,
            maintenance_work_mem: MB,
            max_wal_size: 40 * MB,
            machine: 24_000 * MB,
        }
    }

    #[test]
    fn costs_are_continued_and_the_upper_end_decides() {
        let found = of("custom", 900 * MB, 60.0, memory());
        let Figure::Value { value, .. } = found.size else { panic!("{found:?}") };
        assert!((value / 225e6 - 1.0).abs() < 0.01, "{found:?}");
        let Some(Figure::Value { value, .. }) = found.price else { panic!("{found:?}") };
        assert!((value / 0.0045 - 1.0).abs() < 0.01, "{found:?}");
        let Figure::Value { value, .. } = found.backup else { panic!("{found:?}") };
        assert!((value / 9.1 - 1.0).abs() < 0.05, "{found:?}");
        let Figure::Value { value, high, .. } = found.restore else { panic!("{found:?}") };
        let rto = |seconds: f64| of("custom", 900 * MB, seconds, memory()).rto.unwrap();
        let between = f64::midpoint(value, high);
        assert_eq!([60.0, between, 1.0].map(rto), [Rto::Keeps, Rto::DoesNotKeep, Rto::DoesNotKeep]);
    }

    /// The forecast of recoveries, of whose WAL so many bytes were stored.
    fn recovered(way: &Way, wal_size: u64, wal: Option<(f64, f64, f64)>) -> Forecast {
        let mut trials = trials("pitr", |bytes| 0.1 + 1e-8 * bytes);
        for trial in &mut trials {
            trial.recovery = Some(Recovery {
                base_size: trial.size,
                wal_size,
                written: 4 * MB,
                data: 0,
                files: trial.restore,
                replay: 0.5,
                replayed: 2 * MB,
                target: String::new(),
                before: 1,
                after: 1,
            });
        }
        let trials: Vec<&Trial> = trials.iter().collect();
        let asked = Asked { bytes: 900 * MB, price: Some(0.02), rto: Some(119.0), wal, held: None };
        let conditions = Conditions { memory: memory(), sorted: 0 };
        forecast(way, &trials, asked, conditions).unwrap()
    }

    #[test]
    fn a_tool_stores_the_wal_of_a_day_at_its_ratio_and_fetches_it_in_a_time_that_is_not_known() {
        let commands = ("b {backup}", "r {backup} {restore} {time}", Some("w {backup}"));
        let tool = crate::tool::Tool::new("copy", commands.0, commands.1, commands.2).unwrap();
        let way = Way::of_tool(tool);
        let wal = Some((400e6, 390e6, 410e6));
        // The WAL of the load in whole segments is no more than that of a day.
        for (wal_size, ratio) in [(MB, 0.25), (16 * MB, 1.0)] {
            let found = recovered(&way, wal_size, wal);
            let Figure::Value { value, .. } = found.size else { panic!("{found:?}") };
            assert!((value / (225e6 + 400e6 * ratio) - 1.0).abs() < 0.01, "{found:?}");
            let Some(Day { stored: Some(Figure::Value { value, .. }), .. }) = found.day else { panic!() };
            assert!((value / (400e6 * ratio) - 1.0).abs() < 1e-9, "{found:?}");
            assert_eq!((found.restore, found.rto), (Figure::NotMeasured, Some(Rto::NotKnown)));
        }
        let nothing = recovered(&way, 0, wal);
        assert_eq!((nothing.size, nothing.price), (Figure::NotMeasured, Some(Figure::NotMeasured)));
        assert_eq!(nothing.disk, Figure::NotMeasured);
        // Without the WAL of a day.
        let lacking = recovered(&"pitr".parse().unwrap(), MB, None);
        assert_eq!((lacking.size, lacking.restore), (Figure::NotMeasured, Figure::NotMeasured));
        assert_eq!((lacking.day, lacking.rto), (None, Some(Rto::NotKnown)));
    }

    #[test]
    fn the_wal_of_a_day_is_part_of_size_and_restore() {
        let found = recovered(&"pitr".parse().unwrap(), 3 * MB, Some((400e6, 390e6, 410e6)));
        let Some(Day { replay: Figure::Value { value, low, high }, .. }) = found.day else { panic!() };
        assert!((value - 100.0).abs() < 1e-6 && low < 90.0 && high > 110.0, "{found:?}");
        let Figure::Value { value, .. } = found.size else { panic!("{found:?}") };
        assert!((value / 625e6 - 1.0).abs() < 0.01, "{found:?}");
        let Figure::Value { value, .. } = found.restore else { panic!("{found:?}") };
        assert!((value / 118.2 - 1.0).abs() < 0.05, "{found:?}");
        assert_eq!(found.rto, Some(Rto::DoesNotKeep));
    }

    #[test]
    fn a_snapshot_keeps_row_versions_for_the_time_of_its_dump() {
        let of = |way: &str| {
            let trials = trials(way, |bytes| 0.1 + 1e-8 * bytes);
            let trials: Vec<&Trial> = trials.iter().collect();
            // In a second: a million bytes, half of that, twice as many.
            let held = Some((3.6e9, 1.8e9, 7.2e9));
            let asked = Asked { bytes: 900 * MB, price: None, rto: None, wal: None, held };
            let conditions = Conditions { memory: memory(), sorted: 900_000 };
            forecast(&way.parse().unwrap(), &trials, asked, conditions).unwrap()
        };
        let dump = of("custom");
        let Figure::Value { value: seconds, low: least, high: most } = dump.backup else {
            panic!("{dump:?}")
        };
        let Some(Figure::Value { value, low, high }) = dump.held else { panic!("{dump:?}") };
        for (found, expected) in [(value, seconds * 1e6), (low, least * 0.425e6), (high, most * 2.3e6)] {
            assert!((found / expected - 1.0).abs() < 1e-9, "{dump:?}");
        }
        assert_eq!(of("base").held, None);
    }

    #[test]
    fn the_largest_boundary_is_named() {
        let beyond = |way: &str, size: u64, memory: Memory| match of(way, size, 1.0, memory).restore {
            Figure::Beyond { boundary, measure } => {
                // A third of it is beyond the boundary.
                assert!(measure > boundary.at * 3 && measure < boundary.at * 4, "{boundary:?} {measure}");
                Some((boundary.cause, boundary.at / MB))
            }
            _ => None,
        };
        let stock = Memory { maintenance_work_mem: 64 * MB, max_wal_size: 1000 * MB, ..memory() };
        assert_eq!(beyond("custom", 400 * MB, stock), Some((Cause::MaintenanceWorkMem, 114)));
        assert_eq!(beyond("custom", 900 * MB, stock), Some((Cause::MaxWalSize, 526)));
        assert_eq!(beyond("custom", 9_000 * MB, stock), Some((Cause::Cache, 4800)));
        // A base backup is not sorted, and writes no WAL.
        assert_eq!(beyond("base", 900 * MB, stock), None);
        assert_eq!(of("base", 9_000 * MB, 1.0, stock).rto, Some(Rto::NotKnown));
        let backup = of("base", 13_000 * MB, 1.0, stock).backup;
        assert!(matches!(backup, Figure::Beyond { boundary: Boundary { at: 12_000_000_000, .. }, .. }));
    }

    #[test]
    fn disk_space_is_continued_up_to_the_checkpoints_of_a_restore() {
        for (way, max_wal_size) in [("custom", 40), ("base", 1000)] {
            let found = of(way, 900 * MB, 1.0, Memory { max_wal_size: max_wal_size * MB, ..memory() });
            let Figure::Value { value, low, high } = found.disk else { panic!("{found:?}") };
            assert!((value / 1.8e9 - 1.0).abs() < 0.01, "{found:?}");
            assert!(low < value * 0.95 && high > value * 1.05, "{found:?}");
        }
        let found = of("custom", 900 * MB, 1.0, Memory { max_wal_size: 1000 * MB, ..memory() });
        let Figure::Beyond { boundary, .. } = found.disk else { panic!("{found:?}") };
        assert_eq!((boundary.cause, boundary.at / MB), (Cause::MaxWalSize, 526));
        // With the WAL of a day.
        let found = recovered(&"pitr".parse().unwrap(), 0, Some((400e6, 390e6, 410e6)));
        let Figure::Value { value, .. } = found.disk else { panic!("{found:?}") };
        assert!((value / 2.2e9 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_size_that_was_measured_has_no_boundary() {
        let small = Memory { machine: 500 * MB, ..memory() };
        let found = of("custom", 90 * MB, 60.0, small);
        let Figure::Value { value, .. } = found.restore else { panic!("{found:?}") };
        assert!((value - 2.0).abs() < 0.01, "{found:?}");
        assert!(matches!(of("custom", 150 * MB, 60.0, small).restore, Figure::Beyond { .. }));
        // The same, if its tables came out smaller.
        let mut trials = trials("custom", |bytes| 0.1 + 1e-8 * bytes);
        trials[5].at.as_mut().unwrap().asked = 120 * MB;
        let trials: Vec<&Trial> = trials.iter().collect();
        let asked = Asked { bytes: 120 * MB, price: None, rto: None, wal: None, held: None };
        let conditions = Conditions { memory: small, sorted: 900_000 };
        let found = forecast(&"custom".parse().unwrap(), &trials, asked, conditions).unwrap();
        let Figure::Value { value, .. } = found.restore else { panic!("{found:?}") };
        assert!((value - 2.0 * 12.0 / 9.0).abs() < 0.01, "{found:?}");
    }
}
