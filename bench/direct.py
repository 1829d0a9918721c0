#!/usr/bin/env python3
"""pgrig fill --method direct against the disk itself, pgbench -i and pgrig's COPY.

Starts a server of its own through pgrig. For each size, in shuffled rounds on the same file system: a plain
sequential O_DIRECT write of as many bytes as the heap has (the roof), pgrig's heap alone (--data-only), and whole
fills (heap, visibility map, primary keys, statistics) by pgrig direct, pgrig COPY and pgbench -i with default flags and
the same number of rows; the latter also on a second server that has PostgreSQL's own settings (profile stock). Prints medians and, round by round, ratios. Everything goes into one file in records/.

Needs pgbench and psql (Debian: postgresql-contrib or postgresql-client), nothing else, and free disk for twice the
largest size.
"""

import argparse
import mmap
import os
import random
import statistics
import sys
import tempfile
import threading
import time

from common import arguments, parsed, save, serving, shown, spread, surroundings, timed

# What one unit of pgbench's scale takes with its primary keys, bytes.
BYTES_PER_SCALE = 15_680_000
SEGMENT = 1 << 30
PIECE = 1 << 20

ROOF, HEAP, DIRECT, COPY = "roof", "heap, direct", "whole, direct", "whole, COPY"
PGBENCH, STOCK = "whole, pgbench -i", "whole, pgbench -i, stock settings"
ALL = [ROOF, HEAP, DIRECT, COPY, PGBENCH, STOCK]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--sizes", default="2,8,20", help="in GB")
    parser.add_argument("--pairs", action="store_true", help="only the roof and whole fills by pgrig direct, in pairs")
    parser.add_argument("--writers", type=int, default=(os.cpu_count() or 1) + 1, help="threads that write the roof")
    options = parsed(parser)
    ways = [ROOF, DIRECT] if options.pairs else ALL
    with serving(options) as server, serving(options, "stock") as stock:
        servers = {what: stock if what == STOCK else server for what in ways}
        trials = [trial for size in options.sizes.split(",") for trial in run(options, servers, float(size))]
        record = {"benchmark": "direct", "writers": options.writers, **surroundings(options, server),
                  "results": summarise(trials), "trials": trials}
    show(record)
    save(options, server, record, "-".join(options.sizes.split(",")) + "GB" + ("-pairs" if options.pairs else ""))


def run(options, servers, size):
    """Rounds of everything at one size, shuffled."""
    chance = random.Random(options.seed)
    scale = round(size * 1e9 / BYTES_PER_SCALE)
    trials = []
    for number in range(options.trials):
        order = list(servers)
        chance.shuffle(order)
        for what in order:
            for server in dict.fromkeys(servers.values()):
                server.query("DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")
                server.settle()
            server = servers[what]
            trial = {"size": size, "scale": scale, "round": number, "what": what, **trial_of(options, server, what, scale)}
            trials.append(trial)
            print(f"{size} GB, round {number}, {what}: {trial['wall']:.2f} s", file=sys.stderr)
    return trials


def trial_of(options, server, what, scale):
    if what == ROOF:
        return roof(heap_bytes(scale), options.writers, server.home)
    if what in (PGBENCH, STOCK):
        return timed([options.pgbench, "-i", "-q", "-s", str(scale), server.url])
    flags = {HEAP: "--method direct --data-only", DIRECT: "--method direct", COPY: "--method copy"}[what]
    return timed(server.fill(f"--scale {scale} {flags}"))


def heap_bytes(scale):
    """pgbench_accounts: 61 rows in each page of 8192 bytes."""
    return -(-scale * 100_000 // 61) * 8192


def roof(size, writers, directory):
    """As many threads as pgrig has write a file of zeros, 1 GiB segments one after the other, 1 MiB at a time."""
    pieces = -(-size // PIECE)
    before = os.times()
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        started = time.perf_counter()
        flags = os.O_WRONLY | os.O_CREAT | os.O_DIRECT
        files = [os.open(f"{folder}/{number}", flags) for number in range(-(-size // SEGMENT))]
        numbers = iter(range(pieces))
        lock = threading.Lock()

        def work():
            buffer = mmap.mmap(-1, PIECE)
            buffer.write(os.urandom(4096) * (PIECE // 4096))
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                at = number * PIECE
                os.pwrite(files[at // SEGMENT], buffer, at % SEGMENT)

        threads = [threading.Thread(target=work) for _ in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for file in files:
            os.fsync(file)
            os.close(file)
        wall = time.perf_counter() - started
    after = os.times()
    return {"wall": wall, "cpu": after.user + after.system - before.user - before.system, "bytes": pieces * PIECE}


def summarise(trials):
    results = []
    for size in dict.fromkeys(trial["size"] for trial in trials):
        of = {what: {trial["round"]: trial for trial in trials if (trial["size"], trial["what"]) == (size, what)}
              for what in ALL}
        of = {what: trials_of for what, trials_of in of.items() if trials_of}
        rounds = list(of[ROOF])
        heap = heap_bytes(of[ROOF][0]["scale"])
        roof_rate = {number: of[ROOF][number]["bytes"] / of[ROOF][number]["wall"] for number in rounds}
        result = {
            "size": size,
            "heap_bytes": heap,
            "wall": {what: statistics.median(trial["wall"] for trial in of[what].values()) for what in of},
            "roof_rate": spread(roof_rate.values()),
            "whole_of_roof": spread(whole_bytes(of[DIRECT][number]) / of[DIRECT][number]["wall"] / roof_rate[number]
                                    for number in rounds),
        }
        if HEAP in of:
            heap_rate = {number: heap / observed(of[HEAP][number], "generate") for number in rounds}
            result["heap_rate"] = spread(heap_rate.values())
            result["heap_of_roof"] = spread(heap_rate[number] / roof_rate[number] for number in rounds)
            result["heap_cpu_per_gb"] = spread(of[HEAP][number]["cpu"] / (heap / 1e9) for number in rounds)
        for name, what in (("times_pgbench", PGBENCH), ("times_stock", STOCK), ("times_copy", COPY)):
            if what in of:
                result[name] = spread(of[what][number]["wall"] / of[DIRECT][number]["wall"] for number in rounds)
        results.append(result)
    return results


def observed(trial, name):
    return next(each["value"] for each in trial["run"]["trials"][0]["observations"] if each["name"] == name)


def whole_bytes(trial):
    return observed(trial, "heap") + observed(trial, "index")


def show(record):
    print(f"{record['server']}\n{record['pgbench']}, profile {record['profile']}, {record['machine']['cores']} cores, "
          f"{record['writers']} writers\n")
    if PGBENCH not in record["results"][0]["wall"]:
        return show_pairs(record)
    print("| size | roof MB/s | heap MB/s | of the roof | heap: client CPU s/GB | whole, direct s | of the roof "
          "| whole, COPY s | times | pgbench -i s | times | pgbench -i, stock s | times |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for result in record["results"]:
        megabytes = [f"{result[name][1] / 1e6:.0f}" for name in ("roof_rate", "heap_rate")]
        wall = result["wall"]
        print(f"| {result['size']:g} GB | {' | '.join(megabytes)} | {shown(*result['heap_of_roof'])} "
              f"| {shown(*result['heap_cpu_per_gb'])} | {wall[DIRECT]:.2f} | {shown(*result['whole_of_roof'])} "
              f"| {wall[COPY]:.2f} | {shown(*result['times_copy'])} | {wall[PGBENCH]:.2f} | {shown(*result['times_pgbench'])} "
              f"| {wall[STOCK]:.2f} | {shown(*result['times_stock'])} |")


def show_pairs(record):
    print("| size | roof MB/s | whole, direct s | of the roof |\n|---|---|---|---|")
    for result in record["results"]:
        print(f"| {result['size']:g} GB | {result['roof_rate'][1] / 1e6:.0f} | {result['wall'][DIRECT]:.2f} "
              f"| {shown(*result['whole_of_roof'])} |")


if __name__ == "__main__":
    main()
