#!/usr/bin/env python3
"""How often pgrig micro is right, on this machine as noisy as it is.

Starts a server of its own through pgrig and runs pgrig micro again and again:

- same: an expression against itself. Every verdict of a difference is false; at most 2 % may be.
- known: two expressions of which one does 1 % more of the same work, by construction: a loop of so many turns in
  PL/pgSQL. At least 90 % of the runs shall tell it within 20 s, and none the other way round. What the difference
  really is, is shown by all runs together.
- sizes: one pair at 1e5 to 5e6 rows a sample, the sizes in turn; of each size the run with the middle difference
  counts, because a machine's speed is another one from minute to minute. The intervals shall agree: any two overlap.

Prints a table for each; all of it goes with the run documents' verdicts (not their samples) into one file in
records/.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time

from common import arguments, parsed, save, serving, surroundings

SAME = "md5(i::text)"
# Turns of a loop; each takes some 70 ns, the call about as much as a few of them.
LOOP = """CREATE FUNCTION turns(n int) RETURNS int LANGUAGE plpgsql AS
$$ DECLARE sum int := 0; BEGIN FOR turn IN 1..n LOOP sum := sum + turn; END LOOP; RETURN sum; END $$"""
TURNS = 2000
PAIR = ("abs(i)", "i::text")
SIZES = [100_000, 500_000, 1_000_000, 5_000_000]
MOST_FALSE = 0.02
LEAST_FOUND = 0.9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--same", type=int, default=200, help="runs of the first kind")
    parser.add_argument("--known", type=int, default=50, help="runs of the second kind")
    parser.add_argument("--budget", default="10s", help="of a run of the first kind")
    parser.add_argument("--known-budget", default="18s", help="of a run of the second kind: 20 s with all else")
    parser.add_argument("--sizes-budget", default="20s", help="of a run of the third kind")
    parser.add_argument("--sizes-runs", type=int, default=3, help="of each number of rows")
    parser.add_argument("--threshold", default="1%", help="of the first and third kind")
    parser.add_argument("--known-threshold", default="0.5%", help="a difference that does not matter is none")
    parser.add_argument("--difference", type=float, default=0.01, help="of the second kind")
    options = parsed(parser)
    with serving(options) as server:
        server.query(LOOP)
        record = {"benchmark": "micro", **surroundings(options, server)}
        record["results"] = {
            "same": same(options, server),
            "known": known(options, server),
            "sizes": sizes(options, server),
        }
        server.query("DROP FUNCTION turns")
    show(record["results"])
    save(options, server, record, f"{options.same}-{options.known}-runs")


def micro(options, server, expressions, *more):
    """One run: what its document says of the pair, and the seconds it took."""
    command = [options.pgrig, "micro", *expressions, *more, "-q", "--json", "-", "--instance", server.instance]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - started
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    document = json.loads(done.stdout)
    rounds = sum(trial["config"] == "round" for trial in document["trials"])
    events = [event["what"] for trial in document["trials"] for event in trial["events"]]
    run = {"wall": wall, "rounds": rounds, "rows": document["plan"]["rows"]}
    for event in events:
        if event["event"] == "verdict":
            run |= {key: event[key] for key in ("verdict", "difference", "relative", "noise_floor", "margin",
                                                "autocorrelated")}
        if event["event"] == "noise":
            run |= {"repeat": event["repeat"], "drift": event["drift"]}
    run.setdefault("verdict", "too few rounds")
    print(f"{' | '.join(expressions)}: {run['verdict']}, {rounds} rounds, {wall:.1f} s", file=sys.stderr)
    return run


def same(options, server):
    runs = [micro(options, server, [SAME, SAME], "--budget", options.budget, "--threshold", options.threshold,
                  "--seed", str(options.seed + number)) for number in range(options.same)]
    false = sum(run["verdict"] in ("improved", "regressed") for run in runs)
    return {"runs": runs, "count": len(runs), "verdicts": verdicts(runs), "false": false,
            "within": false <= MOST_FALSE * len(runs)}


def known(options, server):
    more = round(TURNS * (1 + options.difference))
    # The argument is no constant, and the work does not depend on the row.
    pair = [f"turns({turns} + i - i)" for turns in (TURNS, more)]
    runs = []
    for number in range(options.known):
        # Either way round, so that neither verdict is favoured.
        is_turned = number % 2 == 1
        run = micro(options, server, pair[::-1] if is_turned else pair, "--budget", options.known_budget,
                    "--threshold", options.known_threshold, "--seed", str(options.seed + number))
        runs.append(run | {"expected": "improved" if is_turned else "regressed"})
    found = sum(run["verdict"] == run["expected"] for run in runs)
    wrong = sum(run["verdict"] in ("improved", "regressed") and run["verdict"] != run["expected"] for run in runs)
    shares = [abs(run["relative"]["value"]) for run in runs if run.get("relative")]
    return {"runs": runs, "count": len(runs), "verdicts": verdicts(runs), "found": found, "wrong": wrong,
            "share": statistics.median(shares) if shares else None,
            "wall": statistics.median(run["wall"] for run in runs) if runs else None,
            "within": found >= LEAST_FOUND * len(runs) and wrong == 0}


def sizes(options, server):
    runs = [micro(options, server, PAIR, "--rows", str(rows), "--budget", options.sizes_budget,
                  "--threshold", options.threshold, "--seed", str(options.seed + number))
            for number in range(options.sizes_runs) for rows in SIZES]
    by_size = [[run for run in runs if run["rows"] == rows and "difference" in run] for rows in SIZES]
    middles = [sorted(found, key=lambda run: run["difference"]["value"])[len(found) // 2] for found in by_size if found]
    low = max((run["difference"]["low"] for run in middles), default=math.inf)
    high = min((run["difference"]["high"] for run in middles), default=-math.inf)
    return {"runs": runs, "middles": middles, "within": len(middles) == len(SIZES) and low <= high}


def verdicts(runs):
    return {verdict: sum(run["verdict"] == verdict for run in runs)
            for verdict in sorted({run["verdict"] for run in runs})}


def show(results):
    print("| what | runs | verdicts | asked | within |")
    print("|---|---|---|---|---|")
    one, other = results["same"], results["known"]
    print(f"| {SAME} against itself | {one['count']} | {told(one['verdicts'])} | at most {MOST_FALSE:.0%} false: "
          f"{one['false']} | {yes(one['within'])} |")
    share = f", measured {other['share']:.2%}" if other["share"] else ""
    print(f"| 1 % more work{share} | {other['count']} | {told(other['verdicts'])} | at least {LEAST_FOUND:.0%} found: "
          f"{other['found']}, wrong {other['wrong']} | {yes(other['within'])} |")
    print(f"\n| {' against '.join(PAIR)}, rows | rounds | ns per row more | interval | all runs |")
    print("|---|---|---|---|---|")
    for run in results["sizes"]["middles"]:
        value, low, high = (run["difference"][key] * 1e9 for key in ("value", "low", "high"))
        values = sorted(each["difference"]["value"] * 1e9 for each in results["sizes"]["runs"]
                        if each["rows"] == run["rows"] and "difference" in each)
        print(f"| {run['rows']:,} | {run['rounds']} | {value:.1f} | {low:.1f} to {high:.1f} "
              f"| {', '.join(f'{each:.1f}' for each in values)} |")
    print(f"\nintervals agree: {yes(results['sizes']['within'])}")


def told(counts):
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def yes(within):
    return "yes" if within else "NO"


if __name__ == "__main__":
    main()
