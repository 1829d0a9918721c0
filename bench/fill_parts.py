#!/usr/bin/env python3
"""pgrig fill in parts against one process, on one machine.

Starts a server of its own through pgrig. In shuffled rounds, the same tables are filled by one process with as many streams as there
are parts, by one process as it chooses itself (COPY, frozen), and by the parts, a stream each. Rows/s are those of the load: from the
start of the first process to the end of all, less the steps after the rows, which one process runs. After each fill, a sum over all
rows must be the same. Prints medians, and the ratio of rows/s of the parts to those of one process, round by round: the geometric mean
with the two-sided 95 % interval of Student's t.

Needs psql. Everything goes into one file in records/.
"""

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings

PARTS, SAME, DEFAULT = "parts", "one process, as many streams", "one process, default"
LATER = ("vacuum", "primary-keys")
TABLES = ("accounts", "branches", "tellers")
# 97.5 % quantiles of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228, 11: 2.201,
           12: 2.179, 13: 2.160, 14: 2.145, 15: 2.131, 16: 2.120, 17: 2.110, 18: 2.101, 19: 2.093, 20: 2.086, 21: 2.080,
           22: 2.074, 23: 2.069}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--unlogged", action="store_true")
    parser.add_argument("--seconds", type=int, default=3600, help="begin no further round after this time")
    parser.set_defaults(trials=12, profile="stock")
    options = parsed(parser)
    if not 2 <= options.trials <= len(STUDENT) + 1:
        sys.exit(f"--trials {options.trials}: give 2 to {len(STUDENT) + 1}")
    chance = random.Random(options.seed)
    until = time.monotonic() + options.seconds
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, server, Path(scratch))
        for what in (SAME, PARTS):
            bench.fill(what)
        trials = []
        for number in range(options.trials):
            if number > 1 and time.monotonic() > until:
                break
            order = [PARTS, SAME, DEFAULT]
            chance.shuffle(order)
            trials += [{"round": number, **bench.fill(what)} for what in order]
        record = {"benchmark": "fill-parts", **surroundings(options, server), "parts": options.parts, "rows": options.rows,
                  "unlogged": options.unlogged, "checksum": bench.checksum, "results": results(trials), "trials": trials}
    for name, result in record["results"].items():
        print(f"{name}: {result if isinstance(result, dict) else shown(*result)}")
    save(options, server, record, f"{options.parts}-parts")


class Bench:
    def __init__(self, options, server, scratch):
        self.options, self.server, self.scratch = options, server, scratch
        self.checksum = None
        self.documents = []

    def command(self, number, flags):
        unlogged = ["--unlogged"] if self.options.unlogged else []
        return [*self.server.fill(f"--rows {self.options.rows} {flags}"), *unlogged, "--json", str(self.scratch / f"{number}.json")]

    def flags(self, what):
        """The options of each process."""
        parts = self.options.parts
        return {
            PARTS: [f"--streams 1 --part {number}/{parts}" for number in range(1, parts + 1)],
            SAME: [f"--method copy --streams {parts} --chunk {self.chunk()}"],
            DEFAULT: ["--method copy"],
        }[what]

    def fill(self, what):
        """One fill, by all its processes."""
        names = ", ".join(f"pgbench_{name}" for name in (*TABLES, "history"))
        self.server.query(f"DROP TABLE IF EXISTS {names}")
        self.server.settle()
        flags = self.flags(what)
        started = time.monotonic()
        running = [subprocess.Popen(self.command(number, each), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                   for number, each in enumerate(flags)]
        for process in running:
            _, said = process.communicate()
            if process.returncode != 0:
                sys.exit(f"{' '.join(process.args)} failed:\n{said}")
        wall = time.monotonic() - started
        self.documents = [json.loads((self.scratch / f"{number}.json").read_text()) for number in range(len(flags))]
        seen = [{each["name"]: each["value"] for each in document["trials"][0]["observations"]} for document in self.documents]
        later = sum(each.get(step, 0) for each in seen for step in LATER)
        assert sum(each["rows"] for each in seen) == self.options.rows, seen
        assert sum("primary-keys" in each for each in seen) == 1, "the last steps are done once"
        self.check()
        trial = {"what": what, "wall": wall, "load": wall - later, "client-cpu": sum(each["client-cpu"] for each in seen),
                 "heap": max(each["heap"] for each in seen)}
        print(f"{what}: {trial['wall']:.2f} s, load {trial['load']:.2f} s", file=sys.stderr)
        return trial

    def chunk(self):
        """Bytes of the chunks of the parts, so that one process commits as often."""
        rows = max(25_000, -(-self.options.rows // (4 * self.options.parts)))
        return f"{min(rows * 8192 // 61, 64 << 20)}B"

    def check(self):
        sums = [self.server.query(f"SELECT count(*), sum(hashtext(t::text)::bigint) FROM pgbench_{name} t") for name in TABLES]
        left = self.server.query("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'")
        assert left == "0", "a ledger is left"
        self.checksum = self.checksum or sums
        assert sums == self.checksum, (sums, self.checksum)


def results(trials):
    def of(what, name):
        return [trial[name] for trial in trials if trial["what"] == what]

    found = {f"{what}, {name}": spread(of(what, name)) for what in (PARTS, SAME, DEFAULT) for name in ("load", "wall")}
    for other in (SAME, DEFAULT):
        for name in ("load", "wall"):
            logs = [math.log(one / parts) for one, parts in zip(of(other, name), of(PARTS, name))]
            mean = statistics.mean(logs)
            half = STUDENT[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
            low, ratio, high = (round(math.exp(each), 3) for each in (mean - half, mean, mean + half))
            found[f"rows/s of {PARTS} to {other}, {name}"] = {"low": low, "ratio": ratio, "high": high}
    return found


if __name__ == "__main__":
    main()
