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
import datetime
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
WORK = "SELECT sum(n) FROM generate_series(1, {}000) n;\n"
FUNCTION = "CREATE FUNCTION pg_temp.digests(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT {}$$"

# Name: the verb, the baseline's command, the candidate's if it does something else.
KINDS = {
    "tps": ("tps -N -c 2 -T 250ms", None),
    "fill": ("fill 20MB --drop --schema bench_compare", None),
    "blockio": ("blockio 10MB --trials 1", None),
    "micro": ("micro md5(i::text) sha256(i::text::bytea) --budget 300ms", None),
    "tps-10-percent": ("tps -c 1 -T 250ms -f {ten}", "tps -c 1 -T 250ms -f {eleven}"),
    # Much of a short fill does not depend on its rows. Each side has its own schema and so drops its own rows.
    "fill-40-percent": (
        "fill --rows 2000000 --drop --schema bench_compare",
        "fill --rows 2800000 --drop --schema bench_compare_candidate",
    ),
    "blockio-20-percent": ("blockio 30MB --trials 1", "blockio 36MB --trials 1"),
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
    if options.minutes <= 0:
        return
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
    """What the commands name: scripts with work in the ratio of ten to eleven, functions of as many digests."""
    with tempfile.TemporaryDirectory() as directory:
        places = {}
        for name, count in (("ten", 10), ("eleven", 11)):
            file = Path(directory) / f"{name}.sql"
            file.write_text(WORK.format(2 * count))
            places[name] = str(file)
            digest = "i::text"
            for _ in range(count):
                digest = f"md5({digest})"
            places[f"digests{count}"] = FUNCTION.format(digest)
        yield places


def judged(pgrig, baseline, candidate, *options):
    """What pgrig compare says of two lists of documents."""
    with tempfile.TemporaryDirectory() as directory:
        sides = []
        for side, documents in (("--baseline", baseline), ("--candidate", candidate)):
            sides.append(side)
            for number, document in enumerate(documents):
                file = Path(directory) / f"{side[2:]}{number}.json"
                file.write_text(json.dumps(document))
                sides.append(str(file))
        return json.loads(common.output([pgrig, "compare", "-q", "--anyway", "--json", "-", *options, *sides]))


def verdicts(comparison):
    return {one["config"] + ": " + one["name"]: one for one in comparison["compared"] if one["verdict"]}


def scatter(one):
    """Of the rounds' ratios, as a share."""
    ratios = [math.log(new / old) for old, new in zip(one["baseline"], one["candidate"])]
    return statistics.stdev(ratios)


def judge(options, kinds, directory):
    """The record's results: how often verdicts of all samples are false."""
    pgrig = options.judge_with or options.pgrig
    results = []
    for kind in kinds:
        samples = [json.loads(file.read_text()) for file in sorted((directory / kind).glob("*.json"))]
        if KINDS[kind][1] is None:
            results += nothing_changed(pgrig, kind, samples)
        else:
            results += known_change(pgrig, kind, samples)
    return results


def nothing_changed(pgrig, kind, samples):
    """Any verdict of improved or regressed is false; an interval that excludes 1 misses the truth."""
    results = []
    for design in ("paired", "sides", "apart"):
        false = intervals = held = 0
        for found in samples:
            if design == "apart":
                half = len(found) // 2
                sides = [document for _, document in found[:half]], [document for _, document in found[half:]]
            else:
                sides = [[document for of, document in found if of == side] for side in (0, 1)]
            comparison = judged(pgrig, *sides, *(["--paired"] if design == "paired" else []))
            judgements = verdicts(comparison).values()
            false += any(one["verdict"] in ("improved", "regressed") for one in judgements)
            for one in judgements:
                intervals += 1
                held += one["interval"]["low"] <= 1 <= one["interval"]["high"]
        results.append(
            {
                "kind": kind,
                "design": design,
                "samples": len(samples),
                "with_false_verdict": false,
                "intervals": intervals,
                "intervals_that_hold_the_truth": held,
            }
        )
        print(
            f"{kind}, {design}: a false verdict in {false} of {len(samples)}; "
            f"{held} of {intervals} intervals hold the truth"
        )
    return results


def known_change(pgrig, kind, samples):
    """How often the main figure is found changed, and the right way. The true change is the median of all rounds."""
    main = {"tps": "tps: tps", "fill": "fill: total", "blockio": "total: total", "micro": "pg_temp.digests(i): times"}[
        kind.split("-")[0]
    ]
    found = []
    for runs in samples:
        sides = [[document for of, document in runs if of == side] for side in (0, 1)]
        one = verdicts(judged(pgrig, *sides, "--paired")).get(main)
        if one:
            found.append(one)
    if not found:
        return []
    truth = statistics.median(
        new / old for one in found for old, new in zip(one["baseline"], one["candidate"])
    )
    right = {"tps": "regressed"}.get(kind.split("-")[0], "regressed")
    calm = [one for one in found if scatter(one) <= 0.07]
    result = {
        "kind": kind,
        "samples": len(found),
        "true_ratio": truth,
        "found": sum(one["verdict"] == right for one in found),
        "wrong_way": sum(one["verdict"] == "improved" for one in found),
        "calm_samples": len(calm),
        "calm_found": sum(one["verdict"] == right for one in calm),
        "intervals_that_hold_the_truth": sum(
            one["interval"]["low"] <= truth <= one["interval"]["high"] for one in found
        ),
        "median_scatter": statistics.median(scatter(one) for one in found),
    }
    print(
        f"{kind}: {result['found']} of {len(found)} found, {result['wrong_way']} the wrong way; where rounds scatter by at "
        f"most 7 %: {result['calm_found']} of {len(calm)}; true ratio {truth:.3f}; "
        f"{result['intervals_that_hold_the_truth']} intervals hold it"
    )
    return [result]


def main():
    options = parsed()
    kinds = options.kinds.split(",")
    directory = Path(options.samples)
    collect(options, kinds, directory)
    results = judge(options, [kind for kind in kinds if (directory / kind).exists()], directory)
    if options.record:
        first = next(file for kind in kinds for file in sorted((directory / kind).glob("*.json")))
        environment = json.loads(first.read_text())[0][1]["environment"]
        record = {
            "benchmark": "compare",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "rounds": ROUNDS,
            "commands": {kind: KINDS[kind] for kind in kinds},
            "server": environment["server"]["version"],
            "machine": environment["client"],
            "results": results,
        }
        major = record["server"].split()[1].split(".")[0]
        path = Path(options.record) / f"{record['date'][:10]}-compare-pg{major}-{options.profile}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"\nrecord: {path}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        load(*sys.argv[2:])
    else:
        main()
