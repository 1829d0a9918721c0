//! Refuses requests that cannot work on any server, each with its reason, before anything is
//! changed.

use rowgen::Payload;

use crate::error::FillError;
use crate::plan::needs_chunks;
use crate::request::{
    Amount, IndexKind, InitStep, MethodChoice, PartitionMethod, Persistence, Request, Subject,
};

/// Refuses combinations that cannot work.
///
/// # Errors
/// [`FillError::Combination`] names the contradicting options, and the remedy.
pub(crate) fn combinations(request: &Request) -> Result<(), FillError> {
    let refusal = [part, own_table, append, steps, amount, method, partitions, index, series]
        .into_iter()
        .find_map(|check| check(request).err());
    refusal.map_or(Ok(()), |text| Err(FillError::Combination(text.to_owned())))
}

type Checked = Result<(), &'static str>;

fn refuse(wrong: bool, text: &'static str) -> Checked {
    if wrong { Err(text) } else { Ok(()) }
}

/// A part may be run again after the fill is complete. So it must not begin another fill: it must neither drop nor append.
fn part(request: &Request) -> Checked {
    if request.part.is_none() {
        return Ok(());
    }
    refuse(
        request.steps.include(InitStep::Drop),
        "--part with --drop: a part that is run again would drop the tables again. Run DROP TABLE pgbench_accounts, \
         pgbench_branches, pgbench_history, pgbench_tellers before the parts start",
    )?;
    refuse(
        request.append,
        "--part with --append: a part that is run again would append again. Leave out --part: one process adds the rows",
    )?;
    refuse(
        !request.steps.include(InitStep::Generate),
        "--part divides rows, and none of the steps generates rows: leave out --part",
    )?;
    refuse(
        request.subject == Subject::Series,
        "--part divides chunks, and --series loads in one statement: leave out --part",
    )?;
    refuse(
        request.amount == Amount::Unbounded || request.in_chunks,
        "--part divides a known number of rows, and limits and probes end or measure the fill of one process: give a SIZE, --scale or \
         --rows without --brim, --until-free, --for, --mark, --wait-for-space and --probe; or leave out --part",
    )?;
    refuse(
        matches!(request.subject, Subject::Table(_)) && matches!(request.amount, Amount::Size(_)),
        "--part divides a known number of rows, and a table of your own reaches a SIZE by measuring: give --rows",
    )?;
    refuse(
        request.method == MethodChoice::Direct,
        "--part with --method direct: one process writes all pages of a table. Give --method copy, or leave out --method; or leave \
         out --part, if pgrig runs on the server's machine",
    )?;
    refuse(
        matches!(request.method, MethodChoice::Explode | MethodChoice::Reinsert),
        "--part loads chunks by COPY or in the server: give --method copy or server, or leave out --method",
    )
}

fn steps(request: &Request) -> Checked {
    use InitStep::{Create, Drop, ForeignKeys, Generate, PrimaryKeys, Vacuum};
    let steps = &request.steps;
    let early = |step| steps.include(step) && steps.include(Create) && !steps.order(Create, step);
    refuse(
        steps.include(Drop) && !steps.include(Create),
        "the step d drops the tables, but the step t, which creates them, is missing: add t, or leave out d",
    )?;
    refuse(
        steps.include(Drop) && steps.iter().next() != Some(Drop),
        "the step d drops the tables that earlier steps made: put d first",
    )?;
    refuse(
        [Generate, Vacuum, PrimaryKeys, ForeignKeys].into_iter().any(early),
        "the step t creates the tables: put it before g, v, p and f",
    )?;
    refuse(
        steps.include(ForeignKeys) && steps.include(Create) && !steps.order(PrimaryKeys, ForeignKeys),
        "foreign keys reference primary keys: the step p has to come before f",
    )
}

fn amount(request: &Request) -> Checked {
    let generates = request.steps.include(InitStep::Generate);
    refuse(
        generates && request.amount == Amount::Nothing,
        "no amount is given: give SIZE, --scale N, --rows N, or a limit (--brim, --until-free or --for), for example: pgrig fill 1GB",
    )?;
    refuse(
        !generates && request.amount != Amount::Nothing,
        "none of the steps generates rows, so no amount can be given: add g to --init-steps, or leave out the amount",
    )
}

fn append(request: &Request) -> Checked {
    if !request.append {
        return Ok(());
    }
    refuse(
        request.steps.include(InitStep::Drop),
        "--append keeps the existing tables, and --drop (or the step d) drops them: give one of them",
    )?;
    refuse(
        request.steps.include(InitStep::Create),
        "--append adds to existing tables, and the step t creates them: leave out the step t",
    )?;
    refuse(!request.steps.include(InitStep::Generate), "--append generates rows: add g to --init-steps")?;
    refuse(request.partitions.is_some(), "--append keeps the existing partitions: leave out --partitions")?;
    refuse(
        matches!(request.method, MethodChoice::Explode | MethodChoice::Reinsert),
        "--append loads new rows only: --method explode would rewrite the old rows, and --method reinsert has no \
         seed rows. Leave --method out, or give copy or server",
    )
}

fn method(request: &Request) -> Checked {
    let open_ended = request.amount == Amount::Unbounded;
    match request.method {
        MethodChoice::Explode => {
            refuse(
                request.fillfactor == 100,
                "--method explode spreads densely loaded rows: give a --fillfactor below 100",
            )?;
            refuse(
                open_ended,
                "--method explode rewrites whole tables, so it cannot fill until a limit: give a SIZE, or \
                 another --method",
            )?;
            refuse(
                request.chunk.is_some() || request.in_chunks,
                "--method explode loads whole tables, and --chunk, limits and probes need chunks: leave them out, or \
                 give another --method",
            )?;
            refuse(
                !request.steps.include(InitStep::Create),
                "--method explode needs tables that it creates itself: add t to --init-steps",
            )
        }
        MethodChoice::Server => refuse(
            request.format.is_some(),
            "--method server makes rows in the server, without COPY: leave out --format",
        ),
        MethodChoice::Reinsert => {
            refuse(
                request.payload != Payload::Blank,
                "--method reinsert repeats its seed rows, so their payload would be the same in each chunk: \
                 give --method copy with --payload",
            )?;
            refuse(
                !request.steps.include(InitStep::Create),
                "--method reinsert has no seed rows in tables that it did not create: add t to --init-steps, or \
                 give another --method",
            )
        }
        MethodChoice::Direct => {
            refuse(
                request.format.is_some(),
                "--method direct writes pages, without COPY of the rows: leave out --format",
            )?;
            refuse(
                needs_chunks(request).is_some(),
                "--method direct writes a whole table in the transaction that creates or truncates it: leave out \
                 --append, --chunk, limits and probes (for pgbench's tables, also give step t, and p after g), or \
                 give --method copy",
            )
        }
        MethodChoice::Auto | MethodChoice::Copy => Ok(()),
    }
}

fn partitions(request: &Request) -> Checked {
    let Some(partitions) = request.partitions else { return Ok(()) };
    let hash = partitions.method == PartitionMethod::Hash;
    refuse(
        !request.steps.include(InitStep::Create),
        "--partitions are made when tables are created: add t to --init-steps, or leave them out",
    )?;
    refuse(
        !hash && request.amount == Amount::Unbounded,
        "range partitions need a known number of rows: give --partition-method hash, or a SIZE",
    )?;
    refuse(
        request.persistence == Persistence::Unlogged && request.steps.include(InitStep::ForeignKeys),
        "--foreign-keys with --unlogged and --partitions: PostgreSQL treats a partitioned table as permanent, and \
         refuses foreign keys between permanent and unlogged tables. Leave one of them out",
    )?;
    refuse(
        hash && request.method == MethodChoice::Reinsert && request.steps.include(InitStep::PrimaryKeys),
        "--method reinsert into hash partitions repeats ids, so a primary key is not possible: give --data-only, \
         or --partition-method range, which does not repeat ids",
    )
}

fn index(request: &Request) -> Checked {
    refuse(
        request.index != IndexKind::Btree && request.steps.include(InitStep::ForeignKeys),
        "foreign keys reference primary keys: they need --index btree",
    )?;
    refuse(
        request.index_tablespace.is_some() && !request.steps.include(InitStep::PrimaryKeys),
        "--index-tablespace needs an index: add the step p (leave out --data-only), or leave out --index-tablespace",
    )
}

fn own_table(request: &Request) -> Checked {
    let Subject::Table(own) = &request.subject else { return Ok(()) };
    refuse(
        own.name.is_none() && own.ddl.is_none(),
        "--column describes a column of your own table: give --table NAME too",
    )?;
    refuse(
        request.partitions.is_some()
            || request.index != IndexKind::Btree
            || request.tablespace.is_some()
            || request.index_tablespace.is_some()
            || !request.autovacuum
            || request.fillfactor != 100,
        "a table of your own is filled as it is: --partitions, --index, --tablespace, --index-tablespace, \
         --no-autovacuum and --fillfactor are for pgbench's tables. Put them into --ddl",
    )?;
    refuse(
        request.persistence == Persistence::Unlogged,
        "--unlogged is for pgbench's tables: write CREATE UNLOGGED TABLE in --ddl, or make an existing table unlogged while \
         it is empty (ALTER TABLE orders SET UNLOGGED)",
    )?;
    refuse(
        matches!(request.method, MethodChoice::Server | MethodChoice::Reinsert | MethodChoice::Explode),
        "pgrig fills a table of your own by COPY or by writing pages: give --method copy or direct, or leave out \
         --method and --server-side",
    )?;
    refuse(
        request.payload != Payload::Blank,
        "--payload is for pgbench's filler: describe your columns with --column NAME=text(80) or random(80)",
    )?;
    refuse(
        matches!(request.amount, Amount::Scale(_)),
        "--scale counts pgbench's accounts: give a SIZE or --rows for a table of your own",
    )?;
    refuse(
        request.steps.include(InitStep::Drop),
        "--drop (the step d) is for pgbench's tables: leave it out, and drop or TRUNCATE tables of your own yourself",
    )?;
    refuse(
        [InitStep::PrimaryKeys, InitStep::ForeignKeys].into_iter().any(|step| request.steps.include(step)),
        "the steps p and f (--foreign-keys) are for pgbench's tables: leave them out, and put the keys of a table of your own into --ddl",
    )?;
    refuse(
        own.ddl.is_none() && request.steps.include(InitStep::Create),
        "the step t creates pgbench's tables: give --ddl FILE to create your own, or leave t out",
    )?;
    refuse(
        own.ddl.is_some() && request.append,
        "--append adds to an existing table, and --ddl creates one: leave out one of the two",
    )
}

fn series(request: &Request) -> Checked {
    if request.subject != Subject::Series {
        return Ok(());
    }
    let only = request.partitions.is_none()
        && !request.append
        && request.payload == Payload::Blank
        && request.chunk.is_none()
        && !request.in_chunks
        && request.format.is_none()
        && request.fillfactor == 100
        && request.index == IndexKind::Btree
        && request.streams.is_none_or(|streams| streams.get() == 1)
        && request.method == MethodChoice::Auto
        && [InitStep::Vacuum, InitStep::PrimaryKeys, InitStep::ForeignKeys]
            .into_iter()
            .all(|step| !request.steps.include(step));
    refuse(
        !only,
        "level 0 (--series) makes its table with one CREATE TABLE AS. It allows only an amount, --unlogged, --schema, \
         --tablespace and --drop: leave out all other options",
    )?;
    refuse(
        matches!(request.amount, Amount::Scale(_) | Amount::Unbounded),
        "level 0 (--series) has no scale and no limits: give a SIZE or --rows",
    )
}
