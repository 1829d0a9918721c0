"""The time of pgrig ddl --quick for a migration of ten statements on three tables of --size each.

The time is that of the whole command, from a server that does not exist yet: initdb, the fill, all runs of the migration, and the
databases that are dropped. It is measured from outside of pgrig. Rounds of the same options on the same day are added to the same
record. The size is what pgrig plans; the record has the bytes of the tables that it filled.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
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
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    record = Path(options.record, f"{datetime.date.today()}-ddl-quick-pg{options.pg_version}-3x{options.size}.json")
    earlier = json.loads(record.read_text()) if options.record and record.exists() else {"trials": []}
    trials = earlier["trials"] + [measured(options) for _ in range(options.rounds)]
    low, middle, high = spread(trial["seconds"] for trial in trials)
    results = {"rounds": len(trials), "seconds": [low, middle, high], "target": TARGET, "is_reached": middle <= TARGET}
    print(f"{middle:.0f} s ({low:.0f} to {high:.0f}) in {len(trials)} rounds; the target is {TARGET} s")
    if options.record:
        given = {"pg_version": options.pg_version, "size": options.size}
        found = {"benchmark": "ddl-quick", "options": given, "statements": STATEMENTS, "schema": SCHEMA,
                 "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()},
                 "pgrig": output([options.pgrig, "--version"]), "results": results, "trials": trials}
        record.write_text(json.dumps(found, indent=1) + "\n")


def measured(options):
    """A run of the command, from nothing."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        files = {"schema.sql": SCHEMA, "migration.sql": "".join(f"{statement};\n" for statement in STATEMENTS)}
        for name, text in files.items():
            Path(home, name).write_text(text)
        # PostgreSQL itself is there: its download is not part of the time.
        fetch = [options.pgrig, "server", "start", "--instance", "fetched", "--pg-version", options.pg_version]
        command = [options.pgrig, "ddl", str(Path(home, "migration.sql")), "--schema-file", str(Path(home, "schema.sql")),
                   "--size", ",".join(f"{table}={options.size}" for table in ("customers", "orders", "items")), "--up-to", "1TB",
                   "--quick", "--pg-version", options.pg_version, "--json", "-"]
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
    figures = [{"statement": trial["config"], **{each["name"]: each["value"] for each in trial["observations"]}}
               for trial in run["trials"]]
    largest = [event["what"]["sizes"][-1] for trial in run["trials"] for event in trial["events"]
               if event["what"]["event"] == "measured"]
    # Those of the statements' tables; the largest are of both tables of the foreign key.
    return {"seconds": seconds, "load": os.getloadavg()[0], "bytes": [size["bytes"] for size in largest],
            "rows": [size["rows"] for size in largest], "statements": figures}


def destroy(options, environment, instance):
    subprocess.run([options.pgrig, "server", "destroy", "--instance", instance], env=environment, check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
