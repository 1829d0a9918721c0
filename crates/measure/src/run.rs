//! The run document: request, plan, environment, observations, disturbances.
//!
//! `docs/src/format.md` explains every field; documents are tested against [`SCHEMA`].

use failure::{Class, Classified};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::figure::{Figure, FigureUnit, figures};
use crate::increment::Increment;
use crate::latencies::Latencies;
use crate::series::Series;

/// Version of the document's format. It is increased when a reader of the previous version would
/// misread the document.
pub const FORMAT_VERSION: u32 = 1;

/// JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../schema/run.schema.json");

/// One run of a measuring verb: all trials of a request, and their environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// Unique among the runs of a machine; names the file too.
    pub id: String,
    /// The verb: `fill`, …
    pub verb: String,
    /// A name that the user gave to this run and others like it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// The command line, without passwords; empty in documents of older builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Whether the run is complete.
    pub status: Status,
    /// The request after defaults were filled in; its fields are the verb's.
    pub request: serde_json::Value,
    /// The plan that followed from request and server; its fields are the verb's.
    pub plan: serde_json::Value,
    /// Machine and server of the run.
    pub environment: Environment,
    /// Repetitions, in the order in which they ran.
    pub trials: Vec<Trial>,
    /// Disturbances and limits of the results.
    pub notes: Vec<Note>,
}

/// Error of reading a run document.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRun {
    /// The text is not a run document.
    #[error("it is not a run document of pgrig ({0}): give a file that --json or pgrig runs export wrote")]
    Foreign(#[from] serde_json::Error),
    /// Another version of pgrig wrote it, in this format.
    #[error("the run document has format {0}, and this pgrig reads format {FORMAT_VERSION}: use {newer} pgrig", newer = age(*.0))]
    Format(u64),
}

fn age(format: u64) -> &'static str {
    if format > u64::from(FORMAT_VERSION) { "a newer" } else { "an older" }
}

impl Classified for UnreadableRun {
    fn class(&self) -> Class {
        match self {
            Self::Foreign(_) | Self::Format(_) => Class::Machine,
        }
    }
}

/// A run with its figures, by configuration and name.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    run: &'a Run,
    figures: BTreeMap<String, BTreeMap<String, FigureValue>>,
}

#[derive(Serialize)]
struct FigureValue {
    value: f64,
    unit: FigureUnit,
}

impl Run {
    /// The run document: all fields, and the run's [`figures()`], which follow from its trials.
    ///
    /// # Errors
    /// If the run holds a number that JSON does not have.
    pub fn document(&self) -> serde_json::Result<String> {
        let mut by_config: BTreeMap<String, BTreeMap<String, FigureValue>> = BTreeMap::new();
        for (Figure { config, name, unit }, value) in figures(self) {
            by_config.entry(config).or_default().insert(name, FigureValue { value, unit });
        }
        serde_json::to_string_pretty(&Document { run: self, figures: by_config }).map(|text| text + "\n")
    }

    /// Reads a run document.
    ///
    /// # Errors
    /// [`UnreadableRun`].
    pub fn read(text: &str) -> Result<Self, UnreadableRun> {
        let document: serde_json::Value = serde_json::from_str(text)?;
        match document["format_version"].as_u64() {
            Some(version) if version != u64::from(FORMAT_VERSION) => Err(UnreadableRun::Format(version)),
            _ => Ok(serde_json::from_value(document)?),
        }
    }
}

/// Whether a run is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Still running, or ended without recording its end (kill -9).
    Unfinished,
    /// Everything asked for was done.
    Done,
    /// The server or the machine failed.
    Failed,
    /// The user interrupted it.
    Interrupted,
}

impl Status {
    /// The name in run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One repetition: raw observations in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The configuration of the run that this repeats.
    pub config: String,
    /// Values that were observed once.
    pub observations: Vec<Observation>,
    /// Values that were observed more than once; none in documents from before there were series.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Events, oldest first; none in documents from before there were events.
    #[serde(default)]
    pub events: Vec<Event>,
    /// Distributions of values that were observed very often; none in documents from before there were any.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
    /// Counts and latencies of short times, from which the trial can be cut; only of parts of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub increments: Vec<Increment>,
}

/// A distribution of latencies, to be merged with others or asked for further percentiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Name of the quantity. Names of the observations that follow from it begin with it:
    /// `latency`, `script-1-latency`, …
    pub name: String,
    /// An HDR histogram; in the document it is base64 of the compressed V2 format, in nanoseconds.
    pub latencies: Latencies,
}

/// Something that happened in the course of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the trial began.
    pub at: f64,
    /// A phrase for people.
    pub text: String,
    /// The event for programs; its fields depend on the verb.
    pub what: serde_json::Value,
}

impl Trial {
    /// Appends an observation.
    pub fn observe(&mut self, name: &str, value: f64, unit: Unit) {
        self.observations.push(Observation { name: name.to_owned(), value, unit });
    }

    /// Adds mean, percentiles and histogram of latencies, if there are any.
    pub fn observe_latencies(&mut self, name: &str, latencies: &Latencies) {
        let (Some(mean), Some(percentiles)) = (latencies.mean(), latencies.percentiles()) else { return };
        self.observe(&format!("{name}-mean"), mean.as_secs_f64(), Unit::Seconds);
        for (percentile, latency) in percentiles.iter() {
            self.observe(&format!("{name}-{}", percentile.name()), latency.as_secs_f64(), Unit::Seconds);
        }
        self.histograms.push(Histogram { name: name.to_owned(), latencies: latencies.clone() });
    }

    /// The value observed under `name`, in its unit.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.observations.iter().find(|observation| observation.name == name).map(|found| found.value)
    }
}

/// One observed value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Name of the quantity, in the field's own words: `generate`, `heap`, …
    pub name: String,
    /// The value in `unit`.
    pub value: f64,
    /// Unit of `value`.
    pub unit: Unit,
}

/// Units of observations and series. Rates and ratios are not observed, but derived from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Wall-clock or CPU seconds, as the name says.
    Seconds,
    /// Bytes.
    Bytes,
    /// Rows.
    Rows,
    /// Blocks of the server's block size.
    Blocks,
    /// Number of the things that the name says.
    Count,
}

/// A disturbance, or a limit of a run's results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// A sentence for people.
    pub text: String,
}

/// Machine and server of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// pgrig's own version, with the commit that it was built from: `0.1.0 (commit 1f0e5a3b9c2d, dirty)`.
    pub pgrig: String,
    /// The PostgreSQL server.
    pub server: Server,
    /// The database connected to.
    pub database: String,
    /// The role connected as.
    pub role: String,
    /// Its transport: `unix socket …` or `tcp …`.
    pub transport: String,
    /// The machine that pgrig ran on.
    pub client: Machine,
    /// Whether the server is on that machine; none where it cannot be known.
    pub server_is_local: Option<bool>,
    /// The volume of the server's data directory, where it can be seen.
    pub data_volume: Option<Disk>,
}

/// A PostgreSQL server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `version()`: release, platform and compiler.
    pub version: String,
    /// `server_version_num`, for instance 180006.
    pub version_num: u32,
    /// Bytes in a block.
    pub block_size: u32,
    /// Every setting that is not at its built-in default, by name.
    pub settings: Vec<Setting>,
}

impl Server {
    /// The release without platform and compiler: `PostgreSQL 18.6`.
    pub fn release(&self) -> &str {
        self.version.split(" on ").next().unwrap_or_default()
    }
}

/// A server setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name of the setting.
    pub name: String,
    /// Its value as SHOW gives it.
    pub value: String,
    /// `pg_settings.source`: where it was set.
    pub source: String,
}

/// A machine, as its operating system describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system, release and kernel.
    pub system: String,
    /// Model of the processor.
    pub cpu: String,
    /// Number of logical processors.
    pub cores: u32,
    /// Memory in bytes.
    pub memory: u64,
}

/// A volume: a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The directory on which it is mounted.
    pub mount: String,
    /// File system type.
    pub file_system: String,
    /// Size in bytes.
    pub size: u64,
    /// Bytes free for the server when the run began.
    pub free: u64,
}
