#!/usr/bin/env python3
"""How fast pgrig fills a whole schema, beside pg_restore -j of the same rows.

Starts a server of its own through pgrig and fills bench/schema.sql: four tables with identities, an enum, arrays, jsonb,
CHECKs, unique keys and foreign keys. The first fill is dumped (directory format, not compressed), then both take turns,
the first one changing from round to round: pgrig fill --data-only with the tables' creation, keys, indexes and proof of
the foreign keys, and pg_restore --jobs of the dump. Neither analyzes; pgrig's whole fill, with ANALYZE, is timed beside
them. After each the rows are counted. pgrig is also timed with --method copy.

Needs pg_dump, pg_restore and psql of the server's version or newer.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from common import arguments, output, parsed, save, serving, shown, spread, surroundings, timed

TABLES = ["customers", "products", "orders", "order_items"]
WAYS = ["pgrig", "pgrig with ANALYZE", "pgrig --method copy", "pg_restore"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--customers", type=int, default=500_000, help="three orders each, of two items [500000]")
    parser.add_argument("--jobs", type=int, default=2, help="of pg_restore [2]")
    parser.add_argument("--pg-dump", default="pg_dump")
    parser.add_argument("--pg-restore", default="pg_restore")
    options = parsed(parser)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        dump = str(Path(scratch) / "dump")
        timed(ways(options, server, dump)["pgrig"])
        rows = counted(server)
        output([options.pg_dump, "-Fd", "-Z0", "-j2", "-f", dump, server.url])
        times = {way: [] for way in WAYS}
        for number in range(options.trials):
            for way in WAYS[number % len(WAYS):] + WAYS[:number % len(WAYS)]:
                server.query("DROP TABLE IF EXISTS customers, products, orders, order_items; DROP TYPE IF EXISTS status")
                server.settle()
                times[way].append(timed(ways(options, server, dump)[way]))
                if counted(server) != rows:
                    sys.exit(f"{way}: {counted(server)} rows instead of {rows}")
            print(f"round {number + 1}: " + ", ".join(f"{way} {times[way][-1]['wall']:.2f} s" for way in WAYS), file=sys.stderr)
        record = {"benchmark": "schema", **surroundings(options, server), "rows": rows, "jobs": options.jobs,
                  "results": results(times), "trials": times}
    print("| way | seconds | rows/s | times pg_restore's speed (pairs) |\n|---|---|---|---|")
    for way, each in record["results"].items():
        print(f"| {way} | {shown(*each['seconds'])} | {sum(rows) / each['seconds'][1]:,.0f} | {shown(*each['times-pg_restore'])} |")
    save(options, server, record, f"{sum(rows)}-rows")


def results(times):
    """Least, median and greatest of each way's seconds, and of pg_restore's seconds by them, round by round."""
    def result(trials):
        ratios = [theirs["wall"] / mine["wall"] for mine, theirs in zip(trials, times["pg_restore"])]
        return {"seconds": spread([each["wall"] for each in trials]), "times-pg_restore": spread(ratios)}
    return {way: result(trials) for way, trials in times.items()}


def ways(options, server, dump):
    """The command line of each."""
    rows = f"customers={options.customers},products=10000,orders=3*customers,order_items=2*orders"
    fill = server.fill(f"--ddl {Path(__file__).with_name('schema.sql')} --rows {rows}")
    return {
        "pgrig": [*fill, "--data-only"],
        "pgrig with ANALYZE": fill,
        "pgrig --method copy": [*fill, "--data-only", "--method", "copy"],
        "pg_restore": [options.pg_restore, f"--jobs={options.jobs}", "-d", server.url, dump],
    }


def counted(server):
    return [int(server.query(f"SELECT count(*) FROM {table}")) for table in TABLES]


if __name__ == "__main__":
    main()
