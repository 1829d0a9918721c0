"""What must hold after a case. Each check shares no code with pgrig: it asks the server, or looks at files."""

import contextlib
import re
from pathlib import Path

from rig import Broken, wait_until

# What pgrig must leave as it was: settings in force, objects of others, databases, roles.
STATE = {
    "settings": "SELECT name, setting FROM pg_settings WHERE source NOT IN ('client', 'session', 'override') "
                "AND name NOT IN ('transaction_read_only') ORDER BY 1",
    "settings of databases and roles": "SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting ORDER BY 1, 2",
    "databases": "SELECT datname FROM pg_database ORDER BY 1",
    "roles": "SELECT rolname FROM pg_roles ORDER BY 1",
    "schemas": "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast)' ORDER BY 1",
    "extensions": "SELECT extname FROM pg_extension ORDER BY 1",
    "others' rows": "SELECT count(*), sum(hashtext(t)) FROM theirs.things",
}


def state(rig):
    """What there is now, to be compared later."""
    found = {name: rig.sql(query) for name, query in STATE.items()}
    found["postgresql.auto.conf"] = (rig.data / "postgresql.auto.conf").read_text()
    return found


def unchanged(before, rig):
    after = state(rig)
    for name, was in before.items():
        if (now := after[name]) != was:
            lines = sorted(set(was.splitlines()) ^ set(now.splitlines()))
            raise Broken(f"{name} changed: {lines}")


def no_traces(rig):
    """Nothing that pgrig made for itself is left in the database."""
    query = ("SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
             "WHERE (relname LIKE 'pgrig%' OR nspname LIKE 'pgrig%') AND relkind IN ('r', 'p', 'v', 'S')")
    if left := rig.sql(query):
        raise Broken(f"pgrig left tables: {left.split()}")


def ids_once(rig, table, column, rows, first=1, missing=()):
    """Every id from `first` on exactly once, but for the ranges (first, last) that are `missing`; `rows` may be
    None: then only no gap and no double. Nothing is sorted, since at the brim there is no room for that: sums of ids
    and of their squares decide."""
    query = (f"SELECT count(*), coalesce(min({column}), {first}), coalesce(max({column}), {first - 1}), "
             f"coalesce(sum({column}::numeric), 0), coalesce(sum({column}::numeric * {column}), 0) FROM {table}")
    count, low, high, total, squares = (int(n) for n in rig.sql(query).split("|"))
    absent = sum(to - since + 1 for since, to in missing)
    last = first + (rows if rows is not None else count + absent) - 1
    right_sum, right_squares = (
        of(last) - of(first - 1) - sum(of(to) - of(since - 1) for since, to in missing) for of in (sums, square_sums))
    right = (last - first + 1 - absent, first, last, right_sum, right_squares)
    if (count, low, high, total, squares) != right:
        raise Broken(f"{table}: {count} rows, {column} {low} to {high}, their sum off by {total - right[3]}; "
                     f"should be {right[0]} rows, {right[1]} to {right[2]}, without {list(missing)}")
    return count


def sums(n):
    return n * (n + 1) // 2


def square_sums(n):
    return n * (n + 1) * (2 * n + 1) // 6


def pgbench_tables(rig, scale):
    for table, rows in (("pgbench_branches", scale), ("pgbench_tellers", scale * 10)):
        ids_once(rig, table, {"pgbench_branches": "bid", "pgbench_tellers": "tid"}[table], rows)
    ids_once(rig, "pgbench_accounts", "aid", scale * 100_000)
    wrong = rig.sql("SELECT count(*) FROM pgbench_accounts WHERE bid IS DISTINCT FROM (aid - 1) / 100000 + 1")
    if wrong != "0":
        raise Broken(f"{wrong} accounts are of a wrong branch")


def sound(rig):
    """amcheck and pg_visibility find nothing. Called after a restart: pages are read from disk, where the
    server holds each against its checksum."""
    major = int(rig.sql("SHOW server_version_num")) // 10_000
    tables = rig.sql("SELECT oid FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace >= 16384::oid "
                     "OR relkind = 'r' AND relnamespace = 'public'::regnamespace").split()
    for oid in tables:
        queries = [f"SELECT count(*) FROM pg_check_visible({oid})", f"SELECT count(*) FROM pg_check_frozen({oid})"]
        if major >= 14:
            queries.append(f"SELECT count(*) FROM verify_heapam({oid}, check_toast => true)")
        for query in queries:
            if (found := rig.sql(query)) != "0":
                raise Broken(f"{rig.sql(f'SELECT {oid}::regclass')}: {query} found {found}")
    rig.sql("SELECT bt_index_parent_check(c.oid, true, true) FROM pg_class c JOIN pg_am m ON m.oid = relam "
            "JOIN pg_index i ON indexrelid = c.oid WHERE amname = 'btree' AND relkind = 'i' AND relpersistence <> 't' "
            "AND indisvalid")


def no_orphans(rig, allowed=0):
    """Every relation file is some relation's. `allowed` bytes may be nobody's: after a crash the server keeps
    files that a transaction of its own was writing."""
    for line in rig.sql("SELECT oid, datname FROM pg_database WHERE datallowconn").splitlines():
        oid, name = line.split("|")

        def orphans():
            rig.sql("CHECKPOINT")
            files = [(path.name, path.stat().st_size) for path in (rig.data / "base" / oid).iterdir()]
            query = "SELECT pg_relation_filenode(oid) FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL"
            known = set(rig.sql(query, name).split())
            numbered = [(file, size, re.match(r"(\d+)(_|\.|$)", file)) for file, size in files]
            return [(file, size) for file, size, number in numbered if number and number[1] not in known]

        if not wait_until(lambda: sum(size for _, size in orphans()) <= allowed, 10):
            raise Broken(f"files that are no relation's in database {name}: {orphans()[:10]}")


def shared_memory():
    with contextlib.suppress(OSError):
        return {path.name for path in Path("/dev/shm").iterdir()}
    return set()


def nothing_runs(rig, patience=15):
    """No process of this home once its server is stopped."""
    if not wait_until(lambda: not rig.processes(), patience):
        names = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in rig.processes()]
        raise Broken(f"processes that do not end: {names}")


def private(rig):
    """Locks and journals are nobody else's to hold."""
    for path in rig.home.rglob("*"):
        if (path.suffix == ".lock" or path.parent.name == "journal") and path.is_file() and path.stat().st_mode & 0o077:
            raise Broken(f"{path} has mode {oct(path.stat().st_mode & 0o777)}")


def left_clean(rig, before, *, shm, orphans=0):
    """The end of every case: all of the above that holds whatever was run."""
    if rig.postmaster():
        rig.stop()
    rig.start()
    sound(rig)
    unchanged(before, rig)
    no_orphans(rig, orphans)
    rig.stop()
    nothing_runs(rig)
    private(rig)
    journals = list((rig.home / "journal").glob("*.json")) if (rig.home / "journal").exists() else []
    if journals:
        raise Broken(f"journals are left: {journals}")
    if left := shared_memory() - shm:
        raise Broken(f"/dev/shm has {sorted(left)}")
