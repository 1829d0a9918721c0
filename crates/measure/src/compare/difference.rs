//! Differences between two runs besides their figures.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::run::{Environment, Run, Setting, Status};

/// Something that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name: `server version`, `setting wal_level`, `request.size`, …
    pub what: String,
    /// The baseline's value.
    pub baseline: String,
    /// The candidate's value.
    pub candidate: String,
    /// Whether it makes the runs incomparable: it alone may cause a difference of the results.
    pub hinders: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.baseline == self.candidate {
            return write!(f, "{}: both {}", self.what, self.baseline);
        }
        write!(f, "{}: {} → {}", self.what, self.baseline, self.candidate)
    }
}

/// Parts of a request that do not change the work: the number of repetitions, the judgement, random
/// seeds, the place of tables and whether they are kept, backups beside the timed ones, and the price of
/// a backup.
const SAME_WORK: [&str; 12] = [
    "trials",
    "seed",
    "schema",
    "keep",
    "memory",
    "budget",
    "threshold",
    "fail_if",
    "anyway",
    "network",
    "rto",
    "price",
];
/// The part of a request of `backup` that is the load. It comes after the backups, unless one of them is
/// recovered under it.
const LOAD: &str = "request.load.";
/// The observation of a backup that was recovered under the load.
const RECOVERED: &str = "replayed";
/// Parts of a plan that follow from the earlier state of the server, are random, or repeat other
/// parts in words.
const NO_PLAN: [&str; 12] = [
    "merged",
    "missing",
    "rounds",
    "request",
    "reasons",
    "predicted",
    "needed",
    "memory",
    "network",
    "dropped",
    "dropped_bytes",
    "create_schema",
];
/// Settings that name a server or its place, and do not change how it works.
const PLACES: [&str; 12] = [
    "application_name",
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_directory",
    "log_filename",
    "port",
    "unix_socket_directories",
];
/// The setting that pgrig itself chooses for its own server: off if the server runs for one command, on if `pgrig server
/// start` keeps it running. It does not change how the server works.
const LIFETIME: &str = "restart_after_crash";
/// The part of a request that says whether the user chose the seed of random numbers; `tps` has it.
const SEED_CHOSEN: &str = "seed_chosen";
/// Share by which the memory of the same machine may differ after a reboot.
const SAME_MEMORY: f64 = 0.01;
/// Share by which settings that are sizes of memory or disk may differ: some are chosen by the free
/// space.
const SAME_SIZE: f64 = 0.1;
/// Sizes that differ by no more than this share are not reported.
const EQUAL_SIZE: f64 = 0.01;

/// All differences, the most important first.
pub fn differences(baseline: &Run, candidate: &Run) -> Vec<Difference> {
    let mut found = Differences::default();
    found.look("verb", &baseline.verb, &candidate.verb, true);
    if baseline.verb == candidate.verb {
        let requests = in_words(requests(baseline, candidate));
        let is_after_work = baseline.verb == "backup" && ![baseline, candidate].into_iter().any(recovers);
        found.json("request", [&requests[0], &requests[1]], |path| {
            let name = path.rsplit('.').next().unwrap_or_default();
            let is_load = is_after_work && path.starts_with(LOAD);
            !is_load && !SAME_WORK.contains(&name)
        });
    }
    let [then, now] = [baseline, candidate].map(|run| run.status);
    if [then, now] != [Status::Done; 2] {
        // Even if both are the same: something is missing from each.
        let what = "status".to_owned();
        let [baseline, candidate] = [then, now].map(|status| status.name().to_owned());
        found.0.push(Difference { what, baseline, candidate, hinders: true });
    }
    found.environment(&baseline.environment, &candidate.environment);
    if baseline.verb == candidate.verb {
        let known = |run: &Run| match &run.plan {
            Value::Object(fields) => {
                // The request has the texts of the scripts.
                let is_repeated = |name: &str| run.verb == "tps" && name == SCRIPTS;
                let kept =
                    fields.iter().filter(|(name, _)| !NO_PLAN.contains(&name.as_str()) && !is_repeated(name));
                let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
                Value::Object(if run.verb == "micro" { without_rows(kept) } else { kept })
            }
            other => other.clone(),
        };
        found.json("plan", [&known(baseline), &known(candidate)], |_| false);
    }
    found.0
}

/// Whether backups were recovered under a load.
fn recovers(run: &Run) -> bool {
    run.trials.iter().any(|trial| trial.value(RECOVERED).is_some())
}

/// A plan of `micro` without the number of rows that pgrig chose, which is also in the statements of the arms, and the
/// times that it follows from. Of an arm, the shape is left.
fn without_rows(mut plan: Map<String, Value>) -> Map<String, Value> {
    for name in ["rows", "fixed", "notes"] {
        plan.remove(name);
    }
    if let Some(Value::Array(arms)) = plan.get("arms") {
        let shape = |arm: &Value| (text(&arm["name"]), arm["shape"].clone());
        let shapes = arms.iter().map(shape).collect();
        plan.insert("arms".to_owned(), Value::Object(shapes));
    }
    plan
}

/// The field of a request, and of a plan, with the scripts of `tps`.
const SCRIPTS: &str = "scripts";

/// The requests of both runs, with the names of different scripts instead of their texts.
fn in_words(mut requests: [Value; 2]) -> [Value; 2] {
    let [then, now] = [0, 1].map(|side: usize| requests[side][SCRIPTS].as_array().cloned());
    let (Some(then), Some(now)) = (then, now) else { return requests };
    if then != now {
        let [then, now] = [then, now].map(|scripts| names(&scripts));
        let other = if then == now { " with another text" } else { "" };
        requests[1][SCRIPTS] = format!("{now}{other}").into();
        requests[0][SCRIPTS] = then.into();
    }
    requests
}

/// The names of scripts with their weights, as options give them: `a.sql@9, b.sql`.
fn names(scripts: &[Value]) -> String {
    let name = |script: &Value| {
        let weight = script["weight"].as_u64().filter(|weight| *weight != 1);
        text(&script["name"]) + &weight.map_or(String::new(), |weight| format!("@{weight}"))
    };
    scripts.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The requests of both runs, without a random seed that the user did not choose, and with the number of targets instead of
/// their names.
fn requests(baseline: &Run, candidate: &Run) -> [Value; 2] {
    let is_chosen = |run: &Run| run.request[SEED_CHOSEN].as_bool().unwrap_or(run.verb != "tps");
    let is_either_chosen = is_chosen(baseline) || is_chosen(candidate);
    [baseline, candidate].map(|run| {
        let mut request = run.request.clone();
        if let Value::Object(fields) = &mut request {
            fields.remove(SEED_CHOSEN);
            if let Some(targets) = fields.get_mut("targets")
                && let Some(number) = targets.as_array().map(Vec::len)
            {
                *targets = number.into();
            }
            if !is_either_chosen {
                fields.remove("seed");
            }
        }
        request
    })
}

/// Settings that differ, by name; one that is at its built-in default is `default`. Without the one that only says for how
/// long pgrig's own server runs.
pub fn differing_settings(then: &[Setting], now: &[Setting]) -> Vec<Difference> {
    let by_name = |settings: &[Setting]| -> BTreeMap<String, String> {
        let compared = settings.iter().filter(|setting| setting.name != LIFETIME);
        compared.map(|setting| (setting.name.clone(), setting.value.clone())).collect()
    };
    let mut found = Differences::default();
    found.each([by_name(then), by_name(now)], "default", |name, values| {
        (format!("setting {name}"), !PLACES.contains(&name) && !are_like_sizes(values, SAME_SIZE))
    });
    found.0.retain(|difference| !are_like_sizes([&difference.baseline, &difference.candidate], EQUAL_SIZE));
    found.0
}

/// Whether both are sizes as SHOW prints them, and differ by at most this share.
fn are_like_sizes([then, now]: [&str; 2], share: f64) -> bool {
    let (Some(then), Some(now)) = (size(then), size(now)) else { return false };
    (then - now).abs() <= share * then
}

fn size(value: &str) -> Option<f64> {
    let units = [("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40)];
    let (number, power) = units.iter().find_map(|(unit, power)| Some((value.strip_suffix(unit)?, *power)))?;
    Some(number.parse::<f64>().ok()? * f64::powi(2.0, power))
}

#[derive(Default)]
struct Differences(Vec<Difference>);

impl Differences {
    fn look(&mut self, what: &str, then: &str, now: &str, hinders: bool) {
        if then != now {
            let (baseline, candidate) = (then.to_owned(), now.to_owned());
            self.0.push(Difference { what: what.to_owned(), baseline, candidate, hinders });
        }
    }

    fn environment(&mut self, then: &Environment, now: &Environment) {
        let (server, now_server) = (&then.server, &now.server);
        if server.version_num == now_server.version_num {
            self.look("server build", &server.version, &now_server.version, false);
        } else {
            self.look("server version", server.release(), now_server.release(), true);
        }
        self.look("block size", &server.block_size.to_string(), &now_server.block_size.to_string(), true);
        self.0.extend(differing_settings(&server.settings, &now_server.settings));
        let (machine, now_machine) = (&then.client, &now.client);
        self.look("operating system", &machine.system, &now_machine.system, true);
        self.look("processor", &machine.cpu, &now_machine.cpu, true);
        self.look("processors", &machine.cores.to_string(), &now_machine.cores.to_string(), true);
        if machine.memory.abs_diff(now_machine.memory) as f64 > machine.memory as f64 * SAME_MEMORY {
            self.look("memory", &machine.memory.to_string(), &now_machine.memory.to_string(), true);
        }
        let place = |environment: &Environment| match environment.server_is_local {
            Some(true) => "on the client's machine",
            Some(false) => "on another machine",
            None => "not known",
        };
        self.look("location of the server", place(then), place(now), true);
        if let (Some(disk), Some(now_disk)) = (&then.data_volume, &now.data_volume) {
            let volume = |disk: &crate::run::Disk| format!("{} of {} bytes", disk.file_system, disk.size);
            self.look("data volume", &volume(disk), &volume(now_disk), true);
        }
        self.look("transport", kind(&then.transport), kind(&now.transport), true);
        self.look("database", &then.database, &now.database, false);
        self.look("role", &then.role, &now.role, false);
        self.look("pgrig", &then.pgrig, &now.pgrig, false);
    }

    /// Compares two JSON values leaf by leaf; `hinders` is called with the path of a leaf.
    fn json(&mut self, root: &str, values: [&Value; 2], hinders: impl Fn(&str) -> bool) {
        let leaves = values.map(|value| {
            let mut all = BTreeMap::new();
            leaves(root, value, &mut all);
            all
        });
        self.each(leaves, "absent", |path, _| (path.to_owned(), hinders(path)));
    }

    fn each(
        &mut self,
        [then, now]: [BTreeMap<String, String>; 2],
        missing: &str,
        describe: impl Fn(&str, [&str; 2]) -> (String, bool),
    ) {
        let mut names: Vec<&String> = then.keys().chain(now.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let [then, now] = [&then, &now].map(|all| all.get(name).map_or(missing, String::as_str));
            let (what, hinders) = describe(name, [then, now]);
            self.look(&what, then, now, hinders);
        }
    }
}

/// The kind of a transport: the path of a Unix socket does not matter, a host does.
fn kind(transport: &str) -> &str {
    if transport.starts_with("unix socket") { "a unix socket" } else { transport }
}

fn leaves(path: &str, value: &Value, all: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(&format!("{path}.{name}"), value, all);
            }
        }
        Value::Null => {}
        value => {
            all.insert(path.to_owned(), text(value));
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
