#!/usr/bin/env python3
"""pgrig blockio --compat against the published Complete Block Check run through psql: same server, same
statements, step by step, interleaved.

Starts a server of its own through pgrig, which logs how long each statement took. Round by round, in
shuffled order and on a settled server, psql runs the statements with \\timing and pgrig runs them with
--compat. For each step it prints both medians, their ratio round by round, and each tool's overhead: what its
own time has beyond the server's for the same statement, its median with the lowest and highest value. *Within* says
whether pgrig's median is below 1 % of the step or below psql's.

Everything, pgrig's run documents too, goes into one file in records/. Needs psql, nothing else.
"""

import argparse
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed

# tests/cbc/cbc-psql.sql of gregs1104/pgbench-tools, and the keys of cbc-lines.txt.
STATEMENTS = {
    "CREATE_TABLE": "CREATE TABLE settings_loop AS SELECT gs.x AS seq,pgs.* FROM generate_series(0, :SIZEGB * 12500,1) "
                    "gs(x) LEFT JOIN pg_settings pgs ON (true);",
    "VACUUM": "VACUUM (FREEZE ON, ANALYZE ON, VERBOSE ON) settings_loop;",
    "CREATE_INDEX": "CREATE INDEX by_name ON settings_loop (name);",
    "SELECT_u1": "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';",
    "SELECT_c1": "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';",
    "SELECT_r": "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE seq < :SIZEGB * 6250 "
                "LIMIT :SIZEGB * 125;",
    "CLUSTER": "CLUSTER verbose settings_loop USING by_name;",
    "SELECT_u2": "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';",
    "SELECT_c2": "EXPLAIN (ANALYZE ON, BUFFERS ON) SELECT max(sourceline) FROM settings_loop WHERE name='shared_buffers';",
}
# Of a step.
MOST_OVERHEAD = 0.01


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--size", default="0.3GB", help="the article's, e.g. 0.3GB")
    options = parsed(parser)
    with serving(options) as server:
        server.query("ALTER DATABASE postgres SET log_min_duration_statement = 0")
        trials = run(options, server)
        record = {"benchmark": "blockio", "size": options.size, **surroundings(options, server),
                  "results": summarise(trials), "trials": trials}
    show(record)
    save(options, server, record, options.size)


def run(options, server):
    """Rounds of both tools, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    tools = {"psql": psql, "pgrig": pgrig}
    trials = []
    for number in range(options.trials + 1):
        for tool in chance.sample(list(tools), len(tools)):
            server.query("DROP TABLE IF EXISTS settings_loop")
            server.settle()
            said = len(log(server))
            trial = {"round": number, "tool": tool, **tools[tool](options, server)}
            trial["server"] = served(log(server)[said:], options)
            if number > 0:
                trials.append(trial)
            total = sum(trial["seconds"].values())
            print(f"round {number}, {tool}: {total:.2f} s", file=sys.stderr)
    return trials


def psql(options, server):
    # pgrig does so itself before a trial.
    server.settle()
    script = "\\timing on\n" + "\n".join(STATEMENTS.values())
    size = options.size.removesuffix("GB")
    command = [options.psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"SIZEGB={size}", server.url]
    done = subprocess.run(command, input=script, text=True, capture_output=True, check=True)
    times = [float(ms) / 1e3 for ms in re.findall(r"^Time: ([0-9.]+) ms", done.stdout, re.MULTILINE)]
    return {"seconds": dict(zip(STATEMENTS, times, strict=True))}


def pgrig(options, server):
    trial = timed([options.pgrig, "blockio", options.size, "--compat", "--trials", "1", "-q",
                   "--instance", server.instance])
    observed = {each["name"]: each["value"] for each in trial["run"]["trials"][0]["observations"]}
    return {"seconds": {key: observed[key] for key in STATEMENTS}, **trial}


def log(server):
    return Path(server.home, "instances", server.instance, "log").read_text()


def served(text, options):
    """Seconds that the server itself says each statement took."""
    size = options.size.removesuffix("GB")
    wanted = [statement.replace(":SIZEGB", size).rstrip(";") for statement in STATEMENTS.values()]
    logged = re.findall(r"duration: ([0-9.]+) ms  statement: (.*)", text)
    found = [float(ms) / 1e3 for ms, statement in logged if statement.rstrip(";") in wanted]
    return dict(zip(STATEMENTS, found, strict=True))


def summarise(trials):
    by_tool = {tool: {trial["round"]: trial for trial in trials if trial["tool"] == tool} for tool in ("psql", "pgrig")}
    results = []
    for key in STATEMENTS:
        result = {"step": key}
        for tool, own in by_tool.items():
            result[tool] = statistics.median(trial["seconds"][key] for trial in own.values())
            overheads = [trial["seconds"][key] - trial["server"][key] for trial in own.values()]
            result[f"{tool}_overhead"] = statistics.median(overheads)
            result[f"{tool}_overheads"] = spread(overheads)
        result["ratio"] = spread(by_tool["pgrig"][number]["seconds"][key] / trial["seconds"][key]
                                 for number, trial in by_tool["psql"].items())
        result["within"] = result["pgrig_overhead"] < max(MOST_OVERHEAD * result["pgrig"], result["psql_overhead"])
        results.append(result)
    return results


def show(record):
    print(f"{record['server']}\n{record['size']} (the article's), profile {record['profile']}, "
          f"{record['machine']['cores']} cores\n")
    print(f"{len(record['trials']) // 2} rounds\n")
    print("| step | psql ms | pgrig ms | pgrig / psql | overhead ms: psql | pgrig | pgrig of the step | within |")
    print("|---|---|---|---|---|---|---|---|")
    for result in record["results"]:
        share = result["pgrig_overhead"] / result["pgrig"] * 100
        print(f"| {result['step']} | {result['psql'] * 1e3:.2f} | {result['pgrig'] * 1e3:.2f} | {shown(*result['ratio'])} "
              f"| {milliseconds(result['psql_overheads'])} | {milliseconds(result['pgrig_overheads'])} | {share:.2f} % "
              f"| {'yes' if result['within'] else 'NO'} |")


def milliseconds(values):
    low, middle, high = (value * 1e3 for value in values)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
