#!/usr/bin/env python3
"""Which tables of real schemas pgrig fills, which it refuses, and why.

Takes a directory of SQL files, each a whole schema (CREATE TABLE, keys, constraints: what pg_dump --schema-only writes).
For each file: pgrig fill --rows N --ddl FILE on a server of its own. A table that is refused is left out
(--exclude-table) and the fill tried again, until the rest is filled or the refusal names no further table. Tables that
reference a table left out are refused too and counted apart. Downloads nothing, needs nothing but pgrig.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from common import REPO

NAME = re.compile(r'\b([a-z_][\w$]*\.[a-z_][\w$]*)', re.IGNORECASE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--rows", type=int, default=1000, help="in each table, as far as keys leave room [1000]")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one fill [600]")
    options = parser.parse_args()
    files = sorted(options.directory.glob("*.sql"))
    if not files:
        sys.exit(f"no .sql file in {options.directory}")
    totals = [0, 0, 0]
    for file in files:
        for at, count in enumerate(schema(options, file)):
            totals[at] += count
    print("all: {} tables filled, {} refused, {} of these only because of another".format(*totals))


def schema(options, file):
    """Counts of the tables that were filled, were refused, and were refused only because of another."""
    refused, because = {}, set()
    instance = f"schemas-{os.getpid()}-{file.stem}"
    server = [options.pgrig, "server"]
    start = [*server, "start", "--pg-version", options.pg_version, "--instance", instance]
    subprocess.run(start, capture_output=True, check=True)
    started = time.monotonic()
    while True:
        code, said = fill(options, instance, file, refused)
        if code == 0:
            break
        error = said[said.rfind("error:"):]
        names = [name for name in NAME.findall(error) if name not in refused]
        if not names:
            print(f"{file.stem}: not filled: {error.strip()}")
            break
        if any(name in refused for name in NAME.findall(error)):
            because.add(names[0])
        refused[names[0]] = " ".join(error.split())
    # A fill that succeeds says of how many tables.
    found = re.search(r"rows of (\d+) tables?\b", said) if code == 0 else None
    filled = int(found[1]) if found else 0
    seconds = time.monotonic() - started
    counts = f"{filled} tables filled, {len(refused)} refused ({len(because)} only because of another)"
    print(f"{file.stem}: {counts}, {seconds:.0f} s")
    for table, why in refused.items():
        if table not in because:
            print(f"    {table}: {why[:300]}")
    sys.stdout.flush()
    subprocess.run([*server, "destroy", "--instance", instance], capture_output=True, check=False)
    return filled, len(refused), len(because)


def fill(options, instance, file, refused):
    """Exit status and output of one fill without the tables that were refused."""
    command = [options.pgrig, "fill", "--rows", str(options.rows), "--ddl", str(file), "--instance", instance]
    for table in refused:
        command += ["--exclude-table", table]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return 1, "error: not done in time"
    return ran.returncode, ran.stdout + ran.stderr


if __name__ == "__main__":
    main()
