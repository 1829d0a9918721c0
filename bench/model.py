#!/usr/bin/env python3
"""How faithful a copy is that pgrig makes from statistics, and how fast it is filled.

Starts a server of its own through pgrig. The original (`--original`, `--sql`) is one of:

- `tpch`: TPC-H's schema (bench/tpch.sql, primary and foreign keys) with the rows of tpchgen-cli;
- `tpcds`: TPC-DS (bench/tpcds.py);
- `market`: bench/market.sql, which no statistics object describes: rows per parent by Zipf's law, dependent columns, NULL patterns;
- `--sql FILE`: the database that psql makes of the file, for example pagila's or chinook's; give the option again for a second file.

Three copies are made of models of it: from statistics alone, with `--aggregates`, and with `--aggregates` but all texts replaced. The
first two keep the values of texts with at most 50 values (`--keep-values`). Each copy is measured by

- `pgrig model check --analyze-original --columns --execute`, with queries that this script draws: scans, and joins of up to three tables
  along foreign keys, with ranges of numbers and times whose ends are quantiles of the original, and with one value of a text
  whose values are kept. TPC-DS has its own 99 queries, too, as far as PostgreSQL can plan them;
- bench/faithful.py, which counts fields of pg_stats and shares no code with pgrig; sizes of tables and indexes;
- bench/judges.py: SDMetrics' report of all tables if Python has it; texts and rows of the original that the copy or the model has.

The market has measures of its own; and if Python has SDV, its Gaussian copula learns the table `clients` and makes as many rows; its
seconds are beside those that pgrig needs for the capture and all three tables.

With `--speed`, `tpch` is filled in turns, the first one changing from round to round: `pgrig fill --model` and `pgrig fill` of the same
tables and numbers of rows with random values, keys and foreign keys included, neither analyzed. Nothing else is measured.

Needs psql, and tpchgen-cli 4 (PyPI, or crates.io); for TPC-DS duckdb and duckdb-extension-tpcds (PyPI).
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from faithful import distances, statistics_share
from judges import categories, leaks, report, synthesized
from common import arguments, output, parsed, save, serving, shown, spread, surroundings, timed
from tpch import TABLES, keys, peer, tables

ENDS = ["SELECT count(*) FROM {}", "SELECT {key}, count(*) FROM {} GROUP BY 1", "SELECT * FROM {} ORDER BY {key} LIMIT 20"]


class Database:
    """One of the server's."""

    def __init__(self, server, options, name):
        self.server, self.options, self.name = server, options, name
        self.url = server.url.replace("/postgres?", f"/{name}?")
        server.query(f"CREATE DATABASE {name}")

    def query(self, sql):
        return output([self.options.psql, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url])

    def csv(self, sql):
        return output([self.options.psql, "-Xq", "--csv", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=float, default=1, help="scale factor of TPC-H and TPC-DS [1]")
    parser.add_argument("--queries", type=int, default=120, help="how many are drawn [120]")
    parser.add_argument("--execute-timeout", default="10s", help="of a query that is run [10s]")
    parser.add_argument("--tpchgen-cli", default="tpchgen-cli")
    parser.add_argument("--original", default="tpch", choices=["tpch", "market", "tpcds"])
    parser.add_argument("--sql", action="append", help="the original: a file of statements for psql")
    parser.add_argument("--ways", default="statistics,aggregates,replaced", help="copies [statistics,aggregates,replaced]")
    parser.add_argument("--no-judges", action="store_true", help="without SDMetrics and the search for texts (large originals)")
    parser.add_argument("--no-times", action="store_true", help="leave out seconds: of a build without optimizations")
    parser.add_argument("--speed", action="store_true", help="measure the speed of fills of TPC-H, not the fidelity")
    options = parsed(parser)
    (speed if options.speed else compared)(options)


def speed(options):
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        original, copy = Database(server, options, "original"), Database(server, options, "copy")
        made(options, original, scratch)
        model = Path(scratch) / "original.model.toml"
        server.pgrig("model", "capture", "-q", "-d", "original", "-o", str(model), "--aggregates")
        output(server.fill(f"--model {model} -d copy --data-only"))
        times = rounds(options, server, original, copy, model, scratch)
        rows = sum(int(original.query(f"SELECT count(*) FROM {table}")) for table in TABLES)
        ratios = [theirs / mine for mine, theirs in zip(times["model"], times["random"])]
        record = {"benchmark": "model-speed", **surroundings(options, server), "scale": options.scale, "rows": rows,
                  "tpchgen-cli": output([options.tpchgen_cli, "--version"]),
                  "results": {way: spread(each) for way, each in times.items()} | {"speed of random": spread(ratios)}, "trials": times}
    print("| way | seconds | rows/s |\n|---|---|---|")
    for way, each in times.items():
        print(f"| {way} | {shown(*spread(each))} | {rows / spread(each)[1]:,.0f} |")
    print(f"\nmodel: {shown(*spread(ratios))} times the speed of random values, in pairs")
    save(options, server, record, f"scale{options.scale:g}")


MARKET = ["clients", "orders", "tickets"]
RANKED = "dense_rank() OVER (ORDER BY {} COLLATE \"C\")"
OF_CLIENTS = "SELECT least(n, 60), count(*) FROM (SELECT count(o.id) AS n FROM clients c LEFT JOIN {} o ON o.client_id = c.id GROUP BY c.id) x GROUP BY 1"


def pairs(table, one, other):
    """Shares of pairs of values, each by its place in the order of values, so that replaced ones compare."""
    ranks = f"{RANKED.format(one)} AS a, {RANKED.format(other)} AS b"
    return "shares", f"SELECT a || ' ' || b, count(*) FROM (SELECT {ranks} FROM {table}) x GROUP BY 1"


def ranks(table, one, other):
    inner = f"SELECT rank() OVER (ORDER BY {one}) AS a, rank() OVER (ORDER BY {other}) AS b FROM {table}"
    return "correlation", f"SELECT corr(a, b) FROM ({inner}) x"


def nulls(table, *columns):
    pattern = " || ".join(f"({column} IS NULL)::int::text" for column in columns)
    return "shares", f"SELECT {pattern}, count(*) FROM {table} GROUP BY 1"


MEASURES = {
    "orders per client (total variation)": ("shares", OF_CLIENTS.format("orders")),
    "tickets per client (total variation)": ("shares", OF_CLIENTS.format("tickets")),
    "orders joined with themselves (factor)": ("number", "SELECT sum(n * n) FROM (SELECT count(*) AS n FROM orders GROUP BY client_id) x"),
    "orders joined with tickets (factor)": ("number", "SELECT count(*) FROM orders JOIN tickets USING (client_id)"),
    "country and city (total variation)": pairs("clients", "country", "city"),
    "state and kind (total variation)": pairs("orders", "state", "kind"),
    "country and segment (total variation)": pairs("clients", "country", "segment::text"),
    "NULLs of phone and mobile (total variation)": nulls("clients", "phone", "mobile"),
    "NULLs of sent and back (total variation)": nulls("orders", "sent", "back"),
    "state and NULLs of sent (total variation)":
        ("shares", f"SELECT a || ' ' || (sent IS NULL)::int, count(*) FROM (SELECT {RANKED.format('state')} AS a, sent FROM orders) x GROUP BY 1"),
    "correlation of price and weight (difference)": ranks("orders", "price", "weight"),
    "correlation of income and spent (difference)": ranks("clients", "income", "spent"),
}


WAYS = {"statistics": [], "aggregates": ["--aggregates"], "replaced": ["--aggregates"]}


def compared(options):
    """Copies from statistics alone and with aggregates, beside the original."""
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        original = Database(server, options, "original")
        name, tables, queries = made(options, original, scratch)
        kept = categories(original)
        queries |= drawn_queries(original, tables, options)
        folder = Path(scratch) / "queries"
        folder.mkdir()
        for query, sql in queries.items():
            (folder / f"{query}.sql").write_text(sql)
        judge = None if options.no_judges else report(original)
        found = {}
        for way in options.ways.split(","):
            found[way] = measured(options, server, original, scratch, way, kept if way != "replaced" else [], judge, name, tables)
            print(f"{way}: {found[way]['results']}", file=sys.stderr, flush=True)
        rows = {table: int(original.query(f"SELECT count(*) FROM {table}")) for table in tables}
        rival = synthesized(original, of_pair) if name == "market" else None
        record = {"benchmark": f"model-{name}", **surroundings(options, server), "scale": options.scale, "rows": rows, "queries": len(queries),
                  "kept": kept, "ways": found} | ({"SDV, clients only": {"results": rival[0], "seconds": rival[1]}} if rival else {})
    print(f"| measure | {' | '.join(found)} |\n|---{'|---' * len(found)}|")
    for measure in dict.fromkeys(measure for each in found.values() for measure in each["results"]):
        each = (each["results"].get(measure) for each in found.values())
        print(f"| {measure} | {' | '.join('' if one is None else f'{one:.4g}' for one in each)} |")
    if rival:
        print("SDV, clients only:", *rival)
    size = f"scale{options.scale:g}" if name.startswith("tpc") else f"{sum(rows.values())}-rows"
    save(options, server, record, size)


def measured(options, server, original, scratch, way, kept, judge, name, tables):
    """A copy in one way: its figures, and what they are from."""
    model, document = Path(scratch) / f"{way}.model.toml", Path(scratch) / f"{way}.json"
    copy = Database(server, options, way)
    keep = [argument for column in kept for argument in ("--keep-values", column)]
    began = time.monotonic()
    server.pgrig("model", "capture", "-q", "-d", "original", "-o", str(model), *WAYS[way], *keep)
    captured = time.monotonic()
    output(server.fill(f"--model {model} -d {way}"))
    seconds = {"capture": captured - began, "fill": time.monotonic() - captured}
    command = [options.pgrig, "model", "check", "original", way, "--analyze-original", "--columns", "--queries", str(Path(scratch) / "queries"), "--execute",
               "--execute-timeout", options.execute_timeout, "-q", "--instance", server.instance, "--json", str(document)]
    check = subprocess.run(command, capture_output=True, text=True)
    if check.returncode != 0:
        sys.exit(check.stderr)
    results = of_document(json.loads(document.read_text()), check.stdout)
    within, fields = statistics_share(original, copy, tables)
    results |= {"fields of pg_stats as in the original (witness)": within / fields, "bytes of the model for a column": per_column(model)}
    more = ({} if options.no_times else {"seconds": seconds}) | {"check": check.stdout.splitlines(), "notes": json.loads(document.read_text())["notes"]}
    if judge:
        scores, more["SDMetrics, the least"] = judge.scores(copy)
        more["leaks"] = leaks(original, copy, model.read_text(), tomllib.loads(model.read_text())["ddl"], kept)
        results |= scores
        results["long texts of the original in the copy and the model"] = len(more["leaks"]["of these in the copy"]) + len(more["leaks"]["of these in the model"] or [])
    if name == "market":
        results |= {**distances(original, copy, MEASURES), **judged(options, original, copy)}
    server.query(f"DROP DATABASE {way}")
    return {"results": results, **more}


def per_column(model):
    return len(model.read_text()) / max(1, model.read_text().count("[[tables.columns]]"))


def of_document(document, text):
    """Figures of a run document of `model check`."""
    trial = document["trials"][0]
    seen = {one["name"]: one["value"] for one in trial["observations"]}
    found = {"fields of pg_stats as in the original": seen["fields-within"] / seen["fields"],
             "the original with itself": seen["own-fields-within"] / seen["own-fields"],
             "plans of the same shape": seen["plans-same"] / seen["plans"],
             "plans, the original with itself": seen["own-plans-same"] / seen["own-plans"]}
    estimates = re.search(r"estimates differ by a factor of ([\d.]+) in the median, ([\d.]+) at p95", text)
    found |= {"estimates, median factor": float(estimates[1]), "estimates, p95 factor": float(estimates[2])} if estimates else {}
    for name in ("rows-of-scans-factor", "rows-of-joins-factor", "original-estimates-of-joins-factor", "copy-estimates-of-joins-factor"):
        found |= {f"{name}-{part}": seen[f"{name}-{part}"] for part in ("median", "p90", "p95") if f"{name}-{part}" in seen}
    for name in ("column", "pair", "rows-per-key"):
        found |= {of: seen[of] for of in (f"{name}-distance", f"own-{name}-distance") if of in seen}
    sizes = [event["what"]["bytes"] for event in trial["events"] if event["what"]["event"] == "table"]
    # Tables of a few pages differ by one.
    off = [abs(one["copy"] / one["original"] - 1) for one in sizes if one["original"] >= 1 << 20]
    found["size of a table of 1 MB and more, the greatest difference"] = max(off, default=0.0)
    found["executed queries"], found["broken keys"] = seen["executed"], seen["broken-keys"]
    return found


def made(options, original, scratch):
    """Makes the original. Its name, tables and queries."""
    if not options.sql and options.original == "tpch":
        peer(options, original, scratch)
        for file in Path(scratch).glob("*.csv"):
            file.unlink()
        original.query("VACUUM ANALYZE")
        return "tpch", TABLES, {}
    if not options.sql and options.original == "tpcds":
        from tpcds import load, planned
        tables, queries = load(options, original, scratch)
        original.query("VACUUM ANALYZE")
        return "tpcds", tables, planned(original, queries)
    files = options.sql or [str(Path(__file__).parent / "market.sql")]
    for file in files:
        output([options.psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-f", file, original.url])
    # Indexes that were there before the rows grew row by row: the copy's are compared with new ones.
    original.query("REINDEX DATABASE original")
    original.query("VACUUM ANALYZE")
    listed = original.query("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
                            "AND relnamespace = 'public'::regnamespace ORDER BY 1").split()
    return (Path(files[0]).stem.split(".")[0], listed, {}) if options.sql else ("market", MARKET, {})


def judged(options, original, copy):
    """SDMetrics' scores of numbers and times, pairs and rows per parent: 1 is best."""
    try:
        import pandas
        from sdmetrics.single_column import KSComplement
    except ImportError:
        print("SDMetrics is not installed: its scores are left out", file=sys.stderr)
        return {}
    columns = {"clients": ["income", "spent"], "orders": ["price", "weight"]}
    found = {}
    for table, (one, other) in columns.items():
        def frame(database):
            lines = database.query(f"SELECT {one}, {other} FROM {table} ORDER BY md5(id::text) LIMIT 20000").splitlines()
            return pandas.DataFrame([[float(value) for value in line.split("|")] for line in lines], columns=[one, other])
        found |= of_pair(frame(original), frame(copy), one, other)
    def counts(database):
        lines = database.query("SELECT count(o.id) FROM clients c LEFT JOIN orders o ON o.client_id = c.id GROUP BY c.id").splitlines()
        return pandas.Series([float(line) for line in lines])
    found["SDMetrics KSComplement of orders per client (cardinality)"] = float(KSComplement.compute(counts(original), counts(copy)))
    return found


def of_pair(ours, theirs, one, other):
    """SDMetrics' scores of two columns of numbers."""
    from sdmetrics.column_pairs import CorrelationSimilarity
    from sdmetrics.single_column import KSComplement
    found = {f"SDMetrics KSComplement of {column}": float(KSComplement.compute(ours[column], theirs[column])) for column in (one, other)}
    score = CorrelationSimilarity.compute(ours[[one, other]], theirs[[one, other]], coefficient="Spearman")
    return found | {f"SDMetrics CorrelationSimilarity of {one}, {other}": float(score)}


def rounds(options, server, original, copy, model, scratch):
    """Seconds of each way's fills."""
    ddl = Path(scratch) / "tpch.sql"
    ddl.write_text("\n".join([tables(), *(sql for each in keys() for _, sql in each)]))
    counts = ",".join(f"{table}={original.query(f'SELECT count(*) FROM {table}')}" for table in TABLES)
    ways = {"model": f"--model {model}", "random": f"--ddl {ddl} --rows {counts}"}
    times = {way: [] for way in ways}
    for number in range(options.trials):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        for way in order:
            copy.query(f"DROP TABLE IF EXISTS {', '.join(TABLES)}")
            server.settle()
            times[way].append(timed(server.fill(f"{ways[way]} -d copy --data-only"))["wall"])
        print(f"round {number + 1}: " + ", ".join(f"{way} {times[way][-1]:.2f} s" for way in ways), file=sys.stderr)
    return times


KEYS = """SELECT c.conrelid::regclass, c.confrelid::regclass, string_agg(format('%s.%I = %s.%I', c.conrelid::regclass, a.attname, c.confrelid::regclass, b.attname), ' AND ')
    FROM pg_constraint c, unnest(c.conkey, c.confkey) k (own, other) JOIN pg_attribute a ON a.attnum = k.own JOIN pg_attribute b ON b.attnum = k.other
    WHERE c.contype = 'f' AND c.conparentid = 0 AND a.attrelid = c.conrelid AND b.attrelid = c.confrelid AND c.conrelid <> c.confrelid
    GROUP BY c.oid, c.conrelid, c.confrelid ORDER BY 1, 2, 3"""
# Columns of numbers and times that are no keys.
RANGES = """SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_stats s ON s.schemaname = 'public' AND s.tablename = c.relname AND s.attname = a.attname
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0
      AND t.typname IN ('int2', 'int4', 'int8', 'numeric', 'float8', 'date', 'timestamp', 'timestamptz') AND s.inherited = (c.relkind = 'p')
      AND (s.n_distinct < 0 OR s.n_distinct > 10) AND s.null_frac < 0.9 AND c.reltuples >= 100 AND a.attname <> 'last_update'
      AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'f', 'u') AND a.attnum = ANY (k.conkey)) ORDER BY 1, 2"""


def drawn_queries(original, tables, options):
    """Scans and joins along foreign keys, with one or two conditions: ranges whose ends are quantiles, or one value of a text that is kept."""
    drawn = random.Random(options.seed)
    columns, constants = {}, {}
    for table, column in (line.split("|") for line in original.query(RANGES).splitlines()):
        sql = f"SELECT percentile_disc(array(SELECT i / 20.0 FROM generate_series(0, 20) i)) WITHIN GROUP (ORDER BY {column})::text[]"
        values = original.query(f"SELECT array_to_string(q, '|') FROM ({sql} AS q FROM {table}) x").split("|")
        columns.setdefault(table, {})[column] = values
    for name in categories(original):
        table, column = name.split(".")
        listed = original.query(f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1").splitlines()
        constants.setdefault(table, {})[column] = listed
    joins = [tuple(line.split("|")) for line in original.query(KEYS).splitlines()]
    joins = [join for join in joins if join[0] in tables and join[1] in tables]
    found = {}
    while len(found) < options.queries:
        used = [drawn.choice(sorted(columns))]
        source = used[0]
        for _ in range(drawn.choice([0, 1, 1, 2])):
            possible = [(one, other, on) for one, other, on in joins if (one in used) != (other in used)]
            if possible:
                one, other, on = drawn.choice(possible)
                added = other if one in used else one
                source += f" JOIN {added} ON {on}"
                used.append(added)
        conditions = []
        for _ in range(drawn.choice([1, 1, 2])):
            table = drawn.choice([table for table in used if table in columns])
            if table in constants and drawn.random() < 0.3:
                column = drawn.choice(sorted(constants[table]))
                value = drawn.choice(constants[table][column]).replace("'", "''")
                conditions.append(f"{table}.{column} = '{value}'")
            else:
                column = drawn.choice(sorted(columns[table]))
                low, high = sorted(drawn.sample(range(21), 2))
                conditions.append(f"{table}.{column} BETWEEN '{columns[table][column][low]}' AND '{columns[table][column][high]}'")
        key = f"{used[0]}.{drawn.choice(sorted(columns[used[0]]))}"
        sql = drawn.choice(ENDS).format(f"{source} WHERE {' AND '.join(conditions)}", key=key)
        found[f"drawn{len(found):03}"] = sql
    return found


if __name__ == "__main__":
    main()
