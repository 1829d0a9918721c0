//! The load of `pgrig backup rehearse`: its options, and the WAL that it writes as text.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use backup::{Load, Method, WalOfLoad};
use clap::Args;
use measure::human::{bytes, counted, time};
use measure::{Median, Sample};
use script::Source;
use tps::{Length, Request};

use crate::app::args::{connections, rate};
use crate::app::duration::seconds;
use crate::app::failure::Usage;
use crate::app::input;
use crate::app::numbers::duration;
use crate::cmd::backup::text::whole;

/// Time of the load, if none is given.
const TIME: Duration = Duration::from_secs(30);
/// Connections that run transactions, if no number is given.
const CLIENTS: u32 = 8;

/// Options of a load.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Run this pgbench script on the largest database that pgrig fills, and measure the WAL that it writes: per day, and compressed. Give
    /// the path of a script, or the name of a built-in one (tpcb-like, simple-update); these need pgbench's tables. If one of the ways is a dump,
    /// run the script once more while a snapshot like that of pg_dump is open, and measure the row versions that VACUUM cannot remove because of it. With --way pitr, also replay the WAL
    /// up to a point in time
    #[arg(long, value_name = "FILE|NAME", requires = "rate")]
    pub(crate) load: Option<String>,

    /// Start this many transactions of --load per second, all clients together, at random times
    #[arg(short = 'R', long, value_name = "TPS", value_parser = rate, requires = "load")]
    pub(crate) rate: Option<f64>,

    /// Run --load for this time: 30 (seconds), 90s, 5min [default: 30s]
    #[arg(short = 'T', long, value_name = "DURATION", value_parser = seconds, requires = "load")]
    pub(crate) time: Option<Duration>,

    /// Number of connections that run the transactions of --load [default: 8]
    #[arg(short, long = "clients", alias = "client", value_name = "N", value_parser = connections(), requires = "load")]
    pub(crate) client: Option<u32>,
}

impl LoadArgs {
    /// The load, if one is asked for. Reads and parses its script.
    pub(crate) fn load(&self) -> Result<Option<Load>, Usage> {
        let Some(name) = &self.load else { return Ok(None) };
        let source = source(name)?;
        let request = Request {
            clients: self.client.unwrap_or(CLIENTS) as usize,
            rate: self.rate,
            seed: fastrand::u64(..),
            ..Request::of(source, Length::Time(self.time.unwrap_or(TIME)))
        };
        tps::Plan::parse(request.clone()).map_err(|error| Usage(format!("--load {name}: {error}")))?;
        Ok(Some(Load { request }))
    }
}

/// A built-in script of exactly this name, or a file.
fn source(name: &str) -> Result<Source, Usage> {
    if Source::builtins().any(|(builtin, _)| builtin == name) {
        return Source::builtin(name).map_err(|error| Usage(format!("--load {name}: {error}")));
    }
    let text = input::file(Path::new(name)).map_err(|error| {
        let builtins: Vec<&str> = Source::builtins().map(|(builtin, _)| builtin).collect();
        Usage(format!(
            "cannot read the script --load {name}: {error}; give a file, or the name of a built-in script: {}",
            builtins.join(", ")
        ))
    })?;
    Ok(Source::file(name, text, 1))
}

/// One line: script, rate, clients, time.
pub(super) fn described(load: &Load) -> String {
    format!(
        "{}, {} transactions a second, {}, for {}",
        load.script(),
        load.rate(),
        counted(load.request.clients as u64, "client"),
        duration(load.time())
    )
}

/// Programs that did not compress the WAL.
fn not_installed(names: &[&str]) -> String {
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("{} {are} not installed here, so pgrig did not measure {}", names.join(" and "), them(names))
}

fn them(names: &[&str]) -> &'static str {
    if names.len() == 1 { "it" } else { "them" }
}

/// The WAL of the load, in a day; none if it was not measured.
pub(super) fn text(load: &Load, all: &[WalOfLoad]) -> Option<String> {
    let median = |value: &dyn Fn(&WalOfLoad) -> Option<f64>| {
        let sample = Sample::new(all.iter().filter_map(value).collect())?;
        Some(Median::of(&sample))
    };
    let per_day = median(&|wal| Some(wal.per_day()))?;
    let data = all.first()?.data;
    let range = if all.len() > 1 {
        let [low, high] = [per_day.interval.low, per_day.interval.high].map(|end| bytes(whole(end)));
        format!(" ({low}–{high})")
    } else {
        String::new()
    };
    let measured = median(&|wal| Some(wal.bytes as f64))?.median;
    let of_time = median(&|wal| Some(wal.seconds))?.median;
    let tps = median(&|wal| Some(wal.tps()))?.median;
    let mut text = format!(
        "\nWAL of the load ({}) on {} of data\n  a day       {}{range}, at this load all day; measured: {} in {}, {tps:.0} transactions a second",
        described(load),
        bytes(data),
        bytes(whole(per_day.median)),
        bytes(whole(measured)),
        time(of_time),
    );
    let compressed: Vec<String> = [Method::Gzip, Method::Lz4, Method::Zstd]
        .into_iter()
        .filter_map(|method| {
            let ratio = median(&|wal| wal.ratio(method))?.median;
            let left = bytes(whole(per_day.median * ratio));
            Some(format!("{} to {:.0} % ({left} a day)", method.name(), ratio * 100.0))
        })
        .collect();
    let lacks = [Method::Gzip, Method::Lz4, Method::Zstd].into_iter();
    let lacks: Vec<&str> = lacks.filter(|method| all[0].ratio(*method).is_none()).map(Method::name).collect();
    let _ = write!(text, "\n  compressed  ");
    match (compressed.is_empty(), lacks.is_empty()) {
        (_, true) => text += &compressed.join(", "),
        (true, false) => text += &not_installed(&lacks),
        (false, false) => {
            let _ = write!(text, "{}; {}", compressed.join(", "), not_installed(&lacks));
        }
    }
    Some(text)
}
