#!/usr/bin/env python3
"""How fast pgrig fills TPC-H's schema, beside tpchgen-cli, COPY and the keys.

Starts a server of its own through pgrig. Both take turns, the first one changing from round to round:

- pgrig fill --data-only with the tables of bench/tpch.sql, primary keys and foreign keys;
- tpchgen-cli, which writes CSV files with one thread for each core; two sessions that TRUNCATE tables and COPY the files
  with FREEZE in the same transaction; two sessions that add the primary keys, then the foreign keys.

Neither analyzes. Both have the same tables, keys and numbers of rows (lineitem's within 0.1 %), not the same values. The
record has the time of each phase, and the tables' sizes.

Needs psql, and tpchgen-cli 4 (PyPI, or crates.io).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, output, parsed, save, serving, shown, spread, surroundings, timed

TABLES = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"]
PRIMARY = {
    "region": "r_regionkey", "nation": "n_nationkey", "part": "p_partkey", "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey", "customer": "c_custkey", "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
FOREIGN = [
    ("lineitem", "l_orderkey", "orders"), ("lineitem", "l_partkey, l_suppkey", "partsupp"),
    ("nation", "n_regionkey", "region"), ("supplier", "s_nationkey", "nation"), ("customer", "c_nationkey", "nation"),
    ("partsupp", "ps_partkey", "part"), ("partsupp", "ps_suppkey", "supplier"), ("orders", "o_custkey", "customer"),
]
# Of two sessions: lineitem has two thirds of the bytes.
SESSIONS = [["lineitem"], [table for table in TABLES if table != "lineitem"]]
SETTINGS = "SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 2; SET work_mem = '256MB';"
WAYS = ["pgrig", "pgrig --method copy", "tpchgen-cli, COPY, keys"]
PEER = WAYS[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor [1]")
    parser.add_argument("--tpchgen-cli", default="tpchgen-cli")
    options = parsed(parser)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        # The server reads the files.
        Path(scratch).chmod(0o755)
        times, sizes = {way: [] for way in WAYS}, {}
        for number in range(options.trials):
            for way in WAYS[number % len(WAYS):] + WAYS[:number % len(WAYS)]:
                server.query(f"DROP TABLE IF EXISTS {', '.join(TABLES)}")
                server.settle()
                trial = peer(options, server, scratch) if way == PEER else timed(pgrig(options, server, way, scratch))
                times[way].append({**trial, "rows": counted(server)})
                sizes[way] = int(server.query("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
                                              "AND relnamespace = 'public'::regnamespace"))
                check(server, way)
            print(f"round {number + 1}: " + ", ".join(f"{way} {times[way][-1]['wall']:.2f} s" for way in WAYS), file=sys.stderr)
        record = {"benchmark": "tpch", **surroundings(options, server), "scale": options.scale, "bytes": sizes,
                  "tpchgen-cli": output([options.tpchgen_cli, "--version"]), "results": results(times), "trials": times}
    print("| way | seconds | rows/s | MB | times the speed of tpchgen-cli, COPY, keys (pairs) |\n|---|---|---|---|---|")
    for way, each in record["results"].items():
        rate = times[way][0]["rows"] / each["seconds"][1]
        print(f"| {way} | {shown(*each['seconds'])} | {rate:,.0f} | {sizes[way] / 1e6:.0f} | {shown(*each['times-peer'])} |")
    phases = {name: spread([trial["phases"][name] for trial in times[PEER]]) for name in times[PEER][0]["phases"]}
    print("\n" + ", ".join(f"{name} {shown(*each)} s" for name, each in phases.items()))
    save(options, server, record, f"scale{options.scale:g}")


def results(times):
    """Least, median and greatest of each way's seconds, and of the peer's seconds by them, round by round."""
    def result(trials):
        ratios = [theirs["wall"] / mine["wall"] for mine, theirs in zip(trials, times[PEER])]
        return {"seconds": spread([each["wall"] for each in trials]), "times-peer": spread(ratios)}
    return {way: result(trials) for way, trials in times.items()}


def tables():
    return Path(__file__).with_name("tpch.sql").read_text()


def keys():
    """Statements for primary keys and for foreign keys, by table."""
    primary = [(table, f"ALTER TABLE {table} ADD PRIMARY KEY ({columns});") for table, columns in PRIMARY.items()]
    foreign = [(table, f"ALTER TABLE {table} ADD FOREIGN KEY ({columns}) REFERENCES {parent};")
               for table, columns, parent in FOREIGN]
    return primary, foreign


def pgrig(options, server, way, scratch):
    ddl = Path(scratch) / "tpch.sql"
    ddl.write_text("\n".join([tables(), *(sql for each in keys() for _, sql in each)]))
    scaled = {"supplier": 10_000, "part": 200_000, "customer": 150_000}
    rows = [f"{table}={round(count * options.scale)}" for table, count in scaled.items()]
    rows += ["region=5", "nation=25", "partsupp=4*part", "orders=10*customer", "lineitem=4*orders"]
    method = ["--method", "copy"] if "copy" in way else []
    return [*server.fill(f"--ddl {ddl} --rows {','.join(rows)} --data-only"), *method]


def peer(options, server, scratch):
    """Files, then rows, then keys; each phase begins when the one before has ended."""
    server.query(tables())
    primary, foreign = keys()
    phases = {}

    def phase(name, work):
        started = time.monotonic()
        work()
        phases[name] = time.monotonic() - started

    phase("files", lambda: output([options.tpchgen_cli, "csv", "-s", f"{options.scale:g}", "--overwrite", "--output-dir", scratch]))
    for table in TABLES:
        (Path(scratch) / f"{table}.csv").chmod(0o644)
    phase("rows", lambda: in_sessions(options, server, [
        [f"BEGIN; TRUNCATE {table}; COPY {table} FROM '{scratch}/{table}.csv' (FORMAT csv, HEADER, FREEZE); COMMIT;" for table in each]
        for each in SESSIONS]))
    for name, statements in [("primary keys", primary), ("foreign keys", foreign)]:
        phase(name, lambda: in_sessions(options, server, [
            [sql for table, sql in statements if table in each] for each in SESSIONS]))
    return {"wall": sum(phases.values()), "phases": phases}


def in_sessions(options, server, sessions):
    """A psql for each session, side by side."""
    command = [options.psql, "-XAtq", "-v", "ON_ERROR_STOP=1", server.url]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) for _ in sessions]
    for process, statements in zip(running, sessions):
        process.stdin.write("\n".join([SETTINGS, *statements]))
        process.stdin.close()
    if any([process.wait() for process in running]):
        sys.exit("a session failed")


def counted(server):
    return sum(int(server.query(f"SELECT count(*) FROM {table}")) for table in TABLES)


def check(server, way):
    """All keys are there and valid."""
    found = server.query("SELECT count(*) FILTER (WHERE contype = 'p'), count(*) FILTER (WHERE contype = 'f') "
                         "FROM pg_constraint WHERE convalidated AND connamespace = 'public'::regnamespace")
    if found != f"{len(PRIMARY)}|{len(FOREIGN)}":
        sys.exit(f"{way}: {found} keys")


if __name__ == "__main__":
    main()
