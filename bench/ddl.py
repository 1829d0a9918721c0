"""How right pgrig ddl's forecasts are: forecast from small tables, then measured at ten times the largest of them.

Each round measures each statement at --rows, and then at a tenth of that size and less, with a forecast at --rows. Each statement is a
migration of its own, with pgrig calls of its own; with --in-a-row, all statements are in one migration, a transaction each, as in the
records up to 29 November 2026. At --rows, a migration runs once, or three times if a statement changes only catalogs: then the median
counts. An interval holds if the value that was measured is within it. Prints a line for each statement and
quantity, and a summary. Each round is written to the record when it ends. Rounds of the same options on the same day are added to the
same record: repeat the command after an interruption.

The settings are small enough that their boundaries lie below the measured sizes, but no smaller: with shared_buffers of 4 MB,
PostgreSQL 18 hands the blocks of a scan one by one to its I/O workers, and the time of the same scan varies by a factor of four.
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
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text, email text);
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer_id bigint NOT NULL, state int, total int, note varchar(60), created timestamp);
CREATE INDEX orders_created ON orders (created);
"""
SETTINGS = ["maintenance_work_mem=1MB", "shared_buffers=64MB", "max_wal_size=20GB"]
QUANTITIES = ("seconds", "wal", "space", "temporary")
STATEMENTS = [
    "ALTER TABLE orders ADD a text",
    "ALTER TABLE orders ADD CHECK (total > -2000000000) NOT VALID",
    "ALTER TABLE orders ALTER state SET NOT NULL",
    "ALTER TABLE orders ADD CHECK (total > -2000000000)",
    "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers",
    "ALTER TABLE orders ADD a uuid DEFAULT gen_random_uuid()",
    "ALTER TABLE orders ALTER total TYPE bigint",
    "ALTER TABLE orders ALTER note TYPE text COLLATE \"C\"",
    "CREATE INDEX ON orders (customer_id)",
    "CREATE INDEX ON orders (state, created)",
    "CREATE UNIQUE INDEX ON orders (id, note)",
    "REINDEX INDEX orders_created",
    "CREATE TABLE copy AS SELECT * FROM orders",
    "UPDATE orders SET total = total + 1",
    "DELETE FROM orders",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--rows", type=int, default=3_000_000, help="of the larger table, at the size of the forecast")
    parser.add_argument("--in-a-row", action="store_true",
                        help="all statements in one migration, a transaction each, instead of a migration for each statement")
    parser.add_argument("--set", action="append", default=[], help=f"besides {' '.join(SETTINGS)}")
    parser.add_argument("--figures", action="store_true",
                        help="only count the forecasts with a figure, each statement a migration of its own, with the server's default settings")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    if options.figures:
        count_figures(options)
        return
    options.set = SETTINGS + options.set
    mode = "-in-a-row" if options.in_a_row else ""
    record = Path(options.record,
                  f"{datetime.date.today()}-ddl-forecast-pg{options.pg_version}-{options.rows}-rows{mode}.json")
    given = {name: value for name, value in vars(options).items() if name in ("pg_version", "rows", "set", "in_a_row")}
    earlier = json.loads(record.read_text()) if options.record and record.exists() else {"rounds": 0, "pairs": []}
    if earlier.get("options", given) != given:
        sys.exit(f"{record} has rounds of other options: rename it, or give another --record")
    rounds, pairs = earlier["rounds"], earlier["pairs"]
    measure = in_a_row if options.in_a_row else one_by_one
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        schema, migration = Path(home) / "schema.sql", Path(home) / "migration.sql"
        schema.write_text(SCHEMA)
        try:
            for number in range(rounds, rounds + options.rounds):
                print(f"round {number + 1}", flush=True)
                pairs += measure(options, environment, schema, migration, number)
                if options.record:
                    found = {"machine": platform.platform(), "cores": os.cpu_count(), "options": given, "rounds": number + 1,
                             "statements": STATEMENTS, "summary": summaries(pairs), "pairs": pairs}
                    record.write_text(json.dumps(found, indent=1) + "\n")
        finally:
            subprocess.run([options.pgrig, "server", "destroy", "--instance", "ddl"], env=environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for quantity, found in summaries(pairs).items():
        print(f"{quantity}: {found}")


def count_figures(options):
    """How many forecasts at --rows have a figure, for tables that need a tenth of that at most."""
    found = {quantity: 0 for quantity in QUANTITIES}
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        schema, migration = Path(home) / "schema.sql", Path(home) / "migration.sql"
        schema.write_text(SCHEMA)
        try:
            for statement in STATEMENTS:
                migration.write_text(f"{statement};\n")
                events, = events_of(options, environment, schema, migration, 0, "--up-to", "20MB").values()
                forecast = events["forecast"]["forecast"]
                have = [quantity for quantity in QUANTITIES if isinstance(forecast.get(quantity), dict) and "value" in forecast[quantity]]
                print(f"{', '.join(have):34} {statement}", flush=True)
                for quantity in have:
                    found[quantity] += 1
        finally:
            subprocess.run([options.pgrig, "server", "destroy", "--instance", "ddl"], env=environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"of {len(STATEMENTS)} statements, with a figure: {found}")


def events_of(options, environment, schema, migration, seed, *more):
    """The events of each statement of a migration."""
    settings = [part for setting in options.set for part in ("--set", setting)]
    command = [options.pgrig, "ddl", str(migration), "--schema-file", str(schema), "--pg-version", options.pg_version,
               "--rows", f"customers={options.rows // 5},orders={options.rows}", "--seed", str(seed + 1), "--column", "orders.state=uniform(0,9)",
               "--column", "orders.customer_id=uniform(1,50)", *settings, *more, "--json", "-"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
    return {trial["config"]: {event["what"]["event"]: event["what"] for event in trial["events"]}
            for trial in json.loads(ran.stdout)["trials"] if trial["events"]}


def one_by_one(options, environment, schema, migration, seed):
    """The pairs of a round, with each statement a migration of its own."""
    pairs = []
    for number, statement in enumerate(STATEMENTS, 1):
        print(f"statement {number} of {len(STATEMENTS)}: {statement}", flush=True)
        migration.write_text(f"{statement};\n")
        found = measured(options, environment, schema, migration, seed)
        # In a migration of its own, each statement has the number 1.
        pairs += [{**pair, "statement": f"{number}: {statement}"} for pair in found]
    return pairs


def in_a_row(options, environment, schema, migration, seed):
    """The pairs of a round, with all statements in one migration."""
    print(f"{len(STATEMENTS)} statements in one migration", flush=True)
    # A transaction each, rolled back: every statement finds the same tables.
    migration.write_text("".join(f"BEGIN;\n{statement};\nROLLBACK;\n" for statement in STATEMENTS))
    return measured(options, environment, schema, migration, seed)


def measured(options, environment, schema, migration, seed):
    """The pairs of the statements of a migration: the forecast of each quantity, and the value that was measured. Prints a line for each."""
    def run(*more):
        return events_of(options, environment, schema, migration, seed, *more)

    # First at that size: its bytes tell what a tenth of it is.
    large = run("--up-to", "1TB", "--quick")
    tenth = bytes_of(large) // 10
    # The tables come out smaller or larger than their plan.
    small = run("--up-to", f"{tenth * tenth // bytes_of(run('--up-to', f'{tenth}B', '--quick'))}B")
    found = {config: events for config, events in small.items() if "found" in events and "forecast" in events}
    # One run of a few milliseconds tells little: there, the value is the median of the runs of a whole measurement.
    if any(events["found"]["found"]["class"] == "catalog-only" for events in found.values()):
        large = run("--up-to", "1TB")
    pairs = []
    for config, events in found.items():
        real = large[config]["measured"]["sizes"][-1]
        for quantity in QUANTITIES:
            pair = {"statement": config, "class": events["found"]["found"]["class"], "quantity": quantity,
                    "forecast": events["forecast"]["forecast"].get(quantity),
                    "bytes": [events["measured"]["sizes"][-1]["bytes"], real["bytes"]],
                    "real": events_real(large[config], quantity)}
            print(line(pair), flush=True)
            pairs.append(pair)
    return pairs


def bytes_of(events):
    """Bytes of all tables at the largest size that was measured."""
    return max(event["measured"]["sizes"][-1]["bytes"] for event in events.values() if "measured" in event)


def events_real(events, quantity):
    """The value that was measured; files that did not grow count as one block, as in the forecast."""
    if quantity == "space":
        return max(8192, events["found"]["found"]["space"]["files"])
    if quantity == "temporary":
        return events["found"]["found"]["space"]["temporary"] or 0
    return statistics.median(cost[quantity] for cost in events["measured"]["sizes"][-1]["runs"])


def value(pair):
    return pair["forecast"].get("value") if isinstance(pair["forecast"], dict) else None


def line(pair):
    found = value(pair)
    if found is None:
        return f"{pair['quantity']:8} no figure    {pair['statement']}"
    ratio = found["value"] / pair["real"] if pair["real"] else float("nan")
    holds = "in " if found["low"] <= pair["real"] <= found["high"] else "OUT"
    return (f"{pair['quantity']:8} {ratio:5.2f} {holds} {pair['real']:.4g} forecast {found['value']:.4g} "
            f"({found['low']:.4g} to {found['high']:.4g})  {pair['class']}: {pair['statement']}")


def summaries(pairs):
    """The summary of each quantity."""
    return {quantity: summed([pair for pair in pairs if pair["quantity"] == quantity]) for quantity in QUANTITIES}


def summed(pairs):
    with_figure = [(value(pair), pair["real"]) for pair in pairs if value(pair) and pair["real"]]
    factors = sorted(max(found["value"] / real, real / found["value"]) for found, real in with_figure)
    holds = [found["low"] <= real <= found["high"] for found, real in with_figure]
    if not factors:
        return {"pairs": len(pairs), "with figure": 0}
    at = lambda part: round(factors[min(len(factors) - 1, int(part * len(factors)))], 3)
    return {"pairs": len(pairs), "with figure": len(with_figure), "median factor": round(statistics.median(factors), 3),
            "p95 factor": at(0.95), "intervals hold": f"{sum(holds)} of {len(holds)}"}


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
