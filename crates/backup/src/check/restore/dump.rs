//! Restores dumps: psql for SQL, pg_restore for archives. Both go on after an error.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use connect::Target;
use measure::human::counted;

use super::messages::Messages;
use super::outcome::Restored;
use super::read::{Databases, read};
use super::{Failed, JOBS, RestoreError, Run};
use crate::check::format::compression::Method as Packed;
use crate::check::recipe::Form;
use crate::error::OnPath;
use crate::programs::{Programs, on_path};
use crate::run::dump::unpacker;
use crate::run::scratch::{RESTORED, undisturbed};
use crate::run::step::{self, IGNORED, Watch, client};
use crate::run::{SMALL, WAL};
use crate::way::Method;

/// Encodings that only clients have: their text is converted.
const OF_CLIENTS: [&str; 7] = ["BIG5", "GB18030", "GBK", "JOHAB", "SHIFT_JIS_2004", "SJIS", "UHC"];
/// Bytes of a restored database for each byte of a dump, at least: compressed dumps, and others.
const GROWTH: u64 = 3;

impl Run<'_> {
    pub(super) async fn restore_dump(
        &self,
        programs: &Programs,
        restored: &mut Restored,
    ) -> Result<(), Failed> {
        (self.tell)("restoring the dump");
        let (mut found, mut failed) =
            self.load(programs, self.request.cores.clamp(1, JOBS), restored).await?;
        if found.unread() > 0 {
            (self.tell)("restoring the dump again by one job, whose messages are whole");
            *restored = Restored::default();
            (found, failed) = self.load(programs, 1, restored).await?;
            if found.unread() > 0 {
                restored.fail(format!(
                    "pg_restore ignored {} that pgrig could not read",
                    counted(found.unread(), "error")
                ));
            }
        }
        if found.is_too_new {
            return Err(RestoreError::OldPrograms {
                path: self.plan.path.clone(),
                dir: programs.dir.clone(),
                version: programs.version.clone(),
            }
            .into());
        }
        if !found.extensions.is_empty() {
            let names = found.extensions.into_iter().collect();
            let (version, others) = (self.facts.major, restored.count());
            return Err(RestoreError::Extensions { names, version, others }.into());
        }
        if let Some(failed) = failed {
            let is_explained = found.has_later_setting
                || restored.count() > 0
                || !restored.missing_roles.is_empty()
                || !restored.missing_tablespaces.is_empty();
            if !(failed.code == IGNORED && is_explained) {
                restored.fail(failed.how);
            }
        }
        // A dump of all databases has their settings, too.
        let of = |database: &str| undisturbed(self.scratch.target(database));
        read(&Databases { of: &of, first: RESTORED, is_base: false, tell: self.tell }, restored).await
    }

    /// Loads the dump into a new database. Returns the messages of the programs, and how one of them failed.
    async fn load(
        &self,
        programs: &Programs,
        jobs: u16,
        restored: &mut Restored,
    ) -> Result<(Messages, Option<step::Failed>), Failed> {
        self.scratch.drop_database().await?;
        self.scratch.create_database(self.facts).await?;
        let target =
            undisturbed(self.scratch.target(RESTORED)).with_setting("client_min_messages", "warning");
        let commands = self.commands(programs, &target, jobs)?;
        let data = self.scratch.data_dir();
        let log = self.scratch.work.join("messages");
        let watch = Watch {
            doing: "the restore".to_owned(),
            directories: vec![&self.scratch.work, &data],
            log: log.clone(),
            stop: self.stop,
            stuck: None,
            server: None,
            space: None,
        };
        let bytes = self.plan.bytes.unwrap_or_default();
        let is_packed = self.found.kind.contains("compressed");
        let grown = if is_packed { bytes.saturating_mul(GROWTH) } else { bytes };
        watch.check_room(&data, grown + WAL.min(grown) + SMALL)?;
        let (measured, failed) = watch.run_to_end(commands).await?;
        restored.seconds = measured.seconds;

        let file = File::open(&log).on("read", &log)?;
        let superuser = target.user();
        let found = Messages::read(&mut BufReader::new(file), superuser, restored).on("read", &log)?;
        Ok((found, failed))
    }

    /// The commands, joined by pipes.
    fn commands(
        &self,
        programs: &Programs,
        target: &Target,
        jobs: u16,
    ) -> Result<Vec<Command>, RestoreError> {
        let recipe = &self.found.recipe;
        let file: &Path = &self.plan.path;
        let unpack = self.unpack()?;
        let restore = if recipe.form == Some(Form::Sql) {
            let mut psql = client(&programs.program("psql"), target);
            psql.args(["--no-psqlrc", "--quiet"]);
            psql.arg("--file").arg(if unpack.is_some() { Path::new("-") } else { file });
            psql
        } else {
            let mut restore = client(&programs.program("pg_restore"), target);
            restore.args(["--no-tablespaces", "--no-subscriptions"]);
            restore.arg(format!("--dbname={}", target.dbname()));
            if unpack.is_none() {
                if recipe.form == Some(Form::Archive) {
                    restore.arg(format!("--jobs={jobs}"));
                }
                restore.arg(file);
            }
            restore
        };
        Ok(unpack.into_iter().chain([restore]).collect())
    }

    /// The program that undoes the compression of the whole file, if there is one.
    pub(super) fn unpack(&self) -> Result<Option<Command>, RestoreError> {
        let method = match self.found.recipe.packed {
            Packed::None => return Ok(None),
            Packed::Gzip | Packed::Zlib => Method::Gzip,
            Packed::Lz4 => Method::Lz4,
            Packed::Zstd => Method::Zstd,
        };
        if !on_path(method.name()) {
            return Err(RestoreError::NoProgram { program: method.name() });
        }
        let mut command = unpacker(method);
        if let Some(command) = &mut command {
            command.arg(&self.plan.path);
        }
        Ok(command)
    }
}

/// The encoding of the database into which a dump is restored.
pub(super) fn encoding(of_dump: Option<&str>) -> String {
    let own = of_dump.filter(|name| !name.is_empty() && !OF_CLIENTS.contains(name));
    own.unwrap_or("UTF8").to_owned()
}
