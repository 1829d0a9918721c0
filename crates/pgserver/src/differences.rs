//! The properties in which a running server differs from those that are asked for, and the command that starts one with them.

use std::path::{Path, PathBuf};

use crate::account::Account;
use crate::files::shell_quoted;
use crate::instance::{Instance, Spec, major_of};
use crate::record::{Config, Source};
use crate::{Binaries, Error, Result, setting_name};

/// Settings that are asked for and that the server does not have: each with its value there, if it was started with one.
type Differing<'a> = Vec<(&'a String, Option<&'a String>, &'a String)>;

impl Instance {
    /// Whether a running server fulfils the request.
    pub(crate) fn check_same(&self, runs: &Config) -> Result<()> {
        let spec = &self.spec;
        let (difference, is_given) = if let Some((property, difference)) = self.property(runs)? {
            (difference, !spec.defaults.contains(&property))
        } else {
            let differing = self.differing(runs)?;
            if differing.is_empty() {
                return Ok(());
            }
            let is_given = differing.iter().any(|(name, ..)| !spec.defaults.contains(&name.as_str()));
            (in_words(&differing), is_given)
        };
        let start = start_command(spec, Some(runs));
        Err(Error::RunsDifferently { instance: spec.name.clone(), difference, is_given, start })
    }

    /// The first property that differs, but for settings, as a predicate of the instance.
    fn property(&self, runs: &Config) -> Result<Option<(&'static str, String)>> {
        let spec = &self.spec;
        if let Some(asked) = spec.profile.filter(|profile| *profile != runs.profile) {
            let (runs, asked) = (format!("profile {}", runs.profile), format!("profile {asked}"));
            return Ok(Some(("profile", with(&runs, &asked))));
        }
        if let Some(asked) = spec.tcp.filter(|tcp| *tcp != runs.tcp) {
            let word = |tcp: bool| if tcp { "TCP" } else { "the socket only" };
            return Ok(Some(("tcp", with(word(runs.tcp), word(asked)))));
        }
        if let Some(dir) = &spec.pg_bin {
            let asked = Binaries::installed(dir)?;
            if runs.binaries != Source::Installed(asked.dir().to_owned()) {
                let runs = format!("PostgreSQL {} from another directory", runs.version);
                let asked = format!("the one in {}", asked.dir().display());
                return Ok(Some(("pg_bin", with(&runs, &asked))));
            }
        }
        Ok(None)
    }

    /// The settings whose values differ. A value that the server has anyway is the same, however it is written.
    fn differing<'a>(&'a self, runs: &'a Config) -> Result<Differing<'a>> {
        let mut differing = Vec::new();
        for (name, value) in &self.spec.set {
            let same = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
            let has = runs.set.iter().rfind(same).map(|(_, value)| value);
            if has == Some(value) {
                continue;
            }
            let server = self.server(runs).ok();
            if server.as_ref().is_some_and(|server| server.is_unknown(name)) {
                let problem = "the server has no setting of this name".to_owned();
                return Err(Error::InvalidSetting { name: name.clone(), problem });
            }
            if !server.is_some_and(|server| server.has(name, value)) {
                differing.push((name, has, value));
            }
        }
        Ok(differing)
    }

    /// The programs of its server, and its data.
    fn server(&self, runs: &Config) -> Result<Server> {
        let dir = match &runs.binaries {
            Source::Installed(dir) => dir.clone(),
            Source::Fetched(number) => self.home.version_dir(major_of(*number)?),
        };
        let (postgres, data) = (Binaries::installed(&dir)?.program("postgres"), self.data());
        let account = Account::of_data(&data)?;
        Ok(Server { postgres, data, account })
    }
}

/// See [`Instance::server`].
struct Server {
    postgres: PathBuf,
    data: PathBuf,
    account: Account,
}

impl Server {
    fn is_unknown(&self, name: &str) -> bool {
        setting_name::is_unknown(&self.postgres, &self.data, name, &self.account)
    }

    /// Whether a setting has this value.
    fn has(&self, name: &str, value: &str) -> bool {
        let of =
            |set: Option<&str>| setting_name::value(&self.postgres, &self.data, (name, set), &self.account);
        of(None).is_some_and(|has| of(Some(value)) == Some(has))
    }
}

fn with(runs: &str, asked: &str) -> String {
    format!("runs with {runs}, not with {asked}")
}

/// The settings that differ, as a predicate of the instance.
fn in_words(differing: &Differing<'_>) -> String {
    let other = differing.iter().filter_map(|(name, has, value)| {
        let has = has.as_ref()?;
        Some(with(&format!("{name} = {has}"), &format!("{name} = {value}")))
    });
    let lacking = differing.iter().filter(|(_, has, _)| has.is_none());
    let lacking: Vec<String> = lacking.map(|(name, _, value)| format!("--set {name}={value}")).collect();
    let mut parts: Vec<String> = other.collect();
    if !lacking.is_empty() {
        parts.push(format!("was started without {}", lacking.join(" and ")));
    }
    parts.join(", and ")
}

/// The command that starts the server with the properties that are asked for, and with the other settings with which it runs.
pub(crate) fn start_command(spec: &Spec, runs: Option<&Config>) -> String {
    let mut words = vec![start_of(&spec.name)];
    words.extend(spec.pg_bin.as_ref().map(|dir| format!("--pg-bin {}", shell_quoted(dir))));
    words.extend(spec.profile.map(|profile| format!("--profile {profile}")));
    words.extend((spec.tcp == Some(true)).then(|| "--tcp".to_owned()));
    let is_asked = |name: &str| spec.set.iter().any(|(asked, _)| asked.eq_ignore_ascii_case(name));
    let others = runs.iter().flat_map(|runs| &runs.set).filter(|(name, _)| !is_asked(name));
    // The name needs no quotes, nor does the sign after it.
    let set = |(name, value): &(String, String)| format!("--set {name}={}", shell_quoted(Path::new(value)));
    words.extend(others.chain(&spec.set).map(set));
    words.join(" ")
}

/// The command that starts the server of an instance as it is.
pub(crate) fn start_of(instance: &str) -> String {
    let named = if instance == "default" { String::new() } else { format!(" --instance {instance}") };
    format!("pgrig server start{named}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Version};

    fn set(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_command_has_all_that_is_asked_for() {
        assert_eq!(start_command(&Spec::default(), None), "pgrig server start");
        let spec = Spec {
            name: "k".to_owned(),
            profile: Some(Profile::Stock),
            set: set(&[("wal_level", "replica"), ("search_path", "a, b")]),
            ..Spec::default()
        };
        let command = "pgrig server start --instance k --profile stock";
        let asked = "--set wal_level=replica --set search_path='a, b'";
        assert_eq!(start_command(&spec, None), format!("{command} {asked}"));
        let runs = Config {
            set: set(&[("jit", "off"), ("WAL_LEVEL", "logical")]),
            ..Config::default_for(Version::try_from("18".to_owned()).unwrap())
        };
        assert_eq!(start_command(&spec, Some(&runs)), format!("{command} --set jit=off {asked}"));
    }

    #[test]
    fn all_settings_that_differ_are_named() {
        let [a, b, c, one, two] = ["a", "b", "c", "1", "2"].map(str::to_owned);
        let differing = vec![(&a, None, &one), (&b, Some(&one), &two), (&c, None, &two)];
        let words = "runs with b = 1, not with b = 2, and was started without --set a=1 and --set c=2";
        assert_eq!(in_words(&differing), words);
    }
}
