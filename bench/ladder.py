#!/usr/bin/env python3
"""The ladder of article 000, "Generating lots of test data with Postgres, fast and faster": what its
reader types, with psql and pgbench, against `pgrig fill` of the same rows at the same level.

Starts a server of its own through pgrig. Each level is done by hand, by pgrig's preset for it and by
what pgrig does best for the same result, round by round, in shuffled order but one level's ways next to
each other, as noise of the machine lasts, on a settled server: all tables dropped, a CHECKPOINT, dirty pages written. Rates are bytes of all databases' growth per second
of the whole process, from start to exit. Everything, pgrig's run documents too, goes into one file in
records/.

At fillfactor 100 the tables of levels 1 to 3 take SIZE with their keys; the article's scale for a size is
pgbench's, a tenth of it at fillfactor 10, and half of that in each of two databases. Its bonus script
begins with a million seed rows, 1.4 GB: they come on top, as they do there.

A pgbench before 18 makes the parent of unlogged partitions unlogged too, which PostgreSQL refuses from 18
on: there psql creates the tables of the bonus level, as pgbench 18 does.

Needs pgbench and psql (Debian: postgresql-contrib or postgresql-client), nothing else.
"""

import argparse
import os
import random
import re
import statistics
import sys
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from common import arguments, output, parsed, save, serving, shown, spread, surroundings, timed

# Bytes that pgbench's tables and keys take at scale 1, and that a million rows of level 0 take.
PER_SCALE = 15.6e6
PER_MILLION = 36.3e6
# Of the article's bonus script.
CHUNK_SIZE = 10_000
CLIENTS = 4
SEED_SCALE = 10
# What all ways start from.
CLEAN = """
DO $$ DECLARE name regclass; BEGIN
    FOR name IN SELECT oid FROM pg_class
        WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
    LOOP EXECUTE format('DROP TABLE %s CASCADE', name); END LOOP;
END $$"""
# What pgbench 18 does at its step t with --unlogged --fillfactor 10 --partitions 4 --partition-method hash.
BONUS_TABLES = """
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor = 10);
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 10);
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) PARTITION BY HASH (aid);
""" + "".join(
    f"CREATE UNLOGGED TABLE pgbench_accounts_{leaf + 1} PARTITION OF pgbench_accounts "
    f"FOR VALUES WITH (MODULUS {CLIENTS}, REMAINDER {leaf}) WITH (fillfactor = 10);\n"
    for leaf in range(CLIENTS))
# Times as fast as by hand that pgrig's preset shall be, on two cores.
TARGETS = {"5": 1.2, "bonus": 1.3}


@dataclass
class Kind:
    """A level: the shell that the article gives for it, and pgrig's flags by name."""

    hand: str
    pgrigs: dict


def kinds(size, pgbench_creates):
    scale = max(round(size / PER_SCALE), 20)
    sparse, half = round(scale / 10), round(scale / 20)
    rows = round(size / PER_MILLION * 1e6)
    transactions = scale * 100_000 // 10 // CLIENTS // CHUNK_SIZE
    bonus_rows = SEED_SCALE * 100_000 + transactions * CLIENTS * CHUNK_SIZE
    best = "--unlogged --data-only --fillfactor 10"
    create, steps = ("", "dtg") if pgbench_creates else (f'$psql -qc "{BONUS_TABLES}"\n', "g")
    return {
        "0": Kind(
            f'$psql -qc "CREATE TABLE t AS SELECT generate_series(1, {rows / 1e6:g}e6) x"',
            {"level 0": f"--rows {rows} --level 0"}),
        "1": Kind(
            f"$pgbench -iq -s {scale}",
            {"level 1": f"--scale {scale} --level 1", "best": f"--scale {scale}"}),
        "2": Kind(
            f"$pgbench -iq -s {scale} --unlogged",
            {"level 2": f"--scale {scale} --level 2", "best": f"--scale {scale} --unlogged"}),
        "3": Kind(
            f"$pgbench -iq -s {scale} --unlogged -I dtg",
            {"level 3": f"--scale {scale} --level 3", "best": f"--scale {scale} --unlogged --data-only"}),
        "4": Kind(
            f"$pgbench -iq -s {sparse} --unlogged -I dtg --fillfactor 10",
            {"level 4": f"--scale {sparse} --level 4", "best": f"--scale {sparse} {best}"}),
        "5": Kind(
            f"$pgbench -iq -s {half} --unlogged -I dtg --fillfactor 10 bench &\n"
            f"$pgbench -iq -s {half} --unlogged -I dtg --fillfactor 10\n"
            "wait $!",
            {"level 5": f"--scale {half * 2} --level 5", "one heap": f"--scale {half * 2} {best} --streams 2"}),
        "bonus": Kind(
            f"{create}$pgbench -iq -I {steps} --unlogged -s {SEED_SCALE} --fillfactor 10 "
            f"--partitions {CLIENTS} --partition-method hash\n"
            "SQL=$(cat <<EOF\n"
            "\\set part_id :client_id + 1\n"
            "INSERT INTO pgbench_accounts_:part_id SELECT * FROM pgbench_accounts_:part_id "
            f"LIMIT {CHUNK_SIZE};\n"
            "EOF\n"
            ")\n"
            f'echo "$SQL" | $pgbench -n -f- -c {CLIENTS} -t {transactions}',
            {"level bonus": f"--rows {bonus_rows} --level bonus",
             "best": f"--rows {bonus_rows} {best} --partitions {CLIENTS} --partition-method hash",
             "best, one table": f"--rows {bonus_rows} {best}"}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--size", type=gigabytes, default=gigabytes("2GB"), help="e.g. 2GB")
    parser.add_argument("--kinds", help="only these levels, e.g. 4,5,bonus")
    options = parsed(parser)
    with serving(options) as server:
        trials = run(options, server)
        record = {"benchmark": "ladder", "size": options.size, **surroundings(options, server),
                  "results": summarise(trials), "trials": trials}
    show(record)
    save(options, server, record, f"{options.size // 10**6}MB")


def gigabytes(text):
    return round(float(text.removesuffix("GB")) * 1e9)


def run(options, server):
    """Rounds of all ways at all levels, shuffled; the first round warms up and does not count."""
    chance = random.Random(options.seed)
    pgbench_creates = version(output([options.pgbench, "--version"])) >= 18 or version(server.version) < 18
    levels = {level: commands(server, kind) for level, kind in kinds(options.size, pgbench_creates).items()
              if not options.kinds or level in options.kinds.split(",")}
    trials = []
    for number in range(options.trials + 1):
        for level in chance.sample(list(levels), len(levels)):
            ways = list(levels[level].items())
            for way, command in chance.sample(ways, len(ways)):
                trial = {"level": level, "way": way, "round": number, **tried(options, server, command)}
                if number > 0:
                    trials.append(trial)
                print(f"round {number}, level {level}, {way}: {trial['wall']:.2f} s, {rate(trial):.0f} MB/s",
                      file=sys.stderr)
    return trials


def version(text):
    """The major release in what a program or server says it is."""
    return int(re.search(r"\d+", text.split("PostgreSQL")[1])[0])


def commands(server, kind):
    ways = {"by hand": ["bash", "-ec", kind.hand]}
    for name, flags in kind.pgrigs.items():
        ways[f"pgrig {name}"] = server.fill(flags)
    return ways


def tried(options, server, command):
    """One way, timed on a settled server, and how long its data then took to reach the disk."""
    server.query(CLEAN)
    server.query("DROP DATABASE IF EXISTS bench")
    server.query("CREATE DATABASE bench")
    server.settle()
    size = "SELECT sum(pg_database_size(oid)) FROM pg_database"
    before = int(server.query(size))
    tools = {"pgbench": options.pgbench, "psql": options.psql}
    cpu = server.cpu()
    trial = timed(command, {**os.environ, **libpq(server.url), **tools})
    started = time.monotonic()
    server.settle()
    trial["settling"] = time.monotonic() - started
    trial["server_cpu"] = server.cpu() - cpu
    trial["bytes"] = int(server.query(size)) - before
    return trial


def libpq(url):
    """A server's URL as the article's reader has it: in the environment."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return {"PGHOST": query["host"][0], "PGPORT": query["port"][0], "PGUSER": parts.username,
            "PGDATABASE": parts.path.strip("/")}


def rate(trial):
    """MB/s."""
    return trial["bytes"] / trial["wall"] / 1e6


def settled_rate(trial):
    """MB/s until what the server had handed to the kernel was on the disk."""
    return trial["bytes"] / (trial["wall"] + trial["settling"]) / 1e6


def summarise(trials):
    results = []
    for level in sorted({trial["level"] for trial in trials}):
        of_level = [trial for trial in trials if trial["level"] == level]
        hand = {trial["round"]: trial for trial in of_level if trial["way"] == "by hand"}
        for way in sorted({trial["way"] for trial in of_level}):
            own = [trial for trial in of_level if trial["way"] == way]
            results.append({
                "level": level,
                "way": way,
                "bytes": statistics.median(trial["bytes"] for trial in own),
                "wall": statistics.median(trial["wall"] for trial in own),
                "cpu": statistics.median(trial["cpu"] for trial in own),
                "server_cpu": statistics.median(trial["server_cpu"] for trial in own),
                "rate": spread(map(rate, own)),
                "settled_rate": spread(map(settled_rate, own)),
                "times_as_fast": spread(rate(trial) / rate(hand[trial["round"]]) for trial in own),
                "target": TARGETS.get(level) if way.startswith("pgrig level") else None,
            })
    return results


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, {record['size'] / 1e9:g} GB, profile {record['profile']}, "
          f"{record['machine']['cores']} cores\n")
    print("| level | way | GB | seconds | MB/s | MB/s until written | CPU s: client | server | times by hand | target |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for result in record["results"]:
        print(f"| {result['level']} | {result['way']} | {result['bytes'] / 1e9:.2f} | {result['wall']:.2f} "
              f"| {result['rate'][1]:.0f} | {result['settled_rate'][1]:.0f} | {result['cpu']:.2f} | {result['server_cpu']:.2f} "
              f"| {shown(*result['times_as_fast'])} | {result['target'] or ''} |")


if __name__ == "__main__":
    main()
