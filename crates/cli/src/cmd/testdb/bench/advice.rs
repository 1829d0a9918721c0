//! The recommended variant, with the commands that make its databases, and its risks.

use server::quote::shell_word;
use server::settings::ServerRef;
use testdb::bench::{Advice, Means, Variant};

use crate::app::target::Chosen;
use crate::cmd::testdb::args::BenchArgs;
use crate::cmd::testdb::bench::original;
use crate::cmd::testdb::bench::results::Results;

/// The recommendation, the commands for it, and its risks.
pub(crate) fn shown(results: &Results, arguments: &BenchArgs, chosen: &Chosen) -> String {
    match results.advice() {
        Advice::Nothing => {
            "no variant is faster than normal: the database is probably not the bottleneck of the suite"
                .to_owned()
        }
        Advice::NothingElse => "no variant that completed is faster than normal".to_owned(),
        Advice::Unknown => "no recommendation: only normal completed".to_owned(),
        Advice::Unsure => format!(
            "no variant is proved faster, but some may be: give --rounds {}",
            (results.plan.rounds.len() * 2).max(12)
        ),
        Advice::Use(variant) => used(variant, arguments, chosen) + &costs(variant),
    }
}

/// The recommended variant, with its commands.
fn used(variant: Variant, arguments: &BenchArgs, chosen: &Chosen) -> String {
    let embedded = &arguments.server.address.embedded;
    let place = chosen.place();
    let server = match &place {
        ServerRef::Named(recipe) => format!(" -d {}", shell_word(recipe)),
        // The environment may name another one.
        ServerRef::Own(_) if embedded.any() => instance(embedded.instance.as_deref().unwrap_or("default")),
        ServerRef::Own(_) => String::new(),
    };
    let release = match (&embedded.pg_version, &embedded.pg_bin) {
        (Some(major), _) => format!(" --pg-version {major}"),
        (None, Some(directory)) => format!(" --pg-bin {}", shell_word(&directory.display().to_string())),
        (None, None) => String::new(),
    };
    let script = arguments.script().map(|script| shell_word(&script.display().to_string()));
    let from = match (&script, original(arguments, chosen), &place) {
        (Some(script), _, _) => From::Script(script),
        (None, None, _) => From::Nothing,
        (None, Some(name), ServerRef::Named(_)) => From::Database(name),
        (None, Some(name), ServerRef::Own(instance)) => From::OwnDatabase { name, instance },
    };
    // Without a dump, for example, the rest is of no use.
    let commands = commands(variant, from, &server, &release).join(" && ");
    format!("use {variant}: {}", in_build(commands, cfg!(feature = "serve")))
}

/// The commands, with a remedy if this build of pgrig does not have all of them.
fn in_build(commands: String, can_serve: bool) -> String {
    if can_serve || !commands.contains("pgrig testdb new") {
        return commands;
    }
    commands + " (this pgrig has no testdb new: build it with the feature serve)"
}

/// Source of the databases.
#[derive(Clone, Copy)]
enum From<'a> {
    Nothing,
    /// A file, quoted for a shell.
    Script(&'a str),
    /// A database of the measured server.
    Database(&'a str),
    /// A database of an instance of pgrig's own.
    OwnDatabase {
        name: &'a str,
        instance: &'a str,
    },
}

/// The commands that make databases of this variant. `server` is the option that names the measured
/// server, or empty; `release` has the options for a server like it.
fn commands(variant: Variant, from: From<'_>, server: &str, release: &str) -> Vec<String> {
    let profile = if variant.has(Means::Dangerous) { "dangerous" } else { "stock" };
    if !variant.has(Means::Tmpfs) && !variant.has(Means::Dangerous) {
        return databases(variant, from, server);
    }
    // A server that is dangerous or in memory is one for tests alone, and pgrig's own.
    let mut commands = Vec::new();
    match from {
        From::Database(_) => {
            commands.push(format!("pg_dump --no-owner --no-privileges{server} -f dump.sql"));
        }
        From::OwnDatabase { name, instance } => {
            // After the bench, the instance may be stopped.
            commands.push(format!("pgrig server start --instance {instance}"));
            let url = format!("\"$(pgrig server url --instance {instance} {})\"", shell_word(name));
            commands.push(format!("pg_dump --no-owner --no-privileges -d {url} -f dump.sql"));
        }
        From::Nothing | From::Script(_) => {}
    }
    if variant.has(Means::Tmpfs) {
        commands.push("export PGRIG_HOME=/dev/shm/pgrig".to_owned());
    }
    let server = instance(&format!("testdb-{profile}"));
    commands.push(format!("pgrig server start{server} --profile {profile}{release}"));
    let from = match from {
        From::Database(_) | From::OwnDatabase { .. } => From::Script("dump.sql"),
        From::Nothing | From::Script(_) => from,
    };
    commands.extend(databases(variant, from, &server));
    if let From::Script(_) = from
        && !variant.has(Means::Template)
    {
        // One to load the script into.
        commands.extend(databases(variant, From::Nothing, &server));
    }
    commands
}

/// The commands for databases on the measured server.
fn databases(variant: Variant, from: From<'_>, server: &str) -> Vec<String> {
    let [is_template, is_unlogged] = [Means::Template, Means::Unlogged].map(|means| variant.has(means));
    let new_on = |what: &str, server: &str| format!("eval \"$(pgrig testdb new{what}{server})\"");
    let new = |what: &str| new_on(what, server);
    match from {
        From::Nothing => vec![new("")],
        From::Script(script) if is_template => {
            vec![new(&format!(" --from {script}{}", if is_unlogged { " --unlogged" } else { "" }))]
        }
        // Of a dump, so no server is named.
        From::Script(script) => {
            let unlog = format!("pgrig testdb unlog {script} -o unlogged.sql");
            Vec::from_iter(is_unlogged.then_some(unlog))
        }
        From::Database(name) => {
            let unlog = is_unlogged.then(|| format!("pgrig testdb unlog{server}"));
            let template = is_template.then(|| new(&format!(" --template {}", shell_word(name))));
            unlog.into_iter().chain(template).collect()
        }
        From::OwnDatabase { name, instance: own } => {
            let (name, server) = (shell_word(name), instance(own));
            let unlog = is_unlogged.then(|| format!("pgrig testdb unlog -d {name}{server}"));
            let template = is_template.then(|| new_on(&format!(" --template {name}"), &server));
            unlog.into_iter().chain(template).collect()
        }
    }
}

fn instance(name: &str) -> String {
    format!(" --instance {name}")
}

/// The effects of a crash on the variant, as a line after its commands; empty if a crash costs no data.
fn costs(variant: Variant) -> String {
    let costs = [
        (Means::Unlogged, "unlogged tables are empty after a crash of the server"),
        (Means::Tmpfs, "a restart of the machine destroys data in memory"),
        (Means::Dangerous, "with dangerous settings a crash of the machine may destroy the whole cluster"),
    ];
    let costs: Vec<&str> =
        costs.into_iter().filter(|(means, _)| variant.has(*means)).map(|(_, cost)| cost).collect();
    if costs.is_empty() {
        return String::new();
    }
    format!("\nuse {variant} only for data that you can create again: {}", costs.join("; "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::app::args::ServerAction;
    use crate::cmd::line::{Cli, Verb};
    use crate::cmd::testdb::args::TestdbAction;
    #[cfg(feature = "serve")]
    use crate::cmd::testdb::lend::args::LendAction;

    fn typed(variant: &str, from: From<'_>, server: &str) -> String {
        commands(variant.parse().unwrap(), from, server, " --pg-version 15").join(" && ")
    }

    #[test]
    fn commands_are_for_where_databases_come_from() {
        let script = From::Script("'my schema.sql'");
        assert_eq!(typed("template", script, ""), "eval \"$(pgrig testdb new --from 'my schema.sql')\"");
        assert_eq!(
            typed("unlogged+template", script, " -d x"),
            "eval \"$(pgrig testdb new --from 'my schema.sql' --unlogged -d x)\""
        );
        assert_eq!(typed("unlogged", script, ""), "pgrig testdb unlog 'my schema.sql' -o unlogged.sql");
        assert_eq!(
            typed("dangerous+template+tmpfs", script, " -d x"),
            "export PGRIG_HOME=/dev/shm/pgrig && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --from 'my schema.sql' --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("unlogged+template", From::Database("shop"), " -d host=db"),
            "pgrig testdb unlog -d host=db && eval \"$(pgrig testdb new --template shop -d host=db)\""
        );
        let own = From::OwnDatabase { name: "my shop", instance: "mine" };
        assert_eq!(
            typed("unlogged+template", own, ""),
            "pgrig testdb unlog -d 'my shop' --instance mine && \
             eval \"$(pgrig testdb new --template 'my shop' --instance mine)\""
        );
        assert_eq!(
            typed("dangerous+template", own, ""),
            "pgrig server start --instance mine && pg_dump --no-owner --no-privileges \
             -d \"$(pgrig server url --instance mine 'my shop')\" -f dump.sql && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --from dump.sql --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("dangerous", From::Nothing, ""),
            "pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             eval \"$(pgrig testdb new --instance testdb-dangerous)\""
        );
        assert_eq!(
            typed("unlogged+dangerous", From::Database("shop"), " -d host=db"),
            "pg_dump --no-owner --no-privileges -d host=db -f dump.sql && \
             pgrig server start --instance testdb-dangerous --profile dangerous --pg-version 15 && \
             pgrig testdb unlog dump.sql -o unlogged.sql && eval \"$(pgrig testdb new --instance testdb-dangerous)\""
        );
        assert_eq!(shell_word("host=db dbname=it's"), r"'host=db dbname=it'\''s'");
    }

    #[test]
    fn a_build_without_lending_names_the_feature_that_a_command_needs() {
        let unlog = typed("unlogged", From::Script("a.sql"), "");
        assert_eq!(in_build(unlog.clone(), false), unlog);
        let new = typed("template", From::Script("a.sql"), "");
        assert_eq!(in_build(new.clone(), true), new);
        assert!(in_build(new, false).ends_with("build it with the feature serve)"));
    }

    /// As a shell splits it.
    fn words(command: &str) -> Vec<String> {
        let command =
            command.strip_prefix("eval \"$(").and_then(|rest| rest.strip_suffix(")\"")).unwrap_or(command);
        let script = format!("printf '%s\n' {command}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{command}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Checks that the shell finds the files and servers that each command names.
    #[test]
    fn every_command_finds_what_it_names() {
        let own = [Means::Dangerous, Means::Tmpfs];
        let all = [Means::Unlogged, Means::Dangerous, Means::Template, Means::Tmpfs];
        let recipe = "user=me dbname='my shop' host=/tmp";
        let named = format!(" -d {}", shell_word(recipe));
        for bits in 1..16 {
            let means: Vec<Means> = (0..4).filter(|bit| bits & 1 << bit != 0).map(|bit| all[bit]).collect();
            let variant = Variant::of(&means);
            let is_own = own.iter().any(|means| variant.has(*means));
            for (from, server) in [
                (From::Nothing, ""),
                (From::Nothing, " --instance mine"),
                (From::Script("'my schema.sql'"), ""),
                (From::Script("'my schema.sql'"), &named),
                (From::Database("my shop"), &named),
            ] {
                let (mut files, mut started) = (vec!["my schema.sql".to_owned()], None);
                let typed = commands(variant, from, server, " --pg-version 15");
                assert!(!typed.is_empty(), "{variant}");
                for command in &typed {
                    let words = words(command);
                    if words[0] == "pg_dump" {
                        assert_eq!(words[3..], ["-d", recipe, "-f", "dump.sql"]);
                        files.push("dump.sql".to_owned());
                        continue;
                    }
                    if words[0] == "export" {
                        continue;
                    }
                    let parsed =
                        Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{command}: {error}"));
                    let action = match parsed.verb {
                        Verb::Server(server) => {
                            let ServerAction::Start { embedded, .. } = server.action else {
                                panic!("{command}")
                            };
                            started = embedded.instance;
                            continue;
                        }
                        Verb::Testdb(testdb) => testdb.action,
                        _ => panic!("{command}"),
                    };
                    match action {
                        // An existing dump, or a database of the measured server; never input that a person types.
                        TestdbAction::Unlog(unlog) => match &unlog.file {
                            Some(file) => {
                                assert!(
                                    !unlog.is_live() && files.contains(&file.display().to_string()),
                                    "{command}"
                                );
                            }
                            None => assert_eq!(unlog.server.dbname.as_deref(), Some(recipe), "{command}"),
                        },
                        #[cfg(feature = "serve")]
                        TestdbAction::Lend(LendAction::New(new)) => {
                            assert_eq!(is_own, started.is_some(), "{typed:?}");
                            if is_own {
                                assert_eq!(new.server.address.embedded.instance, started, "{typed:?}");
                            }
                            if let Some(file) = &new.from {
                                assert!(files.contains(&file.display().to_string()), "{command}");
                            }
                            if let Some(name) = &new.template {
                                assert_eq!(
                                    (name.as_str(), new.server.dbname.as_deref()),
                                    ("my shop", Some(recipe))
                                );
                            }
                        }
                        _ => panic!("{command}"),
                    }
                }
            }
        }
    }

    #[test]
    fn the_warning_names_what_a_crash_costs_the_recommended_variant() {
        let costs = |name: &str| super::costs(name.parse().unwrap());
        assert_eq!(costs("template"), "");
        let both = costs("unlogged+dangerous");
        assert!(both.contains("empty after a crash") && both.contains("whole cluster"), "{both}");
        assert!(!both.contains("in memory"), "{both}");
    }
}
