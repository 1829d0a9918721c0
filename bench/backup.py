"""How right the forecasts of pgrig backup rehearse are, and how much time pgrig adds to the commands that it runs.

Each round rehearses --up-to and two smaller sizes, with a forecast for 8 times that, and then measures that size. Odd rounds do so in
the other order. An interval holds if the value that was measured is within it.

Then each round times each way on one database of --up-to: as pgrig backup rehearse runs it, and the same commands from a shell, one
after the other. The first one of a round follows these rehearsals, after which disks may still be busy: in two rounds it is pgrig, in the
next two the shell. Restores of base backups are left out, because pg_ctl looks for the end of the start only every 0.1 s.

So each order comes equally often in four rounds: the script warns if the rounds of a record are no multiple of 4. The record has the order of
each measurement, and the ratios of each order beside those of all pairs.

Rounds of the same options on the same day are added to the same record. The settings are small enough that their boundaries lie below the
measured sizes. Needs the client programs and the server of one version of PostgreSQL (--pg-bin).
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import spread

REPO = Path(__file__).resolve().parent.parent
FACTOR = 8
SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text, email text, city text, created timestamptz);
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, status text, total numeric(10,2), note varchar(60),
    created timestamptz);
CREATE INDEX orders_created ON orders (created);
CREATE TABLE items (id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders, product text, quantity int, price int);
CREATE INDEX items_order ON items (order_id);
"""
WAYS = ["plain:none", "custom:gzip", "directory:gzip=1,jobs=2", "base", "base-tar:client-gzip=1"]
QUANTITIES = ("size", "backup", "restore")
# Rounds in which each order comes equally often.
PERIOD = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-bin", default="/usr/lib/postgresql/15/bin", help="directory of the programs, client and server")
    parser.add_argument("--up-to", type=int, default=100, help="MB, the largest measured size")
    parser.add_argument("--trials", type=int, default=3, help="of each way at each size, for the forecast")
    parser.add_argument("--pairs", type=int, default=2, help="of each way in each round: pgrig and a shell")
    parser.add_argument("--model", help="file of a model, in place of the schema in this script")
    parser.add_argument("--way", action="append", help=f"default: {' '.join(WAYS)}")
    parser.add_argument("--set", action="append", default=["maintenance_work_mem=1MB", "max_wal_size=32MB", "min_wal_size=32MB"])
    parser.add_argument("--rounds", type=int, default=1, help=f"a multiple of {PERIOD} in a record, so that each order comes equally often")
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    options.way = options.way or WAYS
    name = f"{datetime.date.today()}-backup-{options.up_to}-to-{options.up_to * FACTOR}MB.json"
    record = Path(options.record, name)
    earlier = json.loads(record.read_text()) if options.record and record.exists() else {"rounds": 0, "forecasts": [], "pairs": []}
    forecasts, pairs = earlier["forecasts"], earlier["pairs"]
    rounds = earlier["rounds"] + options.rounds
    if rounds % PERIOD:
        print(f"{rounds} rounds are no multiple of {PERIOD}: the orders do not come equally often. Give --rounds "
              f"{options.rounds + PERIOD - rounds % PERIOD}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(options, Path(home))
        try:
            for number in range(earlier["rounds"], rounds):
                new = bench.forecasts(number)
                for one in new:
                    print(line(one), flush=True)
                forecasts += new
                pairs += bench.pairs(number)
        finally:
            bench.end()
    summary = {quantity: summed([one for one in forecasts if one["quantity"] == quantity]) for quantity in QUANTITIES}
    steps = lambda way, chosen: {step: ratio(chosen, way, step) for step in ("backup", "restore")}
    overhead = {way: {"all": steps(way, pairs), "pgrig first": steps(way, by_first(pairs, "pgrig")),
                      "shell first": steps(way, by_first(pairs, "shell"))} for way in options.way}
    for quantity, found in summary.items():
        print(f"{quantity}: {found}")
    for way, found in overhead.items():
        print(f"{way}: time as pgrig runs it / in a shell {found}")
    if options.record:
        given = {name: getattr(options, name) for name in ("up_to", "trials", "pairs", "model", "way", "set")}
        found = {"machine": platform.platform(), "cores": os.cpu_count(), "options": given, "rounds": rounds,
                 "each order equally often": rounds % PERIOD == 0, "summary": summary, "overhead": overhead, "forecasts": forecasts,
                 "pairs": pairs}
        record.write_text(json.dumps(found, indent=1) + "\n")


class Bench:
    def __init__(self, options, home):
        self.options, self.home = options, home
        self.environment = {**os.environ, "PGRIG_HOME": str(home)}
        self.schema = home / "schema.sql"
        self.schema.write_text(SCHEMA)
        self.data = ["--model", options.model] if options.model else ["--schema-file", str(self.schema)]
        self.urls = None

    def pgrig(self, *words):
        command = [self.options.pgrig, *words]
        ran = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
        return ran.stdout

    def rehearsed(self, *words):
        ways = [part for way in self.options.way for part in ("--way", way)]
        run = json.loads(self.pgrig("backup", "rehearse", *ways, "--bin", self.options.pg_bin, *words, "--json", "-"))
        of = {way: [trial for trial in run["trials"] if trial["config"] == way] for way in self.options.way}
        if not all(of.values()):
            sys.exit(f"a way has no trials: {run['notes']}")
        return of

    def sized(self, up_to, trials):
        settings = [part for setting in self.options.set for part in ("--set", setting)]
        size = f"{self.options.up_to * FACTOR}MB"
        return self.rehearsed("--size", size, "--up-to", f"{up_to}MB", "--trials", str(trials), "--pg-bin", self.options.pg_bin,
                              *self.data, *settings)

    def forecasts(self, number):
        """The forecast of each way and quantity, with what was measured at that size."""
        large = lambda: self.sized(self.options.up_to * FACTOR, 1)
        small = lambda: self.sized(self.options.up_to, self.options.trials)
        first = "forecast" if number % 2 == 0 else "real"
        if first == "forecast":
            forecast, real = small(), large()
        else:
            real, forecast = large(), small()
        found = []
        for way in self.options.way:
            event = next(event["what"]["forecast"] for trial in forecast[way] for event in trial["events"]
                         if event["what"]["event"] == "forecast")
            for quantity in QUANTITIES:
                found.append({"round": number, "first": first, "way": way, "quantity": quantity, "forecast": event[quantity],
                              "real": statistics.median(observed(trial, quantity) for trial in real[way])})
        return found

    def servers(self):
        """A filled database, and a server for restores; started once."""
        if self.urls is None:
            start = lambda name, *words: self.pgrig("server", "start", "--instance", name, "--pg-bin", self.options.pg_bin,
                                                    "--profile", "stock", *words).strip()
            # The server into which pgrig restores has autovacuum, too.
            self.urls = [start("source", "--set", "autovacuum=off"), start("target")]
            data = ["--model", self.options.model] if self.options.model else ["--ddl", str(self.schema)]
            self.pgrig("fill", "-q", f"{self.options.up_to}MB", *data, "-d", self.urls[0])
        return self.urls

    def pairs(self, of_round):
        """Seconds of each way as pgrig runs it, and in a shell."""
        source, target = self.servers()
        found = []
        for number in range(self.options.pairs):
            first = "pgrig" if (of_round // 2 + number) % 2 == 0 else "shell"
            for of_pgrig in [True, False] if first == "pgrig" else [False, True]:
                if of_pgrig:
                    ways = self.rehearsed("-d", source, "--trials", "1", "--no-probe")
                    times = {way: {step: observed(trials[0], step) for step in ("backup", "restore")}
                             for way, trials in ways.items()}
                else:
                    times = {way: self.in_a_shell(way, source, target) for way in self.options.way}
                found += [{"round": of_round, "first": first, "way": way, "is_pgrig": of_pgrig, **of_way}
                          for way, of_way in times.items()]
        return found

    def in_a_shell(self, way, source, target):
        file, data = self.home / "backup", self.home / "unpacked"
        program = lambda name: str(Path(self.options.pg_bin, name))
        shape, _, rest = way.partition(":")
        compression, _, jobs = rest.partition(",jobs=")
        level = compression.partition("=")[2] or ("0" if compression == "none" else "6")
        jobs = ["--jobs", jobs or "1"]
        if shape.startswith("base"):
            tar = ["--format=tar"] if shape == "base-tar" else []
            compress = [f"--compress={compression.replace('=', ':')}"] if compression not in ("", "none") else []
            steps = {"backup": [[program("pg_basebackup"), "-D", str(file), "--checkpoint=fast", *tar, *compress, "-d", source]]}
        else:
            dump = [program("pg_dump"), f"--format={shape}", "-f", str(file), f"--compress={level}", "-d", source]
            url = target.rsplit("/", 1)
            database = "restored" + (("?" + target.split("?", 1)[1]) if "?" in target else "")
            into = f"{url[0]}/{database}"
            self.psql(target, "DROP DATABASE IF EXISTS restored WITH (FORCE)")
            self.psql(target, "CREATE DATABASE restored TEMPLATE template0")
            if shape == "plain":
                restore = [program("psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-f", str(file), into]
            else:
                restore = [program("pg_restore"), "--exit-on-error", *jobs, "-d", into, str(file)]
            steps = {"backup": [dump + (jobs if shape == "directory" else [])], "restore": [restore]}
        # As pgrig does before each trial.
        os.sync()
        times = {}
        try:
            for step, commands in steps.items():
                begin = time.monotonic()
                for command in commands:
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                times[step] = time.monotonic() - begin
            if "restore" in steps:
                # As pgrig does, so that the next way finds the same.
                self.psql(target, "DROP DATABASE restored WITH (FORCE)")
        finally:
            for path in (file, data):
                shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)
        return times

    def psql(self, url, sql):
        subprocess.run([str(Path(self.options.pg_bin, "psql")), "-Xq", url, "-c", sql], check=True, stderr=subprocess.DEVNULL)

    def end(self):
        for name in ("source", "target"):
            subprocess.run([self.options.pgrig, "server", "destroy", "--instance", name], env=self.environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def observed(trial, name):
    return next(one["value"] for one in trial["observations"] if one["name"] == name)


def value(one):
    return one["forecast"].get("value") if isinstance(one["forecast"], dict) else None


def line(one):
    found = value(one)
    if found is None:
        return f"{one['quantity']:8} no figure    {one['way']}"
    holds = "in " if found["low"] <= one["real"] <= found["high"] else "OUT"
    return (f"{one['quantity']:8} {found['value'] / one['real']:5.2f} {holds} {one['real']:.4g} forecast {found['value']:.4g} "
            f"({found['low']:.4g} to {found['high']:.4g})  {one['way']}")


def summed(all):
    with_figure = [(value(one), one["real"]) for one in all if value(one)]
    if not with_figure:
        return {"forecasts": len(all), "with figure": 0}
    factors = sorted(max(found["value"] / real, real / found["value"]) for found, real in with_figure)
    holds = [found["low"] <= real <= found["high"] for found, real in with_figure]
    return {"forecasts": len(all), "with figure": len(with_figure), "median factor": round(statistics.median(factors), 3),
            "worst factor": round(factors[-1], 3), "intervals hold": f"{sum(holds)} of {len(holds)}"}


def by_first(pairs, first):
    """The pairs in which pgrig or the shell came first."""
    return [one for one in pairs if one.get("first") == first]


def ratio(pairs, way, step):
    """The time as pgrig runs it, as a multiple of that in a shell: lowest, median and highest of the pairs."""
    of = lambda is_pgrig: [one[step] for one in pairs if one["way"] == way and one["is_pgrig"] == is_pgrig and step in one]
    ratios = [ours / theirs for ours, theirs in zip(of(True), of(False))]
    return [round(each, 3) for each in spread(ratios)] if ratios else None


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
