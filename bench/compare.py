"""How often pgrig's verdicts between runs are right: nothing changed, and a known change, on real runs.

Each sample holds the documents of some rounds: in each round the baseline's command and the candidate's run once, in
balanced random order, as `pgrig ab` runs them. Where nothing changed, both commands are the same, and random load of
processors and disk runs beside them. Then `pgrig compare` judges each sample:

paired   round by round (--paired), as `pgrig ab` does
sides    the same runs as two sides that were not paired
apart    the first half of all runs against the second half, as if all baselines had run before all candidates

Samples are kept, so that a run of this script goes on where the last one ended. One sample takes 10 to 30 s; give
--minutes to end in time. Results are of all samples there are.
"""

import argparse
import contextlib
import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

ROUNDS = 8
SELECT = r"SELECT abalance FROM pgbench_accounts WHERE aid = :aid;" + "\n"
STATEMENTS = r"\set aid random(1, 100000 * :scale)" + "\n"
FUNCTION = "CREATE FUNCTION pg_temp.digests(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT {}$$"

# Name: the verb, the baseline's command, the candidate's if it does something else.
KINDS = {
    "tps": ("tps -N -c 2 -T 250ms", None),
    "fill": ("fill 20MB --drop --schema bench_compare", None),
    "blockio": ("blockio 10MB --trials 1", None),
    "micro": ("micro md5(i::text) sha256(i::text::bytea) --budget 300ms", None),
    "tps-10-percent": ("tps -c 1 -T 400ms -f {ten}", "tps -c 1 -T 400ms -f {eleven}"),
    "fill-10-percent": (
        "fill --rows 1000000 --drop --schema bench_compare",
        "fill --rows 1100000 --drop --schema bench_compare",
    ),
    "blockio-10-percent": ("blockio 30MB --trials 1", "blockio 33MB --trials 1"),
    "micro-10-percent": (
        "micro md5(i::text) pg_temp.digests(i) --budget 300ms --setup '{digests10}'",
        "micro md5(i::text) pg_temp.digests(i) --budget 300ms --setup '{digests11}'",
    ),
}


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common.arguments(parser)
    parser.add_argument("--samples", default=str(common.REPO / "target/bench-compare"), help="where samples are kept")
    parser.add_argument("--experiments", type=int, default=100, help="samples of each kind where nothing changed")
    parser.add_argument("--known", type=int, default=100, help="samples of each kind with a known change")
    parser.add_argument("--minutes", type=float, default=math.inf, help="take no more samples after this time")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of: " + ", ".join(KINDS))
    parser.add_argument("--judge-with", help="another pgrig to judge with; by default --pgrig")
    return common.parsed(parser)


class Load:
    """Processes that keep processors and disk busy for random times."""

    def __init__(self, directory, seed):
        here = Path(__file__)
        self.process = subprocess.Popen([sys.executable, here, "--load", directory, str(seed)])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def load(directory, seed):
    """Runs until it is stopped: pauses, busy processors and writes, each for some tenths of a second to some seconds."""
    chance = random.Random(int(seed))
    with tempfile.TemporaryFile(dir=directory) as file:
        while True:
            kind = chance.choice(["pause", "pause", "processor", "disk"])
            end = time.monotonic() + chance.expovariate(1 / 1.5)
            while time.monotonic() < end:
                if kind == "pause":
                    time.sleep(0.05)
                elif kind == "processor":
                    sum(number * number for number in range(20_000))
                else:
                    file.seek(0)
                    file.write(os.urandom(1 << 20))
                    os.fsync(file.fileno())


def slim(document):
    """Without what no comparison reads."""
    for trial in document["trials"]:
        for name in ("series", "histograms", "events"):
            trial.pop(name, None)
    return document


def sample(pgrig, commands, chance):
    """The documents of all rounds, in the order in which they were made, each with its side."""
    found = []
    first = []
    for _ in range(ROUNDS):
        if not first:
            first = [0, 1]
            chance.shuffle(first)
        begins = first.pop()
        for side in (begins, 1 - begins):
            command = [pgrig, *commands[side], "-q", "--json", "-"]
            found.append((side, slim(json.loads(common.output(command)))))
    return found


def collect(options, kinds, directory):
    """Takes samples that are missing, until the time is over."""
    end = time.monotonic() + options.minutes * 60
    directory.mkdir(parents=True, exist_ok=True)
    chance = random.Random()
    with scripts() as places, common.serving(options) as server:
        server.pgrig("fill", "--scale", "5")
        for number in range(max(options.experiments, options.known)):
            for kind in kinds:
                is_known = KINDS[kind][1] is not None
                file = directory / kind / f"{number:04}.json"
                if file.exists() or number >= (options.known if is_known else options.experiments):
                    continue
                if time.monotonic() > end:
                    return
                baseline, candidate = KINDS[kind]
                commands = [
                    shlex.split(f"{command.format(**places)} --instance {server.instance}")
                    for command in (baseline, candidate or baseline)
                ]
                noise = None if is_known else Load(str(directory), chance.randrange(1 << 30))
                try:
                    found = sample(options.pgrig, commands, chance)
                finally:
                    if noise:
                        noise.stop()
                file.parent.mkdir(parents=True, exist_ok=True)
                partial = file.with_suffix(".partial")
                partial.write_text(json.dumps(found))
                partial.rename(file)
                print(f"{kind} {number + 1}", file=sys.stderr)


@contextlib.contextmanager
def scripts():
    """What the commands name: scripts of ten and eleven statements, expressions with as many digests."""
    with tempfile.TemporaryDirectory() as directory:
        places = {}
        for name, count in (("ten", 10), ("eleven", 11)):
            file = Path(directory) / f"{name}.sql"
            file.write_text(STATEMENTS + SELECT * count)
            places[name] = str(file)
            digest = "i::text"
            for _ in range(count):
                digest = f"md5({digest})"
            places[f"digests{count}"] = FUNCTION.format(digest)
        yield places


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(*sys.argv[2:])
    else:
        options = parsed()
        collect(options, options.kinds.split(","), Path(options.samples))
