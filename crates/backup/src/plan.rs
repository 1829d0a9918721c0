//! The plan: the ways that are possible here, and those that are left out, with the reason.

use measure::forecast::Memory;
use serde::Serialize;

use crate::error::BackupError;
use crate::forecast::MEASURED;
use crate::load::Load;
use crate::programs::{ALL_METHODS, Programs, on_path};
use crate::request::{Request, SizesRequest};
use crate::run::source::Facts;
use crate::run::{incremental, pitr, tool};
use crate::way::{CompressedBy, Compression, Format, Method, Way};

/// Number of default ways.
const DEFAULT: usize = 5;
/// Rate of backups that the announced time assumes, bytes of the database each second.
pub const BACKUP_RATE: f64 = 120e6;
/// Rate of restores that it assumes.
pub const RESTORE_RATE: f64 = 60e6;
const VERIFY_RATE: f64 = 150e6;
const FILL_RATE: f64 = 40e6;
/// Time of a load and of the replay of its WAL, in times of the load.
const WITH_REPLAY: f64 = 1.5;
/// Seconds that a trial takes at least.
const LEAST: f64 = 2.0;
/// The measured sizes, as parts of the largest.
const PARTS: [u64; 3] = [9, 3, 1];

/// The plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The database.
    pub database: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Size of all databases of its server, which base backups hold.
    pub server_bytes: u64,
    /// The ways, in order.
    pub ways: Vec<Way>,
    /// Ways that are not possible here.
    pub left_out: Vec<LeftOut>,
    /// Trials of each way.
    pub trials: u32,
    /// The client programs.
    pub programs: Programs,
    /// Whether bytes between the server and the client programs are counted, in one more backup of each way.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Seconds that all of it takes, at assumed rates.
    pub seconds: f64,
    /// The sizes of data that pgrig makes for it; none if it rehearses a database that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// The load that it puts on these data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
}

/// Sizes of data that pgrig makes.
#[derive(Clone, Debug, Serialize)]
pub struct Sizes {
    /// Bytes of all tables with their indexes, ascending.
    pub measured: Vec<u64>,
    /// Bytes of all tables with their indexes for which costs are forecast.
    pub forecast: u64,
    /// Major version of the servers.
    pub major: u16,
    /// Whether the values imitate those of an original.
    pub is_like_original: bool,
}

impl Sizes {
    /// Whether no restore time can be forecast on a machine with this memory: the tables of the forecast leave the cache, and
    /// fewer than two measured sizes do.
    pub fn lack_restore_times(&self, memory: u64) -> bool {
        let cache = Memory { machine: memory, ..Memory::default() }.dirty();
        let forecast = self.forecast as f64;
        let largest = self.measured.last().map_or(0.0, |largest| *largest as f64);
        let beyond = self.measured.iter().filter(|size| **size as f64 >= cache).count();
        forecast > cache && forecast > largest * MEASURED && beyond < 2
    }

    /// Whether no backup time can be forecast either: the tables of the forecast do not even stay in memory when they are read. With
    /// backups larger than their tables, that is so already for smaller ones.
    pub fn lack_backup_times(&self, memory: u64) -> bool {
        let cache = Memory { machine: memory, ..Memory::default() }.cached();
        self.lack_restore_times(memory) && self.forecast as f64 > cache
    }
}

/// A way that is not possible here.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// The way.
    pub way: Way,
    /// The reason, with the remedy.
    pub why: String,
}

impl Plan {
    /// Each reason for which ways are not possible, after the ways that it prevents.
    pub fn left_out_by_reason(&self) -> Vec<(String, &str)> {
        by_reason(&self.left_out)
    }

    /// Of the ways of the request; of the default ones if there are none.
    pub(crate) fn new(
        facts: &Facts,
        programs: Programs,
        (request, load): (&Request, Option<&Load>),
        cores: u16,
    ) -> Self {
        let Request { ways: asked, trials, network, .. } = request;
        let mut ways: Vec<Way> = Vec::new();
        let mut left_out: Vec<LeftOut> = Vec::new();
        let candidates = if asked.is_empty() { default_ways(cores) } else { asked.clone() };
        for way in candidates {
            if ways.contains(&way) || asked.is_empty() && ways.len() == DEFAULT {
                continue;
            }
            match hindrance(&way, facts, &programs, load) {
                None => ways.push(way),
                Some(why) => left_out.push(LeftOut { way, why }),
            }
        }
        let seconds = |way: &Way| {
            let bytes = facts.bytes_of(way) as f64;
            let verified = facts.bytes as f64 / VERIFY_RATE;
            (to_back_up(way, facts) + bytes / RESTORE_RATE + verified).max(LEAST)
        };
        let all = ways.iter().map(seconds).sum::<f64>() * f64::from(*trials)
            + facts.bytes as f64 / VERIFY_RATE
            + LEAST;
        let plan = Self {
            database: facts.database.clone(),
            bytes: facts.bytes,
            server_bytes: facts.server_bytes,
            ways,
            left_out,
            trials: *trials,
            programs,
            network: *network,
            seconds: all,
            sizes: None,
            load: load.cloned(),
        };
        Self { seconds: all + plan.counting(facts), ..plan }
    }

    /// Itself, if it has ways.
    ///
    /// # Errors
    /// [`BackupError::NoWay`] if it has none.
    pub(crate) fn possible(self) -> Result<Self, BackupError> {
        if self.ways.is_empty() {
            let reasons = by_reason(&self.left_out).into_iter().map(|(ways, why)| format!("{ways}: {why}"));
            return Err(BackupError::NoWay(reasons.collect()));
        }
        Ok(self)
    }

    /// Seconds of the backups whose network bytes are counted, with a load for each recovery. They are made of the largest data only.
    fn counting(&self, facts: &Facts) -> f64 {
        let load = |way: &Way| if way.recovers() { self.load_seconds() } else { 0.0 };
        let seconds = |way: &Way| to_back_up(way, facts).max(LEAST) + load(way);
        self.ways.iter().filter(|_| self.network).map(seconds).sum()
    }

    /// The same at three sizes of data that pgrig makes, of which these facts hold for the largest.
    pub(crate) fn at_sizes(self, asked: &SizesRequest, facts: &Facts) -> Self {
        let largest = facts.bytes;
        let measured: Vec<u64> = PARTS.iter().map(|part| largest / part).collect();
        let all: u64 = measured.iter().sum();
        let ratio = all as f64 / largest.max(1) as f64;
        let fixed = LEAST * (self.ways.len() * 2 * self.trials as usize + 2 * measured.len()) as f64;
        let loads = self.loads(measured.len());
        let counting = self.counting(facts);
        let trials = (self.seconds - counting) * ratio;
        let seconds = trials + counting + all as f64 / FILL_RATE + fixed + loads;
        let sizes = Sizes {
            measured,
            forecast: asked.size,
            major: facts.major,
            is_like_original: asked.shape.is_like_original,
        };
        Self { seconds, sizes: Some(sizes), ..self }
    }

    /// The load under which pgrig measures the row versions that the snapshot of a dump keeps; none if no way is a dump.
    pub fn load_beside_dumps(&self) -> Option<&Load> {
        self.load.as_ref().filter(|_| self.ways.iter().any(Way::is_dump))
    }

    /// Seconds of a load.
    fn load_seconds(&self) -> f64 {
        self.load.as_ref().map_or(0.0, |load| load.time().as_secs_f64())
    }

    /// Seconds of all loads: one for each trial of their WAL, one for each trial of the snapshot of a dump, and one for each recovery, in
    /// which its WAL is replayed, too.
    fn loads(&self, sizes: usize) -> f64 {
        let time = self.load_seconds();
        let recoveries = self.ways.iter().filter(|way| way.recovers()).count() * sizes;
        let held = self.load_beside_dumps().map_or(0.0, |load| load.time().as_secs_f64() + LEAST);
        f64::from(self.trials) * (time + LEAST + held + recoveries as f64 * time * WITH_REPLAY)
    }
}

/// The default ways in the order in which they are chosen; the later ones replace earlier ones that are not possible.
fn default_ways(cores: u16) -> Vec<Way> {
    let jobs = cores.clamp(1, 8);
    let way = |format, method, level, jobs| Way {
        format,
        compression: Compression { method, level, place: CompressedBy::Client },
        jobs,
        tool: None,
    };
    vec![
        way(Format::Plain, Method::Gzip, None, 1),
        way(Format::Custom, Method::Gzip, None, jobs),
        way(Format::Custom, Method::Zstd, Some(1), jobs),
        way(Format::Directory, Method::Zstd, Some(1), jobs),
        way(Format::BaseTar, Method::Gzip, Some(1), 1),
        way(Format::Directory, Method::Gzip, Some(1), jobs),
        way(Format::Directory, Method::None, None, jobs),
        way(Format::Custom, Method::None, None, jobs),
    ]
}

/// Why a way is not possible, with the remedy.
fn hindrance(way: &Way, facts: &Facts, programs: &Programs, load: Option<&Load>) -> Option<String> {
    if let Some(tool) = &way.tool {
        return tool::hindrance(tool, facts, load);
    }
    if way.is_dump() && facts.no_dump.is_some() {
        return facts.no_dump.clone();
    }
    let Compression { method, place, .. } = way.compression;
    let client = programs.major;
    let modern = matches!(method, Method::Lz4 | Method::Zstd);
    if place == CompressedBy::Client && programs.lacks.contains(&method.name()) {
        return Some(format!(
            "the programs in {} are built without {}: give other programs (--bin DIR), or another compression",
            programs.dir.display(),
            method.name()
        ));
    }
    if way.is_base() {
        // No setting helps a server that is too old.
        if way.format == Format::Incremental
            && let Some(why) = incremental::too_old(facts)
        {
            return Some(why);
        }
        if let Some(why) = facts.no_base_backup() {
            return Some(why);
        }
        if let Some(missing) = ["pg_basebackup", "pg_verifybackup"].iter().find(|name| !programs.has(name)) {
            return Some(format!("there is no {missing} in {}: give --bin DIR", programs.dir.display()));
        }
        match way.format {
            Format::Incremental => return incremental::hindrance(facts, programs),
            Format::Pitr => return pitr::hindrance(programs, load),
            _ => {}
        }
        let by_server = place == CompressedBy::Server && method != Method::None;
        if (by_server || modern) && client < 15 {
            return Some(format!(
                "pg_basebackup {client} compresses only with gzip, and only on the client: give programs of version 15 or later (--bin DIR)"
            ));
        }
        if by_server && facts.major < 15 {
            return Some(format!(
                "a server of version {} does not compress: give {}:client-{}",
                facts.major,
                way.format.name(),
                method.name()
            ));
        }
    } else if modern && client < ALL_METHODS {
        return Some(format!(
            "pg_dump {client} compresses only with gzip: give programs of version 16 or later (--bin DIR)"
        ));
    }
    let unpack = match (way.format, method) {
        (Format::Plain | Format::BaseTar, Method::Gzip) => "gzip",
        (Format::Plain | Format::BaseTar, Method::Lz4) => "lz4",
        (Format::Plain | Format::BaseTar, Method::Zstd) => "zstd",
        _ => return None,
    };
    (!on_path(unpack)).then(|| {
        format!("the program {unpack}, which decompresses it for the restore, is not installed: install it")
    })
}

/// Each reason once, after the ways that it prevents.
fn by_reason(left_out: &[LeftOut]) -> Vec<(String, &str)> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for one in left_out {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, ways)) => ways.push(one.way.to_string()),
            None => reasons.push((one.why.as_str(), vec![one.way.to_string()])),
        }
    }
    reasons.into_iter().map(|(why, ways)| (ways.join(", "), why)).collect()
}

/// Seconds of a backup.
fn to_back_up(way: &Way, facts: &Facts) -> f64 {
    // An incremental one is made of two.
    let parts = if way.format == Format::Incremental { 2.0 } else { 1.0 };
    facts.bytes_of(way) as f64 * parts / BACKUP_RATE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    #[test]
    fn a_reason_for_several_ways_is_given_once() {
        let left_out = |way: &str, why: &str| LeftOut { way: way.parse().unwrap(), why: why.to_owned() };
        let all =
            [left_out("custom", "no right"), left_out("base", "no base"), left_out("plain", "no right")];
        let expected = [("custom:gzip, plain:none", "no right"), ("base", "no base")];
        assert_eq!(by_reason(&all), expected.map(|(ways, why)| (ways.to_owned(), why)));
    }

    #[test]
    fn restore_times_need_two_sizes_beyond_the_cache() {
        let lack = |forecast: u64, measured: [u64; 3]| {
            let measured = measured.into();
            let sizes = Sizes { measured, forecast, major: 18, is_like_original: false };
            // A fifth of it: 2 GB.
            sizes.lack_restore_times(10_000_000_000)
        };
        assert!(lack(2_000_000_000_000, [28_000_000, 85_000_000, 256_000_000]));
        assert!(lack(2_000_000_000_000, [800_000_000, 1_900_000_000, 6_000_000_000]));
        assert!(!lack(2_000_000_000_000, [800_000_000, 2_400_000_000, 7_200_000_000]));
        assert!(!lack(1_900_000_000, [28_000_000, 85_000_000, 256_000_000]), "within the cache");
        assert!(!lack(3_000_000_000, [333_000_000, 1_000_000_000, 3_000_000_000]), "measured itself");
    }

    #[test]
    fn backup_times_are_unknown_for_tables_that_memory_does_not_hold() {
        let lack = |forecast: u64| {
            let measured = vec![28_000_000, 85_000_000, 256_000_000];
            let sizes = Sizes { measured, forecast, major: 18, is_like_original: false };
            // A fifth of it: 2 GB. Half of it: 5 GB.
            (sizes.lack_restore_times(10_000_000_000), sizes.lack_backup_times(10_000_000_000))
        };
        assert_eq!(
            [1_900_000_000, 4_000_000_000, 6_000_000_000].map(lack),
            [(false, false), (true, false), (true, true)]
        );
    }

    #[test]
    fn counting_takes_one_more_backup_of_the_largest_data() {
        let facts = Facts::of_scratch(18, "shop", 1_200_000_000);
        let seconds = |network: bool| {
            let programs = Programs {
                dir: "/nonexistent".into(),
                major: 18,
                version: "18.1".to_owned(),
                lacks: Vec::new(),
            };
            let ways: Vec<Way> = ["plain", "custom:none"].map(|way| way.parse().unwrap()).into();
            let request = Request { ways, trials: 3, bin: None, probe: false, network };
            let plan = Plan::new(&facts, programs, (&request, None), 2);
            let asked = SizesRequest {
                request,
                shape: Shape::pgbench(),
                size: 9_000_000_000,
                up_to: 1_200_000_000,
                price: None,
                rto: None,
                changes: 0.01,
                load: None,
            };
            [plan.seconds, plan.at_sizes(&asked, &facts).seconds]
        };
        let ([one, sizes], [counted_one, counted_sizes]) = (seconds(false), seconds(true));
        // Two dumps of 1.2 GB at 120 MB/s.
        for more in [counted_one - one, counted_sizes - sizes] {
            assert!((more - 20.0).abs() < 1e-6, "{more}");
        }
    }
}
