#!/usr/bin/env python3
"""pgrig fill against pgbench -i: same server, same run, interleaved, repeated.

Starts a server of its own through pgrig, lets both tools make the same tables in it in shuffled
order, and prints for each kind of fill the median wall-clock time and client CPU of both, with
the ratio round by round. Everything, pgrig's run documents too, goes into one file in records/.

Needs pgbench and psql (Debian: postgresql-contrib or postgresql-client), nothing else.
"""

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent

# What is made, how pgbench is asked for it, and how pgrig is. "auto" leaves all to pgrig.
KINDS = {
    "data only, unlogged": ("-I dtg --unlogged-tables", {"auto": "--data-only --unlogged",
                                                         "2 streams": "--data-only --unlogged --streams 2"}),
    "data only, logged": ("-I dtg", {"auto": "--data-only", "2 streams": "--data-only --streams 2"}),
    "whole, unlogged": ("-I dtgvp --unlogged-tables", {"auto": "--unlogged"}),
    "whole, logged": ("-I dtgvp", {"auto": ""}),
}


def main():
    options = parse()
    instance = options.instance = f"bench-{os.getpid()}"
    server = ["--pg-bin", options.pg_bin] if options.pg_bin else ["--pg-version", options.pg_version]
    start = [options.pgrig, "server", "start", "--instance", instance, "--profile", options.profile, *server]
    url = subprocess.run(start, check=True, capture_output=True, text=True).stdout.strip()
    status = [options.pgrig, "server", "status", "--instance", instance, "--json"]
    found = json.loads(subprocess.run(status, check=True, capture_output=True, text=True).stdout)
    options.home = str(Path(found[0]["directory"]).parent.parent)
    try:
        trials = run(options, url)
        record = {
            "benchmark": "fill",
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "scale": options.scale,
            "profile": options.profile,
            "seed": options.seed,
            "server": query(options, url, "SELECT version()"),
            "pgbench": subprocess.run([options.pgbench, "--version"], check=True, capture_output=True,
                                      text=True).stdout.strip(),
            "machine": {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.platform()},
            "results": summarise(trials),
            "trials": trials,
        }
    finally:
        destroy = [options.pgrig, "server", "destroy", "--instance", instance]
        subprocess.run(destroy, check=True, capture_output=True)
    show(record)
    if options.record:
        major = record["server"].split()[1].split(".")[0]
        name = f"{record['date'][:10]}-fill-pg{major}-{options.profile}-scale{options.scale}.json"
        path = Path(options.record) / name
        # Where pgrig lives on the machine that measured is nobody's business.
        path.write_text(json.dumps(record, indent=1).replace(options.home, "PGRIG_HOME") + "\n")
        print(f"\nrecord: {path}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pgbench", default="pgbench", help="by default the one in --pg-bin, else in PATH")
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--pg-bin", help="an installed server instead, best with its own pgbench")
    parser.add_argument("--profile", default="bulk", choices=["bulk", "stock"])
    parser.add_argument("--scale", type=int, default=50)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", help="only kinds that contain this")
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    own = options.pg_bin and Path(options.pg_bin) / "pgbench"
    if own and own.exists() and options.pgbench == "pgbench":
        options.pgbench = str(own)
    return options


def run(options, url):
    """Rounds of all tools on each kind, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    trials = []
    for kind, (pgbench, pgrigs) in KINDS.items():
        if options.kinds and options.kinds not in kind:
            continue
        tools = {"pgbench": [options.pgbench, "-i", "-q", "-s", str(options.scale), *pgbench.split(), url]}
        for name, arguments in pgrigs.items():
            tools[f"pgrig {name}"] = [options.pgrig, "fill", "--scale", str(options.scale), "--drop", "-q",
                                      *arguments.split(), "--instance", options.instance]
        for number in range(options.trials + 1):
            order = list(tools)
            chance.shuffle(order)
            for tool in order:
                trial = {"kind": kind, "round": number, "tool": tool, **timed(options, url, tools[tool])}
                if number > 0:
                    trials.append(trial)
                print(f"{kind}, round {number}, {tool}: {trial['wall']:.2f} s", file=sys.stderr)
    return trials


def timed(options, url, command):
    """One tool from start to end: wall-clock and its own CPU seconds, on a settled server."""
    query(options, url, "CHECKPOINT")
    os.sync()
    with tempfile.TemporaryDirectory() as scratch:
        document = Path(scratch) / "run.json"
        if "fill" in command:
            command = [*command, "--json", str(document)]
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{said}")
        result = {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime}
        if document.exists():
            result["run"] = json.loads(document.read_text())
        else:
            result["said"] = said.strip().splitlines()[-1]
    return result


def summarise(trials):
    results = []
    for kind in dict.fromkeys(trial["kind"] for trial in trials):
        of_kind = [trial for trial in trials if trial["kind"] == kind]
        peer = {trial["round"]: trial for trial in of_kind if trial["tool"] == "pgbench"}
        for tool in dict.fromkeys(trial["tool"] for trial in sorted(of_kind, key=lambda trial: trial["tool"])):
            own = [trial for trial in of_kind if trial["tool"] == tool]
            faster = [peer[trial["round"]]["wall"] / trial["wall"] for trial in own]
            cheaper = [trial["cpu"] / peer[trial["round"]]["cpu"] for trial in own]
            results.append({
                "kind": kind,
                "tool": tool,
                "wall": statistics.median(trial["wall"] for trial in own),
                "cpu": statistics.median(trial["cpu"] for trial in own),
                "times_as_fast": [min(faster), statistics.median(faster), max(faster)],
                "cpu_ratio": [min(cheaper), statistics.median(cheaper), max(cheaper)],
            })
    return results


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, scale {record['scale']}, profile {record['profile']}, "
          f"{record['machine']['cores']} cores\n")
    print("| fill | tool | wall s | client CPU s | times as fast as pgbench | client CPU of pgbench's |")
    print("|---|---|---|---|---|---|")
    for result in record["results"]:
        low, middle, high = result["times_as_fast"]
        cpu_low, cpu_middle, cpu_high = result["cpu_ratio"]
        print(f"| {result['kind']} | {result['tool']} | {result['wall']:.2f} | {result['cpu']:.2f} "
              f"| {middle:.2f} ({low:.2f} to {high:.2f}) | {cpu_middle:.2f} ({cpu_low:.2f} to {cpu_high:.2f}) |")


def query(options, url, sql):
    command = [options.psql, "-XAtq", "-c", sql, url]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    main()
