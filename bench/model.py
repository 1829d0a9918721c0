#!/usr/bin/env python3
"""How faithful a copy is that pgrig makes from statistics, and how fast it is filled.

Starts a server of its own through pgrig. The original is TPC-H's schema (bench/tpch.sql, primary and foreign keys) with the
rows of tpchgen-cli. Then:

- `pgrig model capture` of the original, `pgrig fill --model` of a copy, `pgrig model check --analyze-original` of both, with
  queries over the keys that this script draws: scans and joins of up to three tables, with ranges of numbers and dates whose
  ends are quantiles of the original, so that none depends on a text.
- Unless `--trials 0` leaves it out: in turns, the first one changing from round to round: `pgrig fill --model` and `pgrig fill` of the same tables and numbers of
  rows with random values, keys and foreign keys included, neither analyzed.

With `--original market` the original is bench/market.sql instead, which no statistics object describes: rows per parent by
Zipf's law, dependent columns, NULL patterns. Copies of models with and without `--aggregates` are then measured by
bench/faithful.py, which shares no code with pgrig, by `pgrig model check --columns`, and by SDMetrics if Python has it. If Python
has SDV, its Gaussian copula learns the table `clients` and makes as many rows, judged by SDMetrics in the same way; its seconds are
beside those that pgrig needs for the capture and all three tables.

With `--original tpcds`, it is TPC-DS (bench/tpcds.py), with its queries as far as PostgreSQL can plan them. With `--sql FILE` it is
the database that psql makes of the file, for example pagila's or chinook's; give the option again for a second file. Both are
measured in the same way, without the market's own measures.

Needs psql, and tpchgen-cli 4 (PyPI, or crates.io); for TPC-DS duckdb and duckdb-extension-tpcds (PyPI).
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from faithful import distances, statistics_share, total_variation
from common import arguments, output, parsed, save, serving, shown, spread, surroundings, timed
from tpch import TABLES, keys, peer, tables

COLUMNS = {
    "lineitem": ["l_quantity", "l_extendedprice", "l_discount", "l_shipdate", "l_commitdate", "l_receiptdate"],
    "orders": ["o_totalprice", "o_orderdate"], "customer": ["c_acctbal"], "part": ["p_size", "p_retailprice"],
    "supplier": ["s_acctbal"], "partsupp": ["ps_availqty", "ps_supplycost"],
}
JOINS = [
    ("lineitem", "orders", "l_orderkey = o_orderkey"), ("lineitem", "part", "l_partkey = p_partkey"),
    ("lineitem", "supplier", "l_suppkey = s_suppkey"), ("orders", "customer", "o_custkey = c_custkey"),
    ("partsupp", "part", "ps_partkey = p_partkey"), ("partsupp", "supplier", "ps_suppkey = s_suppkey"),
]
ENDS = ["SELECT count(*) FROM {}", "SELECT {key}, count(*) FROM {} GROUP BY 1", "SELECT * FROM {} ORDER BY {key} LIMIT 20"]


class Database:
    """One of the server's."""

    def __init__(self, server, options, name):
        self.server, self.options, self.name = server, options, name
        self.url = server.url.replace("/postgres?", f"/{name}?")
        server.query(f"CREATE DATABASE {name}")

    def query(self, sql):
        return output([self.options.psql, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H's scale factor [1]")
    parser.add_argument("--queries", type=int, default=120, help="how many [120]")
    parser.add_argument("--tpchgen-cli", default="tpchgen-cli")
    parser.add_argument("--original", default="tpch", choices=["tpch", "market", "tpcds"])
    parser.add_argument("--sql", action="append", help="the original: a file of statements for psql")
    parser.add_argument("--aggregates", action="store_true", help="capture TPC-H with --aggregates")
    options = parsed(parser)
    if options.original != "tpch" or options.sql:
        return compared(options)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        original, copy = Database(server, options, "original"), Database(server, options, "copy")
        peer(options, original, scratch)
        for file in Path(scratch).glob("*.csv"):
            file.unlink()
        original.query("VACUUM ANALYZE")
        model = Path(scratch) / "original.model.toml"
        server.pgrig("model", "capture", "-q", "-d", "original", "-o", str(model), *(["--aggregates"] if options.aggregates else []))
        output([*server.fill(f"--model {model} -d copy --data-only")])
        drawn = Path(scratch) / "queries"
        drawn.mkdir()
        for number, sql in enumerate(queries(original, options)):
            (drawn / f"{number:03}.sql").write_text(sql)
        command = [options.pgrig, "model", "check", "original", "copy", "--analyze-original", "--columns", "--queries", str(drawn),
                   "-q", "--instance", server.instance]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode != 0:
            sys.exit(found.stderr)
        print(found.stdout)
        within, fields = statistics_share(original, copy, TABLES)
        print(f"witness     {within / fields:.1%} of {fields} fields, without histograms")
        times = rounds(options, server, original, copy, model, scratch) if options.trials else {}
        rows = sum(int(original.query(f"SELECT count(*) FROM {table}")) for table in TABLES)
        ratios = [theirs / mine for mine, theirs in zip(times.get("model", []), times.get("random", []))]
        record = {"benchmark": "model", **surroundings(options, server), "scale": options.scale, "rows": rows,
                  "model_bytes": model.stat().st_size, "check": found.stdout.splitlines(), "queries": options.queries,
                  "aggregates": options.aggregates, "witness": {"within": within, "fields": fields},
                  "tpchgen-cli": output([options.tpchgen_cli, "--version"]),
                  "results": {way: spread(each) for way, each in times.items()} | ({"speed of random": spread(ratios)} if times else {}),
                  "trials": times}
    print("| way | seconds | rows/s |\n|---|---|---|")
    for way, each in times.items():
        print(f"| {way} | {shown(*spread(each))} | {rows / spread(each)[1]:,.0f} |")
    if times:
        print(f"\nmodel: {shown(*spread(ratios))} times the speed of random values, in pairs")
    save(options, server, record, f"scale{options.scale:g}{'-aggregates' if options.aggregates else ''}{'' if times else '-fidelity'}")


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


def compared(options):
    """Copies from statistics alone and with aggregates, beside the original."""
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        original = Database(server, options, "original")
        name, tables, queries = made(options, original, scratch)
        is_market = name == "market"
        results, bytes_of, seconds, checks = {}, {}, {}, {}
        more = ["--analyze-original"]
        if queries:
            (Path(scratch) / "queries").mkdir()
            for query, sql in queries.items():
                (Path(scratch) / "queries" / f"{query}.sql").write_text(sql)
            more += ["--queries", str(Path(scratch) / "queries")]
        for way, flags in {"statistics": [], "aggregates": ["--aggregates"]}.items():
            model = Path(scratch) / f"{way}.model.toml"
            copy = Database(server, options, way)
            began = time.monotonic()
            server.pgrig("model", "capture", "-q", "-d", "original", "-o", str(model), *flags)
            captured = time.monotonic()
            output([*server.fill(f"--model {model} -d {way}")])
            seconds[f"pgrig, {way}"] = {"capture": captured - began, "fill": time.monotonic() - captured}
            check = output([options.pgrig, "model", "check", "original", way, "--columns", "-q", "--instance", server.instance, *more])
            checks[way] = check.splitlines()
            within, fields = statistics_share(original, copy, tables)
            results[way] = {"fields of pg_stats within tolerance (witness)": within / fields}
            if is_market:
                results[way] |= {**distances(original, copy, MEASURES), **judged(options, original, copy)}
            bytes_of[way] = model.stat().st_size
            server.query(f"DROP DATABASE {way}")
        rows = {table: int(original.query(f"SELECT count(*) FROM {table}")) for table in tables}
        rival = synthesized(original) if is_market else None
        if rival:
            results["SDV, clients only"], seconds["SDV, clients only"] = rival
        record = {"benchmark": f"model-{name}", **surroundings(options, server), "rows": rows, "model_bytes": bytes_of,
                  "queries": len(queries), "results": results, "seconds": seconds, "checks": checks}
    print(f"| measure | {' | '.join(results)} |\n|---{'|---' * len(results)}|")
    for measure in results["statistics"]:
        found = (f"{each[measure]:.3f}" if measure in each else "" for each in results.values())
        print(f"| {measure} | {' | '.join(found)} |")
    for way, check in checks.items():
        print(f"{way}:", *check, sep="\n  ")
    print(seconds)
    save(options, server, record, f"{sum(rows.values())}-rows")


def made(options, original, scratch):
    """Makes the original. Its name, tables and queries."""
    if options.original == "tpcds" and not options.sql:
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


def synthesized(original):
    """SDV's copy of the clients: scores and seconds."""
    try:
        import pandas
        from sdv.metadata import Metadata
        from sdv.single_table import GaussianCopulaSynthesizer
    except ImportError:
        print("SDV is not installed: it is left out", file=sys.stderr)
        return None
    names = ["id", "country", "city", "segment", "phone", "mobile", "since", "income", "spent"]
    lines = original.query(f"SELECT {', '.join(names)} FROM clients").splitlines()
    table = pandas.DataFrame([[value or None for value in line.split("|")] for line in lines], columns=names)
    table = table.astype({"id": int, "segment": int, "income": float, "spent": float})
    metadata = Metadata.detect_from_dataframe(table, table_name="clients")
    began = time.monotonic()
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit(table)
    learned = time.monotonic()
    made = synthesizer.sample(len(table))
    seconds = {"capture": learned - began, "fill": time.monotonic() - learned}
    def nulls(frame):
        return ((~frame["phone"].isna()).astype(str) + (~frame["mobile"].isna()).astype(str)).value_counts(normalize=True).to_dict()
    def pair(frame):
        return (frame["country"] + " " + frame["city"]).value_counts(normalize=True).to_dict()
    return of_pair(table, made, "income", "spent") | {
        "country and city (total variation)": total_variation(pair(table), pair(made)),
        "NULLs of phone and mobile (total variation)": total_variation(nulls(table), nulls(made)),
    }, seconds


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


def queries(original, options):
    """Scans and joins, with one or two ranges."""
    drawn = random.Random(options.seed)
    quantiles = {}
    for table, columns in COLUMNS.items():
        for column in columns:
            sql = f"SELECT percentile_disc(array(SELECT i / 20.0 FROM generate_series(0, 20) i)) WITHIN GROUP (ORDER BY {column})"
            values = original.query(f"{sql} FROM {table}")
            quantiles[column] = values.strip("{}").split(",")
    for _ in range(options.queries):
        used = [drawn.choice(list(COLUMNS))]
        source = used[0]
        for _ in range(drawn.choice([0, 1, 1, 2])):
            possible = [(one, other, on) for one, other, on in JOINS if (one in used) != (other in used)]
            one, other, on = drawn.choice(possible)
            added = other if one in used else one
            source += f" JOIN {added} ON {on}"
            used.append(added)
        conditions = []
        for _ in range(drawn.choice([1, 1, 2])):
            column = drawn.choice(COLUMNS[drawn.choice(used)])
            low, high = sorted(drawn.sample(range(21), 2))
            conditions.append(f"{column} BETWEEN '{quantiles[column][low]}' AND '{quantiles[column][high]}'")
        key = drawn.choice(COLUMNS[used[0]])
        yield drawn.choice(ENDS).format(f"{source} WHERE {' AND '.join(conditions)}", key=key)


if __name__ == "__main__":
    main()
