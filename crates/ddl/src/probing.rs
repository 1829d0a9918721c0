//! The user's reader or writer: a text of SQL, or a pgbench script.

use script::{Action, Command, Scripts, Source, Start};
use serde::Serialize;

use crate::outcome::ProbeKind;
use crate::script_error::ProbingError;

/// The work of a reader or writer that the user gives.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Probing {
    /// SQL that is sent as it is, in one message.
    Statement(String),
    /// A pgbench script.
    Script(ProbeScript),
}

/// A pgbench script that a session can carry out with SQL alone.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeScript {
    name: String,
    text: String,
    #[serde(skip)]
    scripts: Scripts,
}

impl Probing {
    /// The name for people.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Statement(_) => "your statement",
            Self::Script(script) => &script.name,
        }
    }
}

impl ProbeScript {
    /// Reads a script. `name` is the one of its file.
    ///
    /// # Errors
    /// If it is not a script of pgbench's, if it has commands that a probe cannot carry out, or if an expression has no value.
    pub fn read(name: &str, text: &str) -> Result<Self, ProbingError> {
        let scripts = Scripts::parse(&[Source::file(name, text, 1)])?;
        let this = Self { name: name.to_owned(), text: text.to_owned(), scripts };
        for command in this.script().commands() {
            if let Some(why) = refusal(command.action()) {
                return Err(this.error(command, why.to_owned()));
            }
        }
        this.evaluated()?;
        Ok(this)
    }

    fn script(&self) -> &script::Script {
        &self.scripts[0]
    }

    fn error(&self, command: &Command, why: String) -> ProbingError {
        ProbingError::Command {
            script: self.name.clone(),
            line: command.line(),
            command: command.text().trim().to_owned(),
            why,
        }
    }

    /// Computes all values once. What the results of queries decide is not known yet.
    fn evaluated(&self) -> Result<(), ProbingError> {
        let script = self.script();
        let receives =
            |command: &Command| matches!(command.action(), Action::Sql(sql) if sql.receive().is_some());
        if script.commands().iter().any(receives) {
            return Ok(());
        }
        let (script, mut client) = self.begin(ProbeKind::Read, 0);
        let mut next = 0;
        while let Some(at) = script
            .proceed(next, &mut client)
            .map_err(|failure| self.error(&script.commands()[failure.command], failure.error.to_string()))?
        {
            let command = &script.commands()[at];
            if let Action::Sleep(sleep) = command.action() {
                sleep.duration(&client.variables).map_err(|error| self.error(command, error.to_string()))?;
            }
            next = at + 1;
        }
        Ok(())
    }

    /// The script, and a client with the variables and random numbers of this kind's session.
    pub(crate) fn begin(&self, kind: ProbeKind, seed: u64) -> (script::Script, script::Client) {
        // Both kinds are clients of one run, so that they do not use the same rows in the same order.
        let mut clients = self.scripts.start(&Start { seed, clients: 2, ..Start::default() }).clients;
        let client = clients.swap_remove(match kind {
            ProbeKind::Read => 0,
            ProbeKind::Write => 1,
        });
        (self.script().clone(), client)
    }
}

/// Why a probe does not carry out a command; none if it does.
fn refusal(action: &Action) -> Option<&'static str> {
    match action {
        Action::Shell(_) | Action::SetShell { .. } => Some(
            "a reader or writer runs SQL only: remove the command, or set the variable with \\set or \\gset",
        ),
        Action::StartPipeline | Action::SyncPipeline | Action::EndPipeline => {
            Some("a reader or writer sends one statement after the other: remove the commands for pipelines")
        }
        Action::Sql(_)
        | Action::Set { .. }
        | Action::Test { .. }
        | Action::Jump(_)
        | Action::Nothing
        | Action::Sleep(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_refused(text: &str, words: &str) {
        let error = ProbeScript::read("probe.sql", text).unwrap_err().to_string();
        assert!(error.starts_with("probe.sql:") && error.contains(words), "{error}");
    }

    #[test]
    fn scripts_are_refused_that_a_probe_cannot_carry_out() {
        assert_refused("\\set id random(1, 10\nSELECT :id;", "syntax error");
        assert_refused("SELECT 1;\n\\shell true", "probe.sql:2: a reader or writer runs SQL only");
        assert_refused("\\startpipeline\nSELECT 1;\n\\endpipeline", "pipelines");
        assert_refused(
            "SELECT 1;\n\\set x 1 / 0",
            "probe.sql:2: division by zero in command \"\\set x 1 / 0\"",
        );
        assert_refused("\\sleep :pause ms\nSELECT 1;", "undefined variable \"pause\"");
    }

    #[test]
    fn what_a_query_decides_is_not_known_before() {
        ProbeScript::read("probe.sql", "SELECT 1 AS x \\gset\n\\set y :x + 1\nSELECT :y;").unwrap();
        ProbeScript::read("probe.sql", "\\set id random(1, 10)\n\\if :id > 5\nSELECT 1;\n\\endif").unwrap();
    }

    #[test]
    fn readers_and_writers_have_other_random_numbers() {
        let probe = ProbeScript::read("probe.sql", "\\set id random(1, 1000000000)\nSELECT :id;").unwrap();
        let drawn = |kind| {
            let (script, mut client) = probe.begin(kind, 1);
            script.proceed(0, &mut client).unwrap();
            client.variables.text(client.variables.names().slot("id").unwrap())
        };
        assert_ne!(drawn(ProbeKind::Read), drawn(ProbeKind::Write));
        assert_eq!(drawn(ProbeKind::Read), drawn(ProbeKind::Read));
    }
}
