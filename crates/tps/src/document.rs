//! The request and the results, as run documents hold them. `docs/src/format.md` explains the names.

use measure::{Event, Increment, PackedLatencies, Percentile, Percentiles, Series, Trial, Unit};
use script::Scripts;
use serde_json::{Value, json};

use crate::outcome::{Counts, KeptSecond, Measured, MeasuredCommand, MeasuredScript, Moves, Outcome, Phase};
use crate::plan::Plan;
use crate::request::{Connecting, Length, Protocol, Request};
use crate::watch::{Maintained, Period, Watched, WatchedSecond};
use server::machine;

/// Name of the configuration of a run that has only one.
pub const TPS: &str = "tps";
/// Percentiles that a document holds for each second.
const OF_A_SECOND: [Percentile; 4] = [Percentile::P50, Percentile::P95, Percentile::P99, Percentile::Max];

impl Protocol {
    /// The name in run documents and for `-M`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        }
    }
}

impl Phase {
    /// The name in run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Warmup => "warm-up",
            Self::Measured => "measured",
        }
    }
}

impl Request {
    /// The run document's `request`: everything that is needed to repeat the run.
    pub fn document(&self) -> Value {
        let scripts = self
            .sources
            .iter()
            .map(|source| json!({ "name": source.name(), "weight": source.weight(), "text": source.text() }));
        let definitions =
            self.definitions.iter().map(|given| json!({ "name": given.name(), "value": given.text() }));
        let (time, transactions) = match self.length {
            Length::Time(time) => (Some(time.as_secs_f64()), None),
            Length::Transactions(number) => (None, Some(number)),
        };
        let mut document = json!({
            "scripts": scripts.collect::<Vec<_>>(),
            "definitions": definitions.collect::<Vec<_>>(),
            "clients": self.clients,
            "jobs": self.jobs,
            "time": time,
            "transactions": transactions,
            "rate": self.rate,
            "latency_limit": self.latency_limit.map(|limit| limit.as_secs_f64()),
            "protocol": self.protocol.name(),
            "connect_each": self.connecting == Connecting::EachTransaction,
            "vacuum": self.vacuum,
            "max_tries": self.max_tries,
            "warmup": self.warmup.as_secs_f64(),
            "ramp": self.ramp.as_secs_f64(),
            "seed": self.seed,
            "scale": self.scale,
            "per_command": self.statements,
            "part": self.part.as_ref().map(|part| json!({ "number": part.number, "of": part.of, "run": part.run })),
        });
        if !self.targets.is_empty() {
            document["targets"] = json!(self.targets);
        }
        document
    }
}

impl Plan {
    /// The run document's `plan`.
    pub fn document(&self) -> Value {
        json!({ "scale": self.scale, "scripts": scripts(&self.scripts) })
    }
}

fn scripts(scripts: &Scripts) -> Vec<Value> {
    let one = |script: &script::Script| {
        let commands = script.commands().iter();
        let commands: Vec<Value> =
            commands.map(|command| json!({ "line": command.line(), "text": command.text() })).collect();
        json!({ "name": script.name(), "commands": commands })
    };
    scripts.iter().map(one).collect()
}

impl Outcome {
    /// The run document's trial of the configuration `config`.
    pub fn trial(&self, config: &str) -> Trial {
        let mut trial = Trial { config: config.to_owned(), ..Trial::default() };
        trial.observe("elapsed", self.elapsed.as_secs_f64(), Unit::Seconds);
        trial.observe("connecting", self.connecting.as_secs_f64(), Unit::Seconds);
        trial.observe("connections", self.connections as f64, Unit::Count);
        trial.observe("lost-clients", self.lost.len() as f64, Unit::Count);
        observe(&self.all, &self.scripts, &mut trial);
        observe_targets(&self.targets, &mut trial);
        if self.targets.len() > 1 {
            trial.observe("moved-clients", self.moved() as f64, Unit::Count);
        }
        trial.series = series(&self.seconds);
        trial.events = phases(&self.seconds);
        trial.events.extend(self.clock.iter().map(|reading| reading.event(self.begun)));
        trial.events.extend(self.agreed.map(|time| Event {
            at: 0.0,
            text: "all parts begin".to_owned(),
            what: json!({ "event": "begin", "time": time }),
        }));
        trial.events.extend(self.moves.iter().map(Moves::event));
        trial.increments.clone_from(&self.increments);
        trial
    }
}

/// Adds the transactions on each target, if there are several.
fn observe_targets(targets: &[u64], trial: &mut Trial) {
    if targets.len() < 2 {
        return;
    }
    for (number, succeeded) in (1..).zip(targets) {
        trial.observe(&format!("target-{number}-succeeded"), *succeeded as f64, Unit::Count);
    }
}

impl Moves {
    fn event(&self) -> Event {
        let Self { at, from, to, clients, why } = self;
        let (from, to) = (from + 1, to + 1);
        let what =
            json!({ "event": "moved", "from_target": from, "to_target": to, "clients": clients, "why": why });
        let go = if *clients == 1 { "client goes" } else { "clients go" };
        Event { at: *at, text: format!("{clients} {go} from target {from} to target {to}"), what }
    }
}

/// Adds counts and latencies of all transactions, and of each script.
fn observe(all: &Measured, scripts: &[MeasuredScript], trial: &mut Trial) {
    all.observe(trial, "");
    for (number, script) in (1..).zip(scripts) {
        let prefix = format!("script-{number}-");
        // Of a single script all has been said.
        if scripts.len() > 1 {
            script.measured.observe(trial, &prefix);
        }
        script.observe_commands(trial, &prefix);
    }
}

/// Counts and latencies of a short time, with the same names as those of the whole trial.
pub(crate) fn increment(scripts: &[MeasuredScript], targets: &[u64], from: f64, until: f64) -> Increment {
    let (mut all, mut names) = (Measured::default(), Trial::default());
    for script in scripts {
        all += &script.measured;
    }
    observe(&all, scripts, &mut names);
    observe_targets(targets, &mut names);
    let counts = names.observations.into_iter().filter(|one| one.unit == Unit::Count && one.value > 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let counts = counts.map(|one| (one.name, one.value as u64)).collect();
    let histograms =
        names.histograms.into_iter().map(|one| (one.name, PackedLatencies::from(&one.latencies)));
    Increment { from, until, counts, histograms: histograms.collect() }
}

impl Watched {
    /// Adds the observations to the trial of `outcome`. The trial's times count from the first
    /// transaction.
    pub fn observe(&self, outcome: &Outcome, trial: &mut Trial) {
        let first = outcome.seconds.iter().find(|second| second.phase == Phase::Measured);
        let began = first.map_or(0.0, |first| first.at - first.length).max(0.0);
        for (wait, share) in &self.waits {
            let samples = (share * self.wait_samples as f64).round();
            trial.observe(&format!("wait-{wait}"), samples, Unit::Count);
        }
        trial.observe("wait-samples", self.wait_samples as f64, Unit::Count);
        let mut observe = |name: &str, value: Option<f64>, unit: Unit| {
            if let Some(value) = value {
                trial.observe(name, value, unit);
            }
        };
        observe("wal", self.wal.map(|wal| wal as f64), Unit::Bytes);
        observe("client-cpu", self.used.map(|used| used.own), Unit::Seconds);
        let length: f64 = self.seconds.iter().map(|second| second.length).sum();
        let processors = self.used.and_then(|used| used.processors);
        let all = length * f64::from(machine::cores());
        // The sum of the series below: ticks of the processors need not be as many in each second.
        let busy = || self.seconds.iter().filter_map(WatchedSecond::busy).sum();
        observe("machine-busy", processors.map(|_| busy()), Unit::Seconds);
        observe("machine-waiting", processors.map(|used| used.waiting * all), Unit::Seconds);
        observe("machine-stolen", processors.map(|used| used.stolen * all), Unit::Seconds);
        let disk = self.used.and_then(|used| used.disk);
        observe("disk-busy", disk.map(|used| used.busy * length), Unit::Seconds);
        observe("disk-reads", disk.map(|used| used.reads as f64), Unit::Count);
        observe("disk-read", disk.map(|used| used.read as f64), Unit::Bytes);
        observe("disk-writes", disk.map(|used| used.writes as f64), Unit::Count);
        observe("disk-written", disk.map(|used| used.written as f64), Unit::Bytes);
        trial.series.extend(self.series(began));
        trial.events.extend(self.events(began));
        trial.events.sort_by(|one, other| one.at.total_cmp(&other.at));
    }

    /// Observations of each second as series.
    fn series(&self, began: f64) -> impl Iterator<Item = Series> {
        let series = |name: &str, unit: Unit, of: fn(&WatchedSecond) -> Option<f64>| {
            let mut series = Series::new(name, Unit::Seconds, unit);
            let point = |second: &WatchedSecond| Some((began + second.at, of(second)?));
            series.points = self.seconds.iter().filter_map(point).collect();
            series
        };
        let all = [
            series("wal", Unit::Bytes, |second| second.wal.map(|wal| wal as f64)),
            series("client-cpu", Unit::Seconds, |second| Some(second.used.own)),
            series("machine-busy", Unit::Seconds, WatchedSecond::busy),
            series("disk-read", Unit::Bytes, |second| second.used.disk.map(|used| used.read as f64)),
            series("disk-written", Unit::Bytes, |second| second.used.disk.map(|used| used.written as f64)),
            series("other-sessions", Unit::Count, |second| second.others.map(|others| others as f64)),
        ];
        let counts = |name: String, points: &[(f64, u64)]| {
            let mut series = Series::new(&name, Unit::Seconds, Unit::Count);
            series.points = points.iter().map(|(at, count)| (began + at, *count as f64)).collect();
            series
        };
        let waits = &self.waits_over_time;
        let looks = counts("wait-looks".to_owned(), &waits.looks);
        let events = waits.events.iter().map(move |(event, points)| counts(format!("wait-{event}"), points));
        all.into_iter()
            .chain([looks])
            .filter(|series| !series.points.is_empty())
            .chain(events.collect::<Vec<_>>())
    }

    /// Events, with their offsets from the beginning.
    fn events(&self, began: f64) -> Vec<Event> {
        let event = |period: &Period, text: String, mut what: Value| {
            what["from"] = json!(began + period.from);
            what["until"] = json!(period.until.map(|until| began + until));
            Event { at: (began + period.from).max(0.0), text, what }
        };
        let checkpoints = self
            .checkpoints
            .iter()
            .map(|period| event(period, "a checkpoint".to_owned(), json!({ "event": "checkpoint" })));
        let maintenance = self.maintenance.iter().flat_map(|maintained| {
            let Maintained { who, relation, periods } = maintained;
            periods.iter().map(move |period| {
                let what = json!({ "event": "maintenance", "who": who, "relation": relation });
                event(period, format!("{who} runs on {relation}"), what)
            })
        });
        checkpoints.chain(maintenance).collect()
    }
}

impl Measured {
    fn observe(&self, trial: &mut Trial, prefix: &str) {
        let Counts { succeeded, failed, skipped, retried, retries, late } = self.counts;
        for (name, number) in [
            ("succeeded", succeeded),
            ("failed-serialization", failed.serialization),
            ("failed-deadlock", failed.deadlock),
            ("failed-other", failed.other),
            ("skipped", skipped),
            ("retried", retried),
            ("retries", retries),
            ("late", late),
        ] {
            trial.observe(&format!("{prefix}{name}"), number as f64, Unit::Count);
        }
        trial.observe_latencies(&format!("{prefix}latency"), &self.latency);
        trial.observe_latencies(&format!("{prefix}lag"), &self.lag);
    }
}

impl MeasuredScript {
    fn observe_commands(&self, trial: &mut Trial, prefix: &str) {
        for (number, command) in (1..).zip(&self.commands) {
            let MeasuredCommand { latency, failures, retries } = command;
            let name = |what: &str| format!("{prefix}command-{number}-{what}");
            trial.observe(&name("failures"), *failures as f64, Unit::Count);
            trial.observe(&name("retries"), *retries as f64, Unit::Count);
            trial.observe_latencies(&name("latency"), latency);
        }
    }
}

/// Number and latencies of transactions for each second, as series.
fn series(seconds: &[KeptSecond]) -> Vec<Series> {
    let count = |name: &str, of: fn(&Counts) -> u64| {
        let mut series = Series::new(name, Unit::Seconds, Unit::Count);
        series.points = seconds.iter().map(|second| (second.at, of(&second.counts) as f64)).collect();
        series
    };
    let counts = [
        count("succeeded", |counts| counts.succeeded),
        count("failed", Counts::all_failed),
        count("skipped", |counts| counts.skipped),
        count("retries", |counts| counts.retries),
        count("late", |counts| counts.late),
    ];
    // Series that are zero throughout are left out.
    let counts = counts
        .into_iter()
        .enumerate()
        .filter(|(index, series)| *index == 0 || series.points.iter().any(|(_, number)| *number > 0.0));
    let latency = OF_A_SECOND.map(|at| percentiles(seconds, "latency", at, |second| second.latency.as_ref()));
    let lag = OF_A_SECOND.map(|at| percentiles(seconds, "lag", at, |second| second.lag.as_ref()));
    let times = latency.into_iter().chain(lag).filter(|series| !series.points.is_empty());
    counts.map(|(_, series)| series).chain(times).collect()
}

fn percentiles(
    seconds: &[KeptSecond],
    name: &str,
    percentile: Percentile,
    of: fn(&KeptSecond) -> Option<&Percentiles>,
) -> Series {
    let mut series = Series::new(&format!("{name}-{}", percentile.name()), Unit::Seconds, Unit::Seconds);
    let point = |second: &KeptSecond| Some((second.at, of(second)?.get(percentile).as_secs_f64()));
    series.points = seconds.iter().filter_map(point).collect();
    series
}

/// Start of each part of the run.
fn phases(seconds: &[KeptSecond]) -> Vec<Event> {
    let runs = seconds.chunk_by(|one, other| one.phase == other.phase);
    let begun = runs.filter_map(|run| run.first()).map(|first| Event {
        at: (first.at - first.length).max(0.0),
        text: match first.phase {
            Phase::Ramp => "clients start one after the other".to_owned(),
            Phase::Warmup => "all clients run; nothing is counted yet".to_owned(),
            Phase::Measured => "counting begins".to_owned(),
        },
        what: json!({ "event": "phase", "phase": first.phase.name() }),
    });
    begun.collect()
}
