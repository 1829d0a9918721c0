#!/usr/bin/env python3
"""pgrig tps against pgbench: the same scripts on the same server, interleaved.

Starts a server of its own through pgrig, fills pgbench's tables, and runs each kind with both tools round by
round, in shuffled order, over the Unix socket. For each kind it prints both medians and, round by round, the
ratios of tps and of the client's CPU time per transaction; for one client on an otherwise idle server the
difference of the mean latencies too. --memory SECONDS then runs pgrig for so long and watches what it holds.

pgbench should have the server's major version: give --pg-bin, which has both. Everything goes into one file in
records/.
"""

import argparse
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed

KINDS = {
    "select-only prepared, 1 client": "-S -M prepared -c 1 -j 1 -L 10000",
    "select-only prepared, 16 clients": "-S -M prepared -c 16 -j 2",
    "select-only simple, 1 client": "-S -M simple -c 1 -j 1",
    "tpcb-like, 1 client": "-b tpcb-like -c 1 -j 1",
    "tpcb-like, 16 clients": "-b tpcb-like -c 16 -j 2",
}
# Seconds between looks at the memory.
LOOK = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=10, help="of each run")
    parser.add_argument("--kinds", default="", help="only those whose name has this in it; none for none")
    parser.add_argument("--memory", type=int, default=0, metavar="SECONDS", help="watch the memory of such a run too")
    parser.set_defaults(profile="stock")
    options = parsed(parser)
    kinds = {name: flags for name, flags in KINDS.items() if options.kinds in name}
    with serving(options) as server:
        subprocess.run(server.fill(f"--scale {options.scale}"), check=True)
        trials = run(options, server, kinds)
        record = {"benchmark": "tps", "scale": options.scale, "seconds": options.seconds,
                  **surroundings(options, server), "results": summarise(trials, kinds), "trials": trials}
        if options.memory:
            record["memory"] = memory(options, server)
    show(record)
    save(options, server, record, f"scale{options.scale}" + ("" if kinds else "-memory"))


def run(options, server, kinds):
    """Rounds of all kinds with both tools, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    tools = {"pgbench": pgbench, "pgrig": pgrig}
    trials = []
    for number in range(options.trials + 1):
        for kind in chance.sample(list(kinds), len(kinds)):
            for tool in chance.sample(list(tools), len(tools)):
                server.settle()
                seconds = options.seconds if number else min(options.seconds, 3)
                trial = {"round": number, "kind": kind, "tool": tool, **tools[tool](options, server, kinds[kind], seconds)}
                if number > 0:
                    trials.append(trial)
                print(f"round {number}, {kind}, {tool}: {trial['tps']:.0f} tps, "
                      f"{trial['cpu_us']:.1f} us of CPU a transaction", file=sys.stderr)
    return trials


def pgbench(options, server, flags, seconds):
    """`timed` keeps what is said on standard error only; pgbench's results are on standard output."""
    with tempfile.NamedTemporaryFile("r") as results:
        command = " ".join([options.pgbench, *flags.split(), "-T", str(seconds), f"'{server.url}'"])
        trial = timed(["/bin/sh", "-c", f"exec {command} > {results.name}"])
        text = results.read()
    found = {name: float(re.search(pattern, text).group(1)) for name, pattern in (
        ("transactions", r"actually processed: (\d+)"), ("latency_ms", r"latency average = ([0-9.]+) ms"),
        ("tps", r"tps = ([0-9.]+)"))}
    return {**found, "cpu_us": trial["cpu"] / found["transactions"] * 1e6, **trial}


def pgrig(options, server, flags, seconds):
    trial = timed([options.pgrig, "tps", "-q", *flags.split(), "-T", str(seconds), "--instance", server.instance])
    observed = {each["name"]: each["value"] for each in trial["run"]["trials"][0]["observations"]}
    transactions = observed["succeeded"]
    return {"transactions": transactions, "latency_ms": observed["latency-mean"] * 1e3,
            "tps": transactions / observed["elapsed"], "cpu_us": trial["cpu"] / transactions * 1e6, **trial}


def memory(options, server):
    """What pgrig holds in the course of a long run, bytes resident, by second."""
    command = [options.pgrig, "tps", "-q", "-S", "-M", "prepared", "-c", "16", "-j", "2", "-T", str(options.memory),
               "--instance", server.instance, "--json", "/dev/null"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    held = []
    while process.poll() is None:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        if found:
            held.append((round(time.monotonic() - started, 1), int(found.group(1)) * 1024))
        time.sleep(LOOK)
    if process.returncode != 0:
        sys.exit("the long run failed")
    return held


def summarise(trials, kinds):
    results = []
    for kind in kinds:
        by_tool = {tool: {trial["round"]: trial for trial in trials if (trial["kind"], trial["tool"]) == (kind, tool)}
                   for tool in ("pgbench", "pgrig")}
        pairs = [(by_tool["pgrig"][number], peer) for number, peer in by_tool["pgbench"].items()]
        result = {"kind": kind}
        for tool, own in by_tool.items():
            for what in ("tps", "cpu_us", "latency_ms"):
                result[f"{tool}_{what}"] = statistics.median(trial[what] for trial in own.values())
        for what in ("tps", "cpu_us"):
            result[f"{what}_ratio"] = spread(own[what] / peer[what] for own, peer in pairs)
        result["latency_difference_us"] = spread((own["latency_ms"] - peer["latency_ms"]) * 1e3 for own, peer in pairs)
        results.append(result)
    return results


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, scale {record['scale']}, profile {record['profile']}, "
          f"{record['machine']['cores']} cores\n")
    print("| kind | pgbench tps | pgrig tps | pgrig / pgbench | CPU us a transaction: pgbench | pgrig | pgrig / pgbench "
          "| mean latency, pgrig - pgbench, us |")
    print("|---|---|---|---|---|---|---|---|")
    for each in record["results"]:
        print(f"| {each['kind']} | {each['pgbench_tps']:.0f} | {each['pgrig_tps']:.0f} | {shown(*each['tps_ratio'])} "
              f"| {each['pgbench_cpu_us']:.1f} | {each['pgrig_cpu_us']:.1f} | {shown(*each['cpu_us_ratio'])} "
              f"| {shown(*each['latency_difference_us'])} |")
    for at, held in record.get("memory", [])[:: max(1, len(record.get("memory", [])) // 8)]:
        print(f"after {at:.0f} s: {held / 1e6:.1f} MB resident")


if __name__ == "__main__":
    main()
