#!/usr/bin/env python3
"""pgrig report and pgrig runs list: time, peak memory, and bytes of the pages.

Makes a document of each kind by a real run on a server of its own: pgbench's script for 5 minutes and for an hour, a
matrix of 40 cells, a fill with probes, expressions. Then it makes the page of each document round by round, in shuffled
order, and lists 10,000 saved runs, copies of the shorter ones. Each page is read back: the document in it is the same,
byte for byte (by Python's base64 and lzma, and `unpacked`).

--documents keeps the documents: an hour is measured once. Needs psql. The record is one file in records/.
"""

import argparse
import base64
import json
import lzma
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, parsed, save, serving, spread, surroundings

# Name: command, and bytes of its page at most.
KINDS = {
    "tps-5-minutes": ("tps -c 4 -j 1 -R 400 -r -T 5min", 300_000),
    "tps-5-seconds": ("tps -S -c 4 -T 5", None),
    "tps-hour": ("tps -c 2 -R 40 -T 60min", 600_000),
    "matrix-40-cells": ("tps -S -T 1 --trials 2 --matrix clients=1,2,3,4,5,6,7,8,9,10 "
                        "--matrix work_mem=1MB,4MB,16MB,64MB", 1_000_000),
    "fill": ("fill 200MB --probe lookup --drop", None),
    "micro": ("micro --budget 5s i+1 md5(i::text) sha256(i::text::bytea)", None),
}
# Those of which 10,000 copies are listed.
SAVED = ("tps-5-seconds", "fill", "micro")
SECONDS = 0.5
MEMORY = 100e6
LISTED = 10_000
LIST_SECONDS = 1.0
BLOCK = re.compile(r'<script type="application/vnd.pgrig.run\+json" data-encoding="numbers\+xz\+base64">([^<]*)</script>')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--documents", help="directory of the documents; those that are there are not measured again")
    parser.add_argument("--kinds", default=",".join(KINDS), help="those to measure, by commas")
    parser.set_defaults(profile="stock", trials=6)
    options = parsed(parser)
    kinds = [kind for kind in KINDS if kind in {*options.kinds.split(","), *SAVED}]
    with tempfile.TemporaryDirectory() as scratch:
        documents = Path(options.documents or scratch)
        documents.mkdir(exist_ok=True, parents=True)
        with serving(options) as server:
            conditions = surroundings(options, server)
            make(options, server, documents, [kind for kind in kinds if not path(documents, kind).exists()])
            trials = rounds(options, documents, kinds, Path(scratch))
            record = {"benchmark": "report", **conditions, "results": summarise(kinds, trials), "trials": trials}
            show(record)
            save(options, server, record, f"{options.trials}-rounds")
    sys.exit(0 if all(each["within"] for each in record["results"]) else 1)


def path(documents, kind):
    return documents / f"{kind}.json"


def make(options, server, documents, missing):
    if any(kind.startswith(("tps", "matrix")) for kind in missing):
        subprocess.run(server.fill("--scale 10"), check=True, stdout=subprocess.DEVNULL)
    for kind in missing:
        print(f"measuring {kind}: {KINDS[kind][0]}", file=sys.stderr)
        partial = documents / f"{kind}.partial"
        command = [options.pgrig, *KINDS[kind][0].split(), "-q", "--json", str(partial), "--instance", server.instance]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        partial.rename(path(documents, kind))


def rounds(options, documents, kinds, scratch):
    home = scratch / "home"
    store(home, [path(documents, kind) for kind in SAVED])
    jobs = {kind: [options.pgrig, "report", str(path(documents, kind)), "-o", str(scratch / f"{kind}.html")]
            for kind in kinds}
    jobs["runs-list"] = [options.pgrig, "runs", "list"]
    jobs["runs-list-20"] = [*jobs["runs-list"], "--limit", "20"]
    chance = random.Random(options.seed)
    trials = []
    # The first round warms up and does not count.
    for number in range(options.trials + 1):
        for kind in chance.sample(list(jobs), len(jobs)):
            trial = {"round": number, "kind": kind, **run(jobs[kind], home)}
            if kind in kinds:
                document = path(documents, kind).read_bytes()
                page = (scratch / f"{kind}.html").read_text()
                [block] = BLOCK.findall(page)
                if unpacked(lzma.decompress(base64.b64decode(block)).decode()).encode() != document:
                    sys.exit(f"{kind}: the document in the page is another one")
                trial |= {"document": len(document), "page": len(page.encode()), "block": len(block)}
            if number > 0:
                trials.append(trial)
    return trials


NUMBER = re.compile(r"-?[0-9][0-9.eE+-]*|[\x01-\x08]")


def unpacked(packed):
    """The text whose repeated numbers and separators are marks (crates/report/src/embed/numbers.rs)."""
    written, between, numbers, after, at = [], [None, None], [None, None], {}, 0
    while at < len(packed):
        if packed[at] == "\x0e":
            text, start = between[0], at + 1
        else:
            found = NUMBER.search(packed, at)
            start = found.start() if found else len(packed)
            text = packed[at:start]
        between = [between[1], text]
        found = NUMBER.match(packed, start)
        number, at = (found.group(), found.end()) if found else ("", start)
        if number and number <= "\x08":
            steps, number = ord(number), numbers[0]
            for _ in range(steps):
                number = after[number]
        if numbers[0] is not None:
            after.setdefault(numbers[0], number)
        numbers = [numbers[1], number]
        written += [text, number]
    return "".join(written)


def store(home, documents):
    """Saved runs: copies of real documents, each with an id of its own."""
    texts = [document.read_text() for document in documents]
    ids = [json.loads(text)["id"] for text in texts]
    (home / "runs").mkdir(parents=True)
    for number in range(LISTED):
        text = texts[number % len(texts)]
        identity = ids[number % len(texts)]
        own = f"{identity[:-6]}{number:06x}"
        (home / "runs" / f"{own}.json").write_text(text.replace(identity, own, 1))


def run(command, home):
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "PGRIG_HOME": str(home)})
    said, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{errors.decode()}")
    return {"seconds": wall, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * 1024,
            "lines": len(said.splitlines()), "load": os.getloadavg()[0]}


def summarise(kinds, trials):
    results = []
    for kind in [*kinds, "runs-list", "runs-list-20"]:
        own = [trial for trial in trials if trial["kind"] == kind]
        result = {"kind": kind, **{name: spread(trial[name] for trial in own) for name in ("seconds", "cpu", "memory")}}
        most = LIST_SECONDS if kind.startswith("runs-list") else SECONDS
        within = result["seconds"][1] <= most and result["memory"][2] <= MEMORY
        if kind in kinds:
            result |= {name: own[0][name] for name in ("document", "page", "block")}
            within = within and result["page"] <= (KINDS[kind][1] or result["page"])
        results.append({**result, "within": within})
    return results


def show(record):
    print(f"{record['server']}\n{record['machine']['cores']} cores, {record['date']}\n")
    print("| what | document, kB | page, kB | at most | seconds | at most | memory, MB | within |")
    print("|---|---|---|---|---|---|---|---|")
    for each in record["results"]:
        low, middle, high = each["seconds"]
        is_list = each["kind"].startswith("runs-list")
        most = "" if is_list or not KINDS[each["kind"]][1] else f"{KINDS[each['kind']][1] / 1000:.0f}"
        sizes = ["", ""] if is_list else [f"{each[name] / 1000:.0f}" for name in ("document", "page")]
        print(f"| {each['kind']} | {sizes[0]} | {sizes[1]} | {most} | {middle:.3f} ({low:.3f} to {high:.3f}) "
              f"| {LIST_SECONDS if is_list else SECONDS} | {each['memory'][2] / 1e6:.0f} | {'yes' if each['within'] else 'NO'} |")


if __name__ == "__main__":
    main()
