#!/usr/bin/env python3
"""Schedule lag of pgrig tps -R against pgbench -R: the same script and rate on the same server, in turn.

Starts a server of its own through pgrig, fills pgbench's tables, and runs each kind with both tools round by round,
in shuffled order, over the Unix socket. A transaction's lag is the time from when it is due until it begins: pgbench's
is the column schedule_lag of its log (-l), pgrig's the histogram in its run document. Both wait on the machine's
timer, so the difference is what the tools add. For each kind it prints medians, and round by round the ratio of p50.

--pgbench names the peer; its version goes into the record, which is one file in records/.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed

KINDS = {"select-only": "-S", "simple-update": "-N"}
# What pgrig's p50 may be, in pgbench's.
TARGET = 1.5
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument("--load", default="-R 500 -c 4 -j 2", help="rate, clients and threads of both tools")
    parser.set_defaults(profile="stock", trials=12)
    options = parsed(parser)
    with serving(options) as server:
        subprocess.run(server.fill(f"--scale {options.scale}"), check=True)
        trials = run(options, server)
        record = {"benchmark": "lag", "scale": options.scale, "seconds": options.seconds, "load": options.load,
                  **surroundings(options, server), "results": summarise(trials), "trials": trials}
    show(record)
    save(options, server, record, f"{options.trials}-rounds")


def run(options, server):
    """Rounds of all kinds with both tools, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    tools = {"pgbench": pgbench, "pgrig": pgrig}
    trials = []
    for number in range(options.trials + 1):
        for kind in chance.sample(list(KINDS), len(KINDS)):
            for tool in chance.sample(list(tools), len(tools)):
                server.settle()
                flags = [KINDS[kind], *options.load.split(), "-T", str(options.seconds)]
                trial = {"round": number, "kind": kind, "tool": tool, **tools[tool](options, server, flags)}
                if number > 0:
                    trials.append(trial)
                print(f"round {number}, {kind}, {tool}: lag p50 {trial['lag_p50_us']:.0f} us, "
                      f"latency p50 {trial['latency_p50_us']:.0f} us", file=sys.stderr)
    return trials


def pgbench(options, server, flags):
    """Columns of the log: client, transaction, latency, script, second, microsecond, schedule lag."""
    with tempfile.TemporaryDirectory() as scratch:
        trial = timed([options.pgbench, *flags, "-l", "--log-prefix", f"{scratch}/log", server.url])
        lines = [line.split() for log in Path(scratch).iterdir() for line in log.read_text().splitlines()]
    found = {"transactions": len(lines)}
    for name, column in (("latency", 2), ("lag", 6)):
        values = sorted(int(line[column]) for line in lines)
        for quantile, share in QUANTILES.items():
            found[f"{name}_{quantile}_us"] = values[min(int(len(values) * share), len(values) - 1)]
    return {**found, **trial}


def pgrig(options, server, flags):
    trial = timed([options.pgrig, "tps", "-q", *flags, "--instance", server.instance])
    observed = {each["name"]: each["value"] for each in trial["run"]["trials"][0]["observations"]}
    found = {"transactions": observed["succeeded"]}
    for name in ("latency", "lag"):
        for quantile in QUANTILES:
            found[f"{name}_{quantile}_us"] = observed[f"{name}-{quantile}"] * 1e6
    return {**found, **trial}


def summarise(trials):
    results = []
    for kind in KINDS:
        by_tool = {tool: {trial["round"]: trial for trial in trials if (trial["kind"], trial["tool"]) == (kind, tool)}
                   for tool in ("pgbench", "pgrig")}
        result = {"kind": kind}
        for name in (f"{what}_{quantile}_us" for what in ("lag", "latency") for quantile in QUANTILES):
            for tool, own in by_tool.items():
                result[f"{tool}_{name}"] = spread(trial[name] for trial in own.values())
            result[f"{name}_ratio"] = spread(own[name] / by_tool["pgbench"][number][name]
                                             for number, own in by_tool["pgrig"].items())
        ratios = [own["lag_p50_us"] / by_tool["pgbench"][number]["lag_p50_us"]
                  for number, own in by_tool["pgrig"].items()]
        result["rounds_within_target"] = sum(ratio <= TARGET for ratio in ratios)
        result["rounds"] = len(ratios)
        results.append(result)
    return results


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, {record['load']}, scale {record['scale']}, "
          f"profile {record['profile']}, {record['machine']['cores']} cores\n")
    print(f"| kind | schedule lag p50, us: pgbench | pgrig | pgrig / pgbench | rounds with at most {TARGET} "
          "| latency p50, us: pgbench | pgrig | pgrig / pgbench |")
    print("|---|---|---|---|---|---|---|---|")
    for each in record["results"]:
        lag, latency = ([each[f"{tool}_{name}_p50_us"] for tool in ("pgbench", "pgrig")] for name in ("lag", "latency"))
        print(f"| {each['kind']} | {whole(*lag[0])} | {whole(*lag[1])} | {shown(*each['lag_p50_us_ratio'])} "
              f"| {each['rounds_within_target']} of {each['rounds']} | {whole(*latency[0])} | {whole(*latency[1])} "
              f"| {shown(*each['latency_p50_us_ratio'])} |")


def whole(low, middle, high):
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


if __name__ == "__main__":
    main()
