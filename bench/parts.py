#!/usr/bin/env python3
"""pgrig tps in parts, against witnesses on the server.

- start: 8 parts whose clocks are shifted by up to 30 s (libfaketime) begin together. Each client's first transaction writes the
  server's time; the spread is that of the parts' first rows.
- counts: the transactions of all parts together, beside the calls of their statement in pg_stat_statements.
- control: statements a second by which a part watches the others, by pg_stat_statements.
- kills: a part is killed at a random moment; the others must name it and end, and leave no lock.

Everything goes into one file in records/.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
START = "INSERT INTO starts VALUES (:client_id, clock_timestamp());\n"
READ = "SELECT abalance FROM pgbench_accounts WHERE aid = 1 + :client_id;\n"
# Seconds within which the others end after a kill.
NOTICE = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=10, help="of each run whose transactions are counted")
    parser.add_argument("--kills", type=int, default=100)
    options = parsed(parser)
    if not Path(FAKETIME).exists():
        sys.exit(f"{FAKETIME} is missing: install libfaketime (Debian: faketime)")
    generator = random.Random(options.seed)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, server, Path(scratch), generator)
        record = surroundings(options, server) | {"benchmark": "parts", "parts": options.parts}
        record["start"] = [bench.start() for _ in range(options.trials)]
        print(f"spread of the start, ms: {shown(*spread(record['start']))}")
        record["counts"] = [bench.counts() for _ in range(options.trials)]
        for name in ("transactions", "difference_percent", "control_per_second"):
            print(f"{name}: {shown(*spread(each[name] for each in record['counts']))}")
        record["kills"] = [bench.kill() for _ in range(options.kills)]
        if record["kills"]:
            print(f"{options.kills} kills, others ended after s: {shown(*spread(record['kills']))}")
        save(options, server, record, f"{options.parts}-parts")


class Bench:
    def __init__(self, options, server, scratch, generator):
        self.options, self.server, self.scratch, self.generator = options, server, scratch, generator
        subprocess.run(server.fill("--scale 1"), check=True)
        server.query("ALTER SYSTEM SET shared_preload_libraries = pg_stat_statements")
        server.pgrig("server", "restart")
        server.query("CREATE EXTENSION pg_stat_statements")
        server.query("CREATE TABLE starts (client int, at timestamptz)")
        for name, text in (("start.sql", START), ("read.sql", READ)):
            (scratch / name).write_text(text)

    def part(self, number, of, flags, script, shift=None):
        command = [self.options.pgrig, "tps", "-n", "-q", *flags.split(), "-f", str(self.scratch / script),
                   "--part", f"{number}/{of}", "--instance", self.server.instance,
                   "--json", str(self.scratch / f"{number}.json")]
        environment = dict(os.environ)
        if shift is not None:
            environment |= {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{shift:+.3f}s", "DONT_FAKE_MONOTONIC": "1"}
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def together(self, flags, script, shifts, meanwhile=lambda: None):
        """Runs all parts, started in random order, and returns their documents, and the result of `meanwhile`."""
        parts = list(enumerate(shifts, 1))
        self.generator.shuffle(parts)
        running = []
        for number, shift in parts:
            running.append(self.part(number, len(shifts), flags, script, shift))
            time.sleep(self.generator.uniform(0, 0.3))
        found = meanwhile()
        for process in running:
            _, said = process.communicate()
            if process.returncode != 0:
                sys.exit(f"a part failed:\n{said}")
        return [json.loads((self.scratch / f"{number}.json").read_text()) for number, _ in parts], found

    def start(self):
        """Spread of the parts' starts, milliseconds."""
        self.server.query("TRUNCATE starts")
        shifts = [self.generator.uniform(-30, 30) for _ in range(self.options.parts)]
        self.together("-c 1 -t 3", "start.sql", shifts)
        of_parts = "SELECT min(at) AS at FROM starts GROUP BY client"
        found = self.server.query(f"SELECT count(*), extract(epoch FROM max(at) - min(at)) * 1000 FROM ({of_parts}) s")
        count, milliseconds = found.split("|")
        assert int(count) == self.options.parts, found
        return float(milliseconds)

    def counts(self):
        """Transactions by the documents and by the server, and the statements of watching."""
        self.server.query("SELECT pg_stat_statements_reset()")
        documents, control = self.together(
            f"-c 2 -T {self.options.seconds}", "read.sql", [None] * self.options.parts, self.control)
        counted = sum(observed(document, "succeeded") for document in documents)
        calls = self.calls()
        return {
            "transactions": counted, "calls": calls, "difference_percent": 100 * abs(counted - calls) / calls,
            "control_per_second": control,
        }

    def calls(self):
        return int(self.server.query(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE 'SELECT abalance%'"))

    def control(self):
        """Statements a second by which a part watches the others while it measures."""
        looks = "query ~ 'pg_locks|pg_postmaster_start_time' AND query !~ 'pg_stat_statements'"
        count = f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE {looks}"
        while self.calls() == 0:
            time.sleep(0.05)
        time.sleep(1)
        before, since = int(self.server.query(count)), time.monotonic()
        time.sleep(self.options.seconds - 3)
        return (int(self.server.query(count)) - before) / (time.monotonic() - since) / self.options.parts

    def kill(self):
        """Kills a part at a random moment after the start. Seconds until the others have ended."""
        self.server.query("TRUNCATE starts")
        running = [self.part(number, 3, "-c 1 -T 60", "start.sql") for number in (1, 2, 3)]
        while int(self.server.query("SELECT count(DISTINCT client) FROM starts")) < 3:
            time.sleep(0.05)
        time.sleep(self.generator.uniform(0, 5))
        killed = self.generator.randrange(3)
        running[killed].kill()
        since = time.monotonic()
        for number, process in enumerate(running, 1):
            _, said = process.communicate(timeout=60)
            if number != killed + 1 and (process.returncode != 1 or f"part {killed + 1} ended before" not in said):
                sys.exit(f"part {number} did not name part {killed + 1}, exit status {process.returncode}:\n{said}")
        took = time.monotonic() - since
        while int(self.server.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")) > 0:
            if time.monotonic() - since > NOTICE:
                sys.exit("locks are left")
            time.sleep(0.05)
        if took > NOTICE:
            sys.exit(f"the others took {took:.1f} s to end")
        return took


def observed(document, name):
    return next(each["value"] for each in document["trials"][0]["observations"] if each["name"] == name)


if __name__ == "__main__":
    main()
