#!/usr/bin/env python3
"""pgrig fill against pgbench -i: same server, same run, interleaved, repeated.

Starts a server of its own through pgrig, lets both tools make the same tables in it in shuffled
order, and prints for each kind of fill the median wall-clock time and client CPU of both, with
the ratio round by round. Everything, pgrig's run documents too, goes into one file in records/.

Needs pgbench and psql (Debian: postgresql-contrib or postgresql-client), nothing else.
"""

import argparse
import random
import statistics
import sys

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed

# What is made, how pgbench is asked for it, and how pgrig is. "auto" leaves all to pgrig.
KINDS = {
    "data only, unlogged": ("-I dtg --unlogged-tables", {"auto": "--data-only --unlogged",
                                                         "2 streams": "--data-only --unlogged --method copy --streams 2"}),
    "data only, logged": ("-I dtg", {"auto": "--data-only", "2 streams": "--data-only --method copy --streams 2"}),
    "whole, unlogged": ("-I dtgvp --unlogged-tables", {"auto": "--unlogged", "copy": "--unlogged --method copy"}),
    "whole, logged": ("-I dtgvp", {"auto": "", "copy": "--method copy"}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--scale", type=int, default=50)
    parser.add_argument("--kinds", help="only kinds that contain this")
    options = parsed(parser)
    with serving(options) as server:
        trials = run(options, server)
        record = {"benchmark": "fill", "scale": options.scale, **surroundings(options, server),
                  "results": summarise(trials), "trials": trials}
    show(record)
    save(options, server, record, f"scale{options.scale}")


def run(options, server):
    """Rounds of all tools on each kind, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    trials = []
    for kind, (pgbench, pgrigs) in KINDS.items():
        if options.kinds and options.kinds not in kind:
            continue
        tools = {"pgbench": [options.pgbench, "-i", "-q", "-s", str(options.scale), *pgbench.split(), server.url]}
        for name, flags in pgrigs.items():
            tools[f"pgrig {name}"] = server.fill(f"--scale {options.scale} --drop {flags}")
        for number in range(options.trials + 1):
            order = list(tools)
            chance.shuffle(order)
            for tool in order:
                server.settle()
                trial = {"kind": kind, "round": number, "tool": tool, **timed(tools[tool])}
                if number > 0:
                    trials.append(trial)
                print(f"{kind}, round {number}, {tool}: {trial['wall']:.2f} s", file=sys.stderr)
    return trials


def summarise(trials):
    results = []
    for kind in dict.fromkeys(trial["kind"] for trial in trials):
        of_kind = [trial for trial in trials if trial["kind"] == kind]
        peer = {trial["round"]: trial for trial in of_kind if trial["tool"] == "pgbench"}
        for tool in dict.fromkeys(trial["tool"] for trial in sorted(of_kind, key=lambda trial: trial["tool"])):
            own = [trial for trial in of_kind if trial["tool"] == tool]
            results.append({
                "kind": kind,
                "tool": tool,
                "wall": statistics.median(trial["wall"] for trial in own),
                "cpu": statistics.median(trial["cpu"] for trial in own),
                "times_as_fast": spread(peer[trial["round"]]["wall"] / trial["wall"] for trial in own),
                "cpu_ratio": spread(trial["cpu"] / peer[trial["round"]]["cpu"] for trial in own),
            })
    return results


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, scale {record['scale']}, profile {record['profile']}, "
          f"{record['machine']['cores']} cores\n")
    print("| fill | tool | wall s | client CPU s | times as fast as pgbench | client CPU of pgbench's |")
    print("|---|---|---|---|---|---|")
    for result in record["results"]:
        print(f"| {result['kind']} | {result['tool']} | {result['wall']:.2f} | {result['cpu']:.2f} "
              f"| {shown(*result['times_as_fast'])} | {shown(*result['cpu_ratio'])} |")


if __name__ == "__main__":
    main()
