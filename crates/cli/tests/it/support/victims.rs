//! Fills that are killed in the middle.

use tokio_postgres::Client;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Rig, Running, connect};
use testkit::until_some as until;

/// A repeatable sequence, so that a failure can be repeated: Knuth's MMIX generator.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The process that is killed.
#[derive(Clone, Copy, Debug)]
pub enum Victim {
    Pgrig,
    Postmaster,
    Backend,
}

/// Looks at a ledger again and again, in one session as long as that lasts.
pub struct Ledger<'a> {
    rig: &'a Rig,
    url: &'a str,
    table: &'a str,
    client: Option<Client>,
}

impl<'a> Ledger<'a> {
    pub fn of(rig: &'a Rig, url: &'a str, table: &'a str) -> Self {
        Self { rig, url, table, client: None }
    }

    /// Chunks that it has in its two tables, however the fill goes on meanwhile; none before there is one.
    pub fn chunks(&mut self) -> Option<i64> {
        let Self { rig, url, table, client } = self;
        rig.block_on(async {
            if client.as_ref().is_none_or(Client::is_closed) {
                *client = Some(connect(url).await.ok()?);
            }
            let client = client.as_ref()?;
            let first = chunks_in(client, table).await?;
            // Rows of unlogged tables may have a table beside.
            let beside = table.replace("pgrig_chunks", "pgrig_unlogged_chunks");
            // A query that fails would end a transaction that holds the ledger.
            let is_there = format!("SELECT to_regclass('{beside}') IS NOT NULL");
            let is_there: bool = client.query_one(&is_there, &[]).await.ok()?.get(0);
            let second = if is_there { chunks_in(client, &beside).await } else { None };
            Some(first + second.unwrap_or(0))
        })
    }

    /// Holds the fill once so many chunks are recorded: until [`Ledger::release`] nobody records or claims a chunk, or
    /// ends the fill. Returns whether it is held for good; between two tries the fill goes on by a few chunks.
    pub fn hold(&mut self, least: i64) -> Option<()> {
        let lock = format!("ROLLBACK; BEGIN; LOCK TABLE {} IN SHARE MODE", self.table);
        self.rig.block_on(async {
            if self.client.as_ref().is_none_or(Client::is_closed) {
                self.client = Some(connect(self.url).await.ok()?);
            }
            self.client.as_ref()?.batch_execute(&lock).await.ok()
        })?;
        self.chunks().filter(|done| *done >= least).map(drop)
    }

    /// Lets the fill go on.
    pub fn release(self) {
        if let Some(client) = self.client {
            // The server may be gone meanwhile.
            let _ = self.rig.block_on(client.batch_execute("ROLLBACK"));
        }
    }
}

/// The same, once.
pub fn chunks_done(rig: &Rig, url: &str, ledger: &str) -> Option<i64> {
    Ledger::of(rig, url, ledger).chunks()
}

async fn chunks_in(client: &Client, table: &str) -> Option<i64> {
    // pgbench's small tables have records of their own.
    let query = format!(
        "SELECT count(DISTINCT chunk) FROM {table} \
          WHERE relation NOT IN (SELECT oid FROM pg_class WHERE relname IN ('pgbench_branches', 'pgbench_tellers'))"
    );
    Some(client.query_one(&query, &[]).await.ok()?.get(0))
}

impl Victim {
    pub fn any(chance: &mut Chance) -> Self {
        match chance.below(3) {
            0 => Self::Pgrig,
            1 => Self::Postmaster,
            _ => Self::Backend,
        }
    }
}

/// Kills the victim once pgrig, just started, has recorded `chunks` more chunks. Returns whether the fill
/// was over before that.
pub fn killed(mut pgrig: Running, rig: &Rig, url: &str, ledger: &str, victim: Victim, chunks: i64) -> bool {
    let mut ledger = Ledger::of(rig, url, ledger);
    let before = ledger.chunks().unwrap_or(0);
    let is_over = until("chunks come in", || {
        if ledger.chunks().is_some_and(|done| done >= before + chunks) {
            return Some(false);
        }
        pgrig.has_ended().then_some(true)
    });
    if is_over {
        return pgrig.end().code == Some(0);
    }
    match victim {
        Victim::Pgrig => pgrig.signal(Signal::SIGKILL),
        Victim::Postmaster => kill(postmaster(rig), Signal::SIGKILL).unwrap(),
        Victim::Backend => rig.block_on(async {
            let client = connect(url).await.unwrap();
            let loading = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY%' LIMIT 1";
            if let Some(row) = client.query_opt(loading, &[]).await.unwrap() {
                // It may have ended meanwhile.
                let _ = kill(Pid::from_raw(row.get(0)), Signal::SIGKILL);
            }
        }),
    }
    let ran = pgrig.end();
    ran.code == Some(0)
}

/// Kills pgrig, or the postmaster, while the fill is held with so many chunks recorded: it cannot end before.
pub fn killed_while_held(
    mut pgrig: Running,
    rig: &Rig,
    url: &str,
    ledger: &str,
    victim: Victim,
    chunks: i64,
) {
    let mut ledger = Ledger::of(rig, url, ledger);
    until("some chunks are recorded", || {
        assert!(!pgrig.has_ended(), "it ended before");
        ledger.hold(chunks)
    });
    match victim {
        Victim::Postmaster => kill(postmaster(rig), Signal::SIGKILL).unwrap(),
        Victim::Pgrig | Victim::Backend => pgrig.signal(Signal::SIGKILL),
    }
    ledger.release();
    pgrig.end();
}

fn postmaster(rig: &Rig) -> Pid {
    Pid::from_raw(i32::try_from(rig.status()["pid"].as_i64().unwrap()).unwrap())
}

/// Ends the server and all its processes before any of them notices. (If only the postmaster is killed, sessions
/// roll back and WAL does not get to know: the next start then finds an unlogged table that is half removed, and
/// on all versions fails, whoever filled it.)
pub fn kill_server(rig: &Rig) {
    let postmaster = postmaster(rig);
    kill(postmaster, Signal::SIGSTOP).unwrap();
    let children = children(postmaster);
    assert!(children.len() > 3, "{children:?}");
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for child in &children {
            // One may have ended meanwhile.
            let _ = kill(*child, signal);
        }
    }
    kill(postmaster, Signal::SIGKILL).unwrap();
    until("the server is gone", || kill(postmaster, None).is_err().then_some(()));
}

fn children(of: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        // After the name, which is in parentheses: state and parent.
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: i32 = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        (parent == of.as_raw()).then(|| Pid::from_raw(pid))
    });
    processes.collect()
}
