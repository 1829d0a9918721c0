#!/usr/bin/env python3
"""How fast pgrig fills a table of 40 columns, beside the disk itself.

Starts a server of its own through pgrig. In shuffled rounds on the same file system: a plain sequential O_DIRECT write of
as many bytes as the table takes (the roof, as in direct.py), and pgrig's fills of bench/columns.sql: text, numeric,
timestamptz, jsonb, uuid, enums, NULLs and a primary key. Prints medians and, round by round, ratios.

Needs psql.
"""

import argparse
import os
import random
import sys
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed
from direct import ROOF, roof

# At scale 1.
ROWS = 5_000_000
DIRECT, WHOLE, COPY = "direct", "direct with ANALYZE", "COPY"
FILLS = {DIRECT: "--method direct --data-only", WHOLE: "--method direct", COPY: "--method copy --data-only"}
ALL = [ROOF, *FILLS]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--no-copy", action="store_true", help="leave COPY out, which takes most of the time")
    parser.add_argument("--scale", type=float, default=1, help=f"times {ROWS:,} rows [1]")
    parser.add_argument("--writers", type=int, default=(os.cpu_count() or 1) + 1, help="threads that write the roof")
    options = parsed(parser)
    rows = round(ROWS * options.scale)
    ways = [what for what in ALL if not (options.no_copy and what == COPY)]
    chance = random.Random(options.seed)
    with serving(options) as server:
        # What the table takes: the roof writes as much.
        timed(fill(server, DIRECT, rows))
        size = bytes_of(server)
        times = {what: [] for what in ways}
        for number in range(options.trials):
            order = list(ways)
            chance.shuffle(order)
            for what in order:
                server.query("DROP TABLE IF EXISTS wide; DROP TYPE IF EXISTS state, channel")
                server.settle()
                if what == ROOF:
                    times[what].append(roof(size, options.writers, server.home))
                    continue
                times[what].append({**timed(fill(server, what, rows)), "bytes": bytes_of(server)})
                if int(server.query("SELECT count(*) FROM wide")) != rows:
                    sys.exit(f"{what}: not {rows} rows")
            print(f"round {number + 1}: " + ", ".join(f"{what} {times[what][-1]['wall']:.2f} s" for what in ways), file=sys.stderr)
        record = {"benchmark": "columns", "writers": options.writers, "rows": rows, "bytes": size,
                  **surroundings(options, server), "results": results(times), "trials": times}
    print(f"{rows:,} rows, {size / 1e6:,.0f} MB\n\n| what | seconds | MB/s | rows/s | of the roof (pairs) |\n|---|---|---|---|---|")
    for what, each in record["results"].items():
        seconds = each["seconds"][1]
        print(f"| {what} | {shown(*each['seconds'])} | {size / seconds / 1e6:.0f} | {rows / seconds:,.0f} | {shown(*each['of-roof'])} |")
    save(options, server, record, f"scale{options.scale:g}")


def results(times):
    """Least, median and greatest of seconds, and of bytes per second by the roof's, round by round."""
    def rate(trial):
        return trial["bytes"] / trial["wall"]
    return {
        what: {"seconds": spread([trial["wall"] for trial in trials]),
               "of-roof": spread([rate(trial) / rate(roof) for trial, roof in zip(trials, times[ROOF])])}
        for what, trials in times.items()
    }


def fill(server, what, rows):
    return server.fill(f"--ddl {Path(__file__).with_name('columns.sql')} --table wide --rows {rows} {FILLS[what]}")


def bytes_of(server):
    return int(server.query("SELECT pg_total_relation_size('wide')"))


if __name__ == "__main__":
    main()
