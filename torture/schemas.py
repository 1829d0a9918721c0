#!/usr/bin/env python3
"""Random schemas, each filled by pages and by COPY: either pgrig refuses one before it touches anything, or the server
accepts all that was filled.

For each seed and version: `pgrig fill --rows N --ddl FILE` twice, into a database each. Then:
- the rows are as many as planned, and the same by both methods;
- every value of every row can be read, ANALYZE passes, amcheck finds nothing;
- a third database takes the same rows by COPY with all constraints, and then keys and indexes;
- sequences give values that no row has;
- nothing of pgrig's is left.
Needs psql. Prints one line for each seed, at the end the reasons of refusals by frequency.
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_schema

REPO = Path(__file__).resolve().parent.parent
METHODS = {"pages": [], "copy": ["--method", "copy"]}
CATALOGS = "('pg_catalog', 'information_schema', 'pg_toast')"


class Fault(Exception):
    """What must not be."""


def main():
    options = parsed()
    root = Path(tempfile.mkdtemp(prefix="pgrig-schemas-"))
    faults, reasons, fewer, filled, tables = [], collections.Counter(), collections.Counter(), 0, 0
    try:
        for version in options.pg_version.split(","):
            with Server(options, version, root) as server:
                for seed in options.seeds:
                    started = time.monotonic()
                    outcome, said, count = judged(options, server, seed, fewer)
                    filled, tables = filled + (outcome == "filled"), tables + count
                    if outcome == "fault":
                        faults.append(f"--seeds {seed} --pg-version {version}: {said}")
                    if outcome == "refused":
                        reasons[reason(said)] += 1
                    took = time.monotonic() - started
                    if outcome != "filled" or not options.quiet:
                        print(f"{version} {seed:5} {took:5.1f} s  {outcome}  {said}", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    runs = len(options.seeds) * len(options.pg_version.split(","))
    print(f"\n{runs} schemas: {filled} filled ({tables} tables, by pages and by COPY), {sum(reasons.values())} refused, {len(faults)} faults")
    for why, count in reasons.most_common():
        print(f"{count:5}  {why}")
    print("fewer rows than asked for:" if fewer else "")
    for why, count in fewer.most_common():
        print(f"{count:5}  {why}")
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds, default=seeds("1-20"), help="5 or 1-200 or 3,7,9 [1-20]")
    parser.add_argument("--pg-version", default="13,18", help="versions, each on a server of its own [13,18]")
    parser.add_argument("--rows", type=int, help="in each table [by the seed: 1 to 3000]")
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--quiet", action="store_true", help="no line for a schema that is filled")
    parser.add_argument("--show", action="store_true", help="print each schema, and what pgrig says")
    return parser.parse_args()


def seeds(text):
    numbers = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


class Server:
    """A server of pgrig's own for many schemas."""

    def __init__(self, options, version, root):
        self.pgrig = str(Path(options.pgrig).resolve())
        self.major, self.root = int(version), root
        self.instance = f"schemas-{os.getpid()}"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        self.environment |= {"PGRIG_HOME": str(root / f"home-{version}"), "PGRIG_POSTGRESQL_CACHE": str(cache()), "COLUMNS": "200"}

    def __enter__(self):
        root = os.getuid() == 0
        if root:
            self.root.chmod(0o755)
        self.run([self.pgrig, "server", "start", "--pg-version", str(self.major), "--instance", self.instance,
                  "--set", "shared_buffers=128MB"], check=True)
        self.url = self.run([self.pgrig, "server", "url", "--instance", self.instance], check=True).stdout.strip()
        return self

    def __exit__(self, *_):
        self.run([self.pgrig, "server", "destroy", "--instance", self.instance])

    def run(self, command, check=False, **more):
        ran = subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=300, check=False, **more)
        if check and ran.returncode != 0:
            raise Fault(f"{' '.join(command[:3])}: {first_error(ran.stderr)}")
        return ran

    def of(self, database):
        return re.sub(r"/postgres\?", f"/{database}?", self.url)

    def sql(self, database, text):
        """Runs a script, which must pass; what it answers."""
        return self.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.of(database)], check=True, input=text).stdout.strip()

    def fresh(self, database):
        self.sql("postgres", f"DROP DATABASE IF EXISTS {database};\nCREATE DATABASE {database};")


def cache():
    """PostgreSQL is fetched once for all."""
    place = Path(os.environ.get("PGRIG_POSTGRESQL_CACHE", REPO / "target/torture/postgresql"))
    place.mkdir(parents=True, exist_ok=True)
    return place.resolve()


def judged(options, server, seed, fewer):
    """Outcome, words about it, and how many tables were filled. Counts why tables get fewer rows than asked for."""
    schema = random_schema.made(seed, server.major)
    rows = options.rows or random.Random(seed).choice([1, 20, 100, 300, 1000, 3000])
    # Two references to one row cannot differ.
    if rows == 1 and "<> ref_" in schema.before.replace('"', ""):
        rows = 20
    file = server.root / "schema.sql"
    file.write_text(schema.ddl)
    if options.show:
        print(schema.ddl)
    try:
        server.fresh("third")
        server.sql("third", schema.before)
        outcomes = {method: filled(options, server, file, rows, method) for method in METHODS}
        fewer.update(reason(why) for why in outcomes["pages"][2] or [])
        refusals = [said for kind, said, _ in outcomes.values() if kind == "refused"]
        if len(refusals) == 1:
            raise Fault(f"refused by one method only: {refusals[0]}")
        if refusals:
            return "refused", refusals[0], 0
        examined(server, schema)
    except Fault as fault:
        return "fault", str(fault), 0
    except subprocess.TimeoutExpired as error:
        return "fault", f"not done in time: {' '.join(error.cmd[:2])}", 0
    return "filled", f"{len(schema.tables)} tables, {rows} rows each", len(schema.tables)


def filled(options, server, file, rows, method):
    """Fills a database of its own; a refusal leaves nothing there."""
    server.fresh(method)
    document = server.root / "document.json"
    ran = server.run([server.pgrig, "fill", "--rows", str(rows), "--ddl", str(file), "-d", server.of(method), "--json", str(document), *METHODS[method]])
    if options.show:
        print(ran.stdout + ran.stderr)
    if ran.returncode == 2:
        if left := server.sql(method, f"SELECT oid::regclass FROM pg_class WHERE relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname IN {CATALOGS});"):
            raise Fault(f"{method}: refused, but left {left.split()}: {first_error(ran.stderr)}")
        return "refused", first_error(ran.stderr), None
    if ran.returncode != 0:
        raise Fault(f"{method}: exit {ran.returncode}: {first_error(ran.stderr)}")
    planned = json.loads(document.read_text())["plan"]["tables"]
    names = [f"{random_schema.quoted(table['schema'])}.{random_schema.quoted(table['name'])}" for table in planned]
    there = server.sql(method, "\n".join(f"SELECT count(*) FROM {name};" for name in names)).splitlines()
    for name, table, count in zip(names, planned, there, strict=True):
        if int(count) != table["rows"]:
            raise Fault(f"{method}: {name} has {count} rows, planned {table['rows']}")
    return "filled", "", re.findall(r"warning: .*only .* rows: .*", ran.stderr)


def examined(server, schema):
    """All that must hold once both databases are filled."""
    sums = {method: sums_of(server, schema, method) for method in METHODS}
    for table in schema.tables:
        if sums["pages"][table.sql] != sums["copy"][table.sql]:
            raise Fault(f"{table.sql} differs between pages and COPY in {different(server, table)}")
    for method in METHODS:
        sound(server, method)
        sequences(server, method)
    # The rows are the same by COPY.
    restored(server, schema, "pages", sums["pages"])


def sums_of(server, schema, database):
    """Count and checksum of the rows of each table; reads every value."""
    queries = [f"SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)), 0) FROM {table.sql} t;" for table in schema.tables]
    lines = server.sql(database, "\n".join(queries)).splitlines()
    return {table.sql: line for table, line in zip(schema.tables, lines, strict=True)}


def different(server, table):
    """Columns of a table whose values are not the same by both methods."""
    columns = [column for column in table.columns if not column.dropped]
    sums = ", ".join(f"sum(hashtextextended({column.sql}::text, 0))" for column in columns)
    both = [server.sql(method, f"SELECT {sums} FROM {table.sql};").split("|") for method in METHODS]
    found = [f"{column.name} {column.type} {column.default}".strip() for column, *of in zip(columns, *both, strict=True) if len(set(of)) > 1]
    return ", ".join(found) or "the combination of values"


def sound(server, database):
    heap = "" if server.major < 14 else f"""
SELECT 'heap', c.oid::regclass, h.* FROM pg_class c CROSS JOIN LATERAL verify_heapam(c.oid, check_toast => true) h
 WHERE relkind IN ('r', 'm') AND c.oid >= 16384;"""
    gin = "" if server.major < 18 else """
CREATE TEMP TABLE checked_gin AS SELECT gin_index_check(c.oid)::text FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'gin' AND c.relkind = 'i' AND c.oid >= 16384;"""
    found = server.sql(database, f"""
CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility; ANALYZE;
SELECT 'left', oid::regclass FROM pg_class WHERE relname LIKE 'pgrig%';
SELECT 'invalid', indexrelid::regclass FROM pg_index WHERE NOT indisvalid;
SELECT 'visible', c.oid::regclass, v FROM pg_class c, LATERAL pg_check_visible(c.oid) v WHERE relkind IN ('r', 'm') AND c.oid >= 16384;
SELECT 'frozen', c.oid::regclass, v FROM pg_class c, LATERAL pg_check_frozen(c.oid) v WHERE relkind IN ('r', 'm') AND c.oid >= 16384;{heap}
CREATE TEMP TABLE checked AS SELECT bt_index_parent_check(c.oid, true, true)::text FROM pg_class c JOIN pg_am a ON a.oid = relam
 WHERE amname = 'btree' AND c.relkind = 'i' AND c.oid >= 16384;{gin}""")
    if found:
        raise Fault(f"{database}: {found.splitlines()[0]}")


def sequences(server, database):
    """Each sequence that a column owns goes on after the column's values."""
    query = """SELECT format('SELECT %L, coalesce(max(%I) >= nextval(%L), false) FROM %s;', a.attrelid::regclass, attname, s.oid::regclass, a.attrelid::regclass)
  FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid JOIN pg_sequence ON seqrelid = s.oid
 WHERE s.relkind = 'S' AND seqincrement > 0;"""
    taken = server.sql(database, server.sql(database, query))
    if wrong := [line for line in taken.splitlines() if line.endswith("|t")]:
        raise Fault(f"{database}: a sequence gives values that rows have: {wrong}")


def restored(server, schema, database, sums):
    """A database without pgrig takes the same rows."""
    server.fresh("third")
    server.sql("third", schema.before)
    out, into = [], []
    for number, table in enumerate(schema.tables):
        columns = ", ".join(column.sql for column in table.columns if not column.generated and not column.dropped)
        place = server.root / f"{number}.copy"
        out.append(f"\\copy (SELECT {columns} FROM {table.sql}) TO '{place}'" if columns else "")
        into.append(f"\\copy {table.sql} ({columns}) FROM '{place}'" if columns else "")
    server.sql(database, "\n".join(out) + "\n")
    try:
        server.sql("third", "\n".join(into) + "\n" + schema.after.replace(" NOT VALID", ""))
    except Fault as fault:
        raise Fault(f"{database}: the server refuses the rows: {fault}") from fault
    again = sums_of(server, schema, "third")
    if again != sums:
        names = [name for name in sums if sums[name] != again[name]]
        raise Fault(f"{database}: rows differ once the server has loaded them: {names}")


def first_error(said):
    found = re.search(r"^(?:psql:\S+ )?(?:error|ERROR):.*(?:\n(?!\n).*){0,6}", said, re.MULTILINE | re.IGNORECASE)
    return " ".join((found[0] if found else said[-500:]).split())


def reason(said):
    """A refusal without names, so that equal ones count together."""
    return re.sub(r"\d+", "N", re.sub(r"[\w.]*\"[^\"]*\"|\b(public|shop|archive)\.\w+|[a-z]+_\d+", "…", said))[:160]


if __name__ == "__main__":
    sys.exit(main())
