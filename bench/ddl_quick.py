"""The time of pgrig ddl --quick for a migration of ten statements on three tables of --size each.

The time is that of the whole command, from a server that does not exist yet: initdb, the fill, all runs of the migration, and the
databases that are dropped. It is measured from outside of pgrig. Rounds of the same options on the same day are added to the same
record. The size is what pgrig plans; the record has the bytes of the tables that it filled.

--beside SIZE answers another question: how the seconds of a statement with --quick differ from those without. Each round runs the
migration with and without --quick, in turns, on tables of SIZE each, and pairs the one time of each statement with the median of the three
that pgrig takes at its largest size. The result for each statement is the median of the rounds' ratios.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import cpu, memory, output, spread

REPO = Path(__file__).resolve().parent.parent
# Seconds.
TARGET = 240
SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text, email text, created timestamptz);
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer_id bigint NOT NULL, status text, total int, note varchar(60), created timestamptz);
CREATE INDEX orders_created ON orders (created);
CREATE TABLE items (id bigint PRIMARY KEY, order_id bigint NOT NULL, product_id int, quantity int, price int);
CREATE INDEX items_order ON items (order_id);
"""
STATEMENTS = [
    "ALTER TABLE orders ADD COLUMN comment text",
    "ALTER TABLE orders ADD COLUMN token uuid DEFAULT gen_random_uuid()",
    "ALTER TABLE orders ALTER status SET NOT NULL",
    "CREATE INDEX CONCURRENTLY orders_status ON orders (status)",
    "ALTER TABLE items ADD CHECK (quantity > -2000000000)",
    "ALTER TABLE items ADD FOREIGN KEY (order_id) REFERENCES orders NOT VALID",
    "ALTER TABLE items ALTER price TYPE bigint",
    "CREATE INDEX customers_email ON customers (email)",
    "ALTER TABLE customers ALTER email TYPE varchar(200)",
    "UPDATE customers SET name = upper(name) WHERE id % 10 = 0",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--size", default="1GB", help="of each table, with its indexes")
    parser.add_argument("--beside", metavar="SIZE", help="of each table: compare the times with those without --quick")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    if options.beside:
        beside(options)
    else:
        whole(options)


def whole(options):
    """Rounds of the time of the whole command."""
    path, earlier = begun(options, f"ddl-quick-pg{options.pg_version}-3x{options.size}")
    trials = earlier + [trial(options, options.size, True) for _ in range(options.rounds)]
    low, middle, high = spread(each["seconds"] for each in trials)
    results = {"rounds": len(trials), "seconds": [low, middle, high], "target": TARGET, "is_reached": middle <= TARGET}
    print(f"{middle:.0f} s ({low:.0f} to {high:.0f}) in {len(trials)} rounds; the target is {TARGET} s")
    record(options, path, {"size": options.size}, results, trials)


def beside(options):
    """Rounds of the times of the statements, with --quick and without."""
    path, trials = begun(options, f"ddl-quick-beside-pg{options.pg_version}-3x{options.beside}")
    for _ in range(options.rounds):
        order = [True, False] if len(trials) % 2 == 0 else [False, True]
        ran = {is_quick: trial(options, options.beside, is_quick) for is_quick in order}
        trials.append({"quick": ran[True], "full": ran[False]})
    results = {}
    for quick in trials[0]["quick"]["statements"]:
        name = quick["statement"]
        low, middle, high = spread(ratio(each, name) for each in trials)
        full = statistics.median(time_of(each["full"], name) for each in trials)
        results[name] = {"ratio": [low, middle, high], "seconds of the full run": full}
        print(f"{middle:5.2f} ({low:.2f} to {high:.2f})  {full:8.3f} s  {name}")
    record(options, path, {"beside": options.beside}, results, trials)


def ratio(round, name):
    return time_of(round["quick"], name) / time_of(round["full"], name)


def time_of(trial, name):
    """Median seconds of a statement at the largest size."""
    return next(each["time"] for each in trial["statements"] if each["statement"] == name)


def begun(options, name):
    """The file of the record, and the trials that it has."""
    path = Path(options.record, f"{datetime.date.today()}-{name}.json")
    return path, json.loads(path.read_text())["trials"] if options.record and path.exists() else []


def record(options, path, given, results, trials):
    if options.record:
        found = {"benchmark": "ddl-quick", "options": {"pg_version": options.pg_version, **given}, "statements": STATEMENTS,
                 "schema": SCHEMA,
                 "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()},
                 "pgrig": output([options.pgrig, "--version"]), "results": results, "trials": trials}
        path.write_text(json.dumps(found, indent=1) + "\n")


def trial(options, size, is_quick):
    """A run of the command, from nothing."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        files = {"schema.sql": SCHEMA, "migration.sql": "".join(f"{statement};\n" for statement in STATEMENTS)}
        for name, text in files.items():
            Path(home, name).write_text(text)
        # PostgreSQL itself is there: its download is not part of the time.
        fetch = [options.pgrig, "server", "start", "--instance", "fetched", "--pg-version", options.pg_version]
        command = [options.pgrig, "ddl", str(Path(home, "migration.sql")), "--schema-file", str(Path(home, "schema.sql")),
                   "--size", ",".join(f"{table}={size}" for table in ("customers", "orders", "items")), "--up-to", "1TB",
                   *(["--quick"] if is_quick else []), "--pg-version", options.pg_version, "--json", "-"]
        try:
            subprocess.run(fetch, env=environment, check=True, capture_output=True)
            destroy(options, environment, "fetched")
            began = time.monotonic()
            ran = subprocess.run(command, env=environment, capture_output=True, text=True)
            seconds = time.monotonic() - began
        finally:
            destroy(options, environment, "ddl")
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
    run = json.loads(ran.stdout)
    figures = []
    for measured in run["trials"]:
        figures.append({"statement": measured["config"], **{each["name"]: each["value"] for each in measured["observations"]}})
        # The bytes of a foreign key's statement are those of both tables.
        largest = next(event["what"]["sizes"][-1] for event in measured["events"] if event["what"]["event"] == "measured")
        figures[-1] |= {"bytes": largest["bytes"], "rows": largest["rows"]}
        figures[-1]["time"] = statistics.median(each["seconds"] for each in largest["runs"])
    return {"seconds": seconds, "load": os.getloadavg()[0], "statements": figures}


def destroy(options, environment, instance):
    subprocess.run([options.pgrig, "server", "destroy", "--instance", instance], env=environment, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
