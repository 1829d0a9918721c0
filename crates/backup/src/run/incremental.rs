//! Incremental base backups: a full one, changes, an incremental one, and `pg_combinebackup`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use connect::Target;
use fill::SchemaTriggers;
use measure::human::bytes;
use server::Session;
use server::quote::{identifier, literal, qualified};

use super::probe::beside;
use super::{Restored, Run, SMALL, Subject, base, of_restore, sequences, tablespaces};
use crate::beside::Beside;
use crate::error::{BackupError, OnPath};
use crate::outcome::{Increment, Trial};
use crate::programs::Programs;
use crate::run::relay::Relay;
use crate::run::source::{Facts, Source};
use crate::run::step::{Measured, STUCK, Trouble, Watch};
use crate::verified::Witness;
use crate::way::{Format, Way};

/// The first version with incremental backups.
pub(crate) const FIRST: u16 = 17;

/// Whether one of the ways is incremental.
pub(super) fn is_in(ways: &[Way]) -> bool {
    ways.iter().any(|way| way.format == Format::Incremental)
}

/// The changes that incremental backups hold.
pub(super) fn note(trials: &[Trial]) -> Option<String> {
    let parts: Vec<&Increment> = trials.iter().filter_map(|trial| trial.increment.as_ref()).collect();
    let wal = bytes(parts.iter().map(|part| part.wal).max()?);
    Some(match parts[0].changes {
        Some(share) => format!(
            "incremental backups contain changes that pgrig made: it updated {} % of the rows of each table, chosen at random. These \
             updates wrote up to {wal} of WAL. With other changes, sizes and times differ",
            share * 100.0
        ),
        None => format!(
            "incremental backups contain only the changes that other sessions made during the rehearsal (up to {wal} of WAL), because \
             pgrig only reads the database. With more changes, incremental backups are larger and take longer"
        ),
    })
}

/// Why a server of this version makes no incremental backups, with the remedy.
pub(crate) fn too_old(facts: &Facts) -> Option<String> {
    let server = facts.major;
    (server < FIRST).then(|| {
        format!(
            "a server of version {server} makes no incremental backups: rehearse it on a server of version {FIRST} or later"
        )
    })
}

/// Why no incremental backup can be made and restored by a server that is new enough, with the remedy.
pub(crate) fn hindrance(facts: &Facts, programs: &Programs) -> Option<String> {
    let (server, client) = (facts.major, programs.major);
    if client != server {
        return Some(format!(
            "pg_combinebackup combines only backups of its own version, and the one in {} has version {client}: give programs of version \
             {server} (--bin DIR)",
            programs.dir.display()
        ));
    }
    if !programs.has("pg_combinebackup") {
        return Some(format!("there is no pg_combinebackup in {}: give --bin DIR", programs.dir.display()));
    }
    (!facts.summarizes_wal).then(|| {
        "the server has summarize_wal = off, which incremental backups need: ALTER SYSTEM SET summarize_wal = on, and then SELECT \
         pg_reload_conf() (pgrig's own server: --set summarize_wal=on)"
            .to_owned()
    })
}

impl Run<'_> {
    pub(super) async fn incremental(
        &self,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<Restored, Trouble> {
        if self.changes.is_some() {
            subject.source.release().await?;
            vacuum(&subject.target).await?;
        }
        let [full, later] = parts(directory)?;
        let before = wal_so_far(&subject.target).await?;
        let first = self.part(way, subject, (full.as_path(), None), None).await?;
        let Some(share) = self.changes else {
            return self.combined(way, subject, &subject.source, (&full, &later, first), before).await;
        };
        self.change(way, subject, share).await?;
        let changed = Source::read(&subject.target).await?;
        let restored = self.combined(way, subject, &changed, (&full, &later, first), before).await;
        changed.close().await;
        restored
    }

    /// Makes a full and an incremental backup through the relay.
    pub(super) async fn both_parts_through(
        &self,
        relay: &Relay,
        way: &Way,
        subject: &Subject,
        directory: &Path,
    ) -> Result<(), Trouble> {
        let [full, later] = parts(directory)?;
        if self.changes.is_some() {
            vacuum(&subject.target).await?;
        }
        self.part(way, subject, (full.as_path(), None), Some(relay)).await?;
        if let Some(share) = self.changes {
            self.change(way, subject, share).await?;
        }
        self.part(way, subject, (later.as_path(), Some(full.as_path())), Some(relay)).await?;
        Ok(())
    }

    /// Updates this share of all rows.
    async fn change(&self, way: &Way, subject: &Subject, share: f64) -> Result<(), Trouble> {
        // New versions of rows and of entries of indexes, and WAL with whole pages.
        let needs = subject.facts.bytes * if share > 0.1 { 4 } else { 2 } + SMALL;
        let doing = format!("the update of rows before the incremental backup of {way}");
        self.watch(doing, Vec::new(), None).check_room(&self.scratch.work, needs)?;
        Ok(change(&subject.target, share).await?)
    }

    /// Makes a full backup, or an incremental one upon a full one; through the relay, if there is one. Without a relay, rows are looked up
    /// meanwhile, if that was asked for.
    async fn part(
        &self,
        way: &Way,
        subject: &Subject,
        (directory, upon): (&Path, Option<&Path>),
        relay: Option<&Relay>,
    ) -> Result<(Measured, Option<Beside>), Trouble> {
        let kind = if upon.is_some() { "incremental" } else { "full" };
        let watch = self.watch(format!("the {kind} backup of {way}"), vec![&self.scratch.work], Some(STUCK));
        let watch = Watch { server: subject.server, ..watch };
        watch.check_room(&self.scratch.work, subject.facts.server_bytes + SMALL)?;
        let mut command = base::back_up(way, &self.plan.programs, subject, directory);
        if let Some(full) = upon {
            command.arg("--incremental").arg(full.join("backup_manifest"));
        }
        if let Some(relay) = relay {
            command.envs(relay.variables());
        }
        let prober = self.prober.as_ref().filter(|_| relay.is_none());
        match beside(prober, &subject.target, &subject.source, watch.run(vec![command])).await {
            Ok(made) => Ok(made),
            Err(trouble) => Err(subject.of_backup(way, trouble).await),
        }
    }

    /// Makes the incremental backup, combines both, and compares the result with the source.
    async fn combined(
        &self,
        way: &Way,
        subject: &Subject,
        source: &Source,
        (full, later, (first, beside_first)): (&Path, &Path, (Measured, Option<Beside>)),
        before: u64,
    ) -> Result<Restored, Trouble> {
        let (programs, facts) = (&self.plan.programs, &subject.facts);
        let wal = wal_so_far(&subject.target).await?.saturating_sub(before);
        let (second, beside_second) = self.part(way, subject, (later, Some(full)), None).await?;
        tablespaces::refuse_new(subject).await?;
        let is_unchanged = source.is_unchanged(&subject.target).await?;
        let witness = if is_unchanged { Witness::Unchanged } else { Witness::Changed };
        let after = sequences::later(&subject.target).await?;
        let place = self.scratch.base.place_for_restored()?;
        let watch = self.watch(format!("the restore of {way}"), vec![&self.scratch.work, &place], None);
        // pg_combinebackup does not look for damage in the backups that it combines.
        for part in [full, later] {
            watch.run(vec![base::verify(programs, facts.major, part, part)]).await?;
        }
        watch.check_room(&place, facts.server_bytes + SMALL)?;
        let mut restore =
            watch.run(vec![combine(programs, facts, &[full, later], &place)]).await.map_err(of_restore)?;
        tablespaces::link(&facts.tablespaces, &place)?;
        let increment = Increment {
            full_size: tablespaces::size_with(full),
            full: first.seconds,
            size: tablespaces::size_with(later),
            seconds: second.seconds,
            combine: restore.seconds,
            wal,
            changes: self.changes,
        };
        watch.run(vec![base::verify(programs, facts.major, &place, &place)]).await?;
        let verified = self.start_and_verify((way, facts), (source, &after), witness, &mut restore).await?;
        let mut backup = first;
        backup.add(second);
        let size = increment.full_size + increment.size;
        Ok(Restored {
            backup,
            restore,
            size,
            verified,
            increment: Some(increment),
            recovery: None,
            beside: of_parts(beside_first, beside_second),
        })
    }
}

/// The effects of both parts of a backup on other clients.
fn of_parts(full: Option<Beside>, later: Option<Beside>) -> Option<Beside> {
    let (full, later) = full.zip(later)?;
    let transactions = full.transactions + later.transactions;
    Some(Beside { transactions, ..Beside::together(&[&full, &later])? })
}

/// Creates the directory, and returns those of the full and of the incremental backup in it.
fn parts(directory: &Path) -> Result<[PathBuf; 2], BackupError> {
    fs::create_dir_all(directory).on("create", directory)?;
    Ok(["full", "incremental"].map(|name| directory.join(name)))
}

/// The command that combines backups, in the order in which they were made.
fn combine(programs: &Programs, facts: &Facts, parts: &[&Path], place: &Path) -> Command {
    let mut command = Command::new(programs.program("pg_combinebackup"));
    if let Some(last) = parts.last() {
        command.args(tablespaces::of_combination(&facts.tablespaces, last, place));
    }
    command.args(parts).arg("--output").arg(place).env("LC_ALL", "C");
    command
}

/// Bytes of all WAL records that the server has written or replayed so far.
async fn wal_so_far(target: &Target) -> Result<u64, BackupError> {
    let session = Session::open(target).await?;
    let bytes: i64 = session.row(include_str!("../sql/wal.sql"), &[]).await?.get("bytes");
    session.close().await;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Makes the space of dead rows free again, so that the tables do not grow from trial to trial.
pub(super) async fn vacuum(target: &Target) -> Result<(), BackupError> {
    let session = Session::open(target).await?;
    session.run("VACUUM").await?;
    session.close().await;
    Ok(())
}

/// Writes new versions of this share of the rows of each table, chosen at random, with the same values. No trigger runs.
async fn change(target: &Target, share: f64) -> Result<(), BackupError> {
    let session = Session::open(target).await?;
    // Those that are ENABLE ALWAYS or ENABLE REPLICA would run for a replica's changes, too. Foreign keys are not checked for these.
    let triggers = SchemaTriggers::read(&session.connection).await?;
    session.run(&triggers.disabled_after("SET session_replication_role = replica")).await?;
    for row in session.rows(include_str!("../sql/updatable.sql"), &[]).await? {
        let table = qualified(row.get("schema"), row.get("name"));
        let column = identifier(row.get("column"));
        session
            .run(&format!(
                "UPDATE ONLY {table} SET {column} = {column} WHERE random() < {}",
                literal(&share.to_string())
            ))
            .await?;
    }
    session.run(&triggers.enable()).await?;
    // Its WAL counts at once.
    session.run("SELECT pg_stat_force_next_flush()").await?;
    session.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::{RELEASES, block_on, shared};

    use super::*;

    /// Each trigger writes a row into another table.
    const WITH_TRIGGERS: &str = "
        CREATE TABLE public.t AS SELECT i FROM generate_series(1, 100) i;
        CREATE TABLE public.seen (i int);
        CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO public.seen VALUES (1); RETURN NULL; END';
        CREATE TRIGGER a AFTER UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION public.note();
        CREATE TRIGGER b AFTER UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION public.note();
        CREATE TRIGGER c AFTER UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION public.note();
        ALTER TABLE public.t ENABLE ALWAYS TRIGGER b;
        ALTER TABLE public.t ENABLE REPLICA TRIGGER c";

    #[test]
    fn no_trigger_runs_for_the_changes_and_all_are_as_before() {
        block_on(async {
            let database = shared(RELEASES[1]).database().await;
            let session = Session::open(&database.target).await.unwrap();
            session.run(WITH_TRIGGERS).await.unwrap();
            let query = "SELECT min(xmin::text) AS written, (SELECT count(*) FROM public.seen) AS seen, \
                         (SELECT string_agg(tgname || tgenabled::text, ' ' ORDER BY tgname) FROM pg_trigger \
                           WHERE tgrelid = 'public.t'::regclass) AS states FROM public.t";
            let before = session.row(query, &[]).await.unwrap();
            change(&database.target, 1.0).await.unwrap();
            let after = session.row(query, &[]).await.unwrap();
            assert_ne!(before.get::<_, &str>("written"), after.get::<_, &str>("written"));
            assert_eq!((after.get::<_, i64>("seen"), after.get::<_, &str>("states")), (0, "aO bA cR"));
        });
    }

    #[test]
    fn what_hinders_an_incremental_backup_is_named_with_the_remedy() {
        let programs = |major| Programs {
            dir: "/nonexistent".into(),
            major,
            version: format!("{major}.1"),
            lacks: Vec::new(),
        };
        let facts = |major| Facts::of_scratch(major, "shop", 0);
        let of = |server, client| hindrance(&facts(server), &programs(client)).unwrap();
        assert!(too_old(&facts(16)).unwrap().contains("version 17 or later"));
        assert_eq!(too_old(&facts(17)), None);
        assert!(of(17, 18).contains("has version 18: give programs of version 17 (--bin DIR)"));
        assert!(of(17, 17).contains("there is no pg_combinebackup"));
    }
}
