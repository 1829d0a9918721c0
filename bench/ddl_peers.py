"""pgrig ddl beside eugene and pg-blast-radius, on the statements of bench/ddl.py, against the server itself.

The server runs each statement on filled tables in a transaction that is rolled back: pg_locks and the relfilenodes before the end
are the truth, and the median time of --trials runs. eugene traces the statement on the same tables. pg-blast-radius reads the text
and the sizes of the same tables, with its defaults. pgrig makes its own tables of a tenth of that size, and forecasts.
A peer whose program is not given is left out. Each of the --rounds begins with a new server. Needs psql.
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
from urllib.parse import parse_qs, urlsplit

from common import spread
from ddl import REPO, SCHEMA, STATEMENTS

MODES = ["AccessShare", "RowShare", "RowExclusive", "ShareUpdateExclusive", "Share", "ShareRowExclusive", "Exclusive",
         "AccessExclusive"]
TABLES = ("orders", "customers")
SETTINGS = ["wal_level=replica", "autovacuum=off", "maintenance_work_mem=1MB", "shared_buffers=64MB", "max_wal_size=20GB"]
STATE = """SELECT json_object_agg(relname, json_build_object('file', pg_relation_filenode(c.oid), 'modes',
  (SELECT json_agg(mode) FROM pg_locks WHERE relation = c.oid AND pid = pg_backend_pid())))
  FROM pg_class c WHERE relname IN ('orders', 'customers')"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--eugene", help="its program")
    parser.add_argument("--pg-blast-radius", help="its program")
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--rows", type=int, default=500_000, help="of the larger table")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    rounds = []
    for number in range(options.rounds):
        rounds.append(one_round(options))
        for tool in tools_of(rounds[-1]):
            print(f"round {number + 1}: {tool}: {summed(rounds[-1], tool)}", flush=True)
    for each in rounds[-1]:
        print(each["statement"])
        for tool in ("truth", *tools_of(rounds[-1])):
            print(f"  {tool:16} {each[tool]}")
    summary = {tool: over([summed(found, tool) for found in rounds]) for tool in tools_of(rounds[-1])}
    for tool, of_tool in summary.items():
        print(f"{tool}: {of_tool}")
    if options.record:
        name = f"{datetime.date.today()}-ddl-peers-pg{options.pg_version}-{options.rows}-rows.json"
        given = {key: value for key, value in vars(options).items() if key in ("pg_version", "rows", "trials", "rounds")}
        record = {"machine": platform.platform(), "cores": os.cpu_count(), "options": given, "settings": SETTINGS,
                  "versions": versions(options), "summary": summary, "rounds": rounds}
        Path(options.record, name).write_text(json.dumps(record, indent=1) + "\n")


def one_round(options):
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home, "PGPASS": "none"}
        Path(home, "schema.sql").write_text(SCHEMA)
        try:
            return measured(options, Path(home), environment)
        finally:
            for instance in ("truth", "ddl"):
                subprocess.run([options.pgrig, "server", "destroy", "--instance", instance], env=environment, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tools_of(found):
    return [tool for tool in ("pgrig", "eugene", "pg-blast-radius") if any(tool in each for each in found)]


def over(summaries):
    """For each figure the lowest, the median and the highest of the rounds; none if no round has one."""
    values = {key: [each[key] for each in summaries if each[key] is not None] for key in summaries[0]}
    return {key: list(spread(of)) if of else None for key, of in values.items()}


def measured(options, home, environment):
    """For each statement the truth, and what each tool says."""
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    start = [options.pgrig, "server", "start", "--instance", "truth", "--profile", "stock", "--pg-version", options.pg_version]
    url = output([*start, *settings], environment).splitlines()[-1]
    customers = options.rows // 5
    psql(url, SCHEMA, f"INSERT INTO customers SELECT i, md5(i::text), md5((-i)::text) FROM generate_series(1, {customers}) i",
         f"INSERT INTO orders SELECT i, 1 + i % 50, i % 10, i % 1000, md5(i::text), now() - i * interval '1 s' "
         f"FROM generate_series(1, {options.rows}) i", "VACUUM ANALYZE")
    bytes_of = int(psql(url, "SELECT sum(pg_total_relation_size(c)) FROM unnest('{orders,customers}'::regclass[]) c")[-1])
    by_pgrig = of_pgrig(options, home, environment, settings, bytes_of)
    found = []
    for number, statement in enumerate(STATEMENTS):
        file = home / f"V{number}__statement.sql"
        file.write_text(statement + ";\n")
        each = {"statement": statement, "truth": truth(url, statement, options.trials), "pgrig": by_pgrig.get(statement)}
        if options.eugene:
            each["eugene"] = of_eugene(options, environment, url, file)
        if options.pg_blast_radius:
            each["pg-blast-radius"] = of_blast_radius(options, environment, url, file)
        found.append(each)
    return found


def truth(url, statement, trials):
    """The strongest lock on each table, the tables with new files, and the seconds."""
    seconds = []
    for _ in range(trials):
        psql(url, "CHECKPOINT")
        said = psql(url, STATE, "BEGIN", "SELECT extract(epoch FROM clock_timestamp())", statement,
                    "SELECT extract(epoch FROM clock_timestamp())", STATE, "ROLLBACK")
        before, began, ended, after = json.loads(said[0]), float(said[1]), float(said[2]), json.loads(said[3])
        seconds.append(ended - began)
    # The reading of the files itself takes no lock on the tables that lasts; ACCESS SHARE blocks nobody.
    locks = {table: strongest(mode.removesuffix("Lock") for mode in after[table]["modes"] or []) for table in TABLES}
    return {"locks": blocking(locks), "rewrites": [table for table in TABLES if before[table]["file"] != after[table]["file"]],
            "seconds": statistics.median(seconds)}


def of_pgrig(options, home, environment, settings, bytes_of):
    migration = home / "migration.sql"
    migration.write_text("".join(f"BEGIN;\n{statement};\nROLLBACK;\n" for statement in STATEMENTS))
    command = [options.pgrig, "ddl", str(migration), "--schema-file", str(home / "schema.sql"), "--pg-version", options.pg_version,
               "--rows", f"customers={options.rows // 5},orders={options.rows}", "--column", "orders.state=uniform(0,9)",
               "--column", "orders.customer_id=uniform(1,50)", "--up-to", f"{bytes_of // 10}B", *settings, "--json", "-"]
    ran = json.loads(output(command, environment))
    found = {}
    for trial in ran["trials"]:
        events = {event["what"]["event"]: event["what"] for event in trial["events"]}
        if "found" not in events:
            continue
        what = events["found"]["found"]
        modes = {table: strongest(mode_of(lock["mode"]) for lock in what["locks"] if lock["relation"] == table) for table in TABLES}
        forecast = events.get("forecast", {}).get("forecast", {}).get("seconds", {})
        value = forecast.get("value") if isinstance(forecast, dict) else None
        found[trial["config"].split(": ", 1)[1]] = {
            "class": what["class"], "locks": blocking(modes),
            "rewrites": [work["relation"] for work in what["works"] if work["kind"] == "rewrite" and work["relation"] in TABLES],
            "seconds": [value["low"], value["value"], value["high"]] if value else None}
    return found


def of_eugene(options, environment, url, file):
    [host], [port] = (parse_qs(urlsplit(url).query)[key] for key in ("host", "port"))
    command = [options.eugene, "trace", "--disable-temporary", "-e", "-f", "json", "-U", "postgres", "-d", "postgres",
               "-H", host, "-p", port, str(file)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    try:
        traced = json.loads(ran.stdout)
    except json.JSONDecodeError:
        return {"failed": (ran.stderr.strip().splitlines() or [""])[0].replace(str(file), file.name)}
    traced = traced[0] if isinstance(traced, list) else traced
    locks = traced["all_locks_acquired"]
    modes = {table: strongest(lock["mode"].removesuffix("Lock") for lock in locks if lock["object_name"] == table)
             for table in TABLES}
    rules = {rule["id"] for each in traced["statements"] for rule in each["triggered_rules"]}
    # It forecasts no time; its own is that of the tables it is given.
    return {"locks": blocking(modes), "rules": sorted(rules), "rewrites": rewritten(rules), "seconds": None}


def rewritten(rules):
    """E5, E11, E10: a table was written anew. E10 also says so of an index, and then E6 does, too."""
    return ["orders"] if rules & {"E5", "E11"} or "E10" in rules and "E6" not in rules else []


def of_blast_radius(options, environment, url, file):
    command = [options.pg_blast_radius, "analyse", str(file), "--dsn", url, "--format", "json"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    try:
        result = json.loads(ran.stdout)[0]
        if not result["findings"]:
            return None
    except (json.JSONDecodeError, IndexError):
        return {"failed": (ran.stderr.strip().splitlines() or [""])[0].replace(str(file), file.name)}
    modes = {table: [] for table in TABLES}
    seconds, rewrites = None, []
    for finding in result["findings"]:
        table = (finding["affected_table"] or "").split(".")[-1].strip('"')
        if table in modes:
            modes[table].append(mode_of(finding["lock_mode"]))
        if finding["rewrite"]["type"] == "required":
            rewrites.append(table)
        if forecast := finding["duration_forecast"]:
            seconds = [forecast["fast_seconds"], forecast["slow_seconds"], forecast["worst_seconds"]]
    return {"locks": blocking({table: strongest(of) for table, of in modes.items()}),
            "rewrites": rewrites, "seconds": seconds}


def summed(found, tool):
    """Statements of which it names the locks and the rewrite as the server has them, and how far its seconds are from the server's."""
    said = [(each[tool], each["truth"]) for each in found if each.get(tool) and "failed" not in each[tool]]
    same = lambda key: sum(of.get(key) == truth[key] for of, truth in said)
    timed = [(of["seconds"], truth["seconds"]) for of, truth in said if of.get("seconds") and min(of["seconds"]) > 0]
    factors = [max(middle / real, real / middle) for (_, middle, _), real in timed]
    holds = sum(low <= real <= high for (low, _, high), real in timed)
    return {"statements": len(found), "judged": len(said), "locks": same("locks"), "rewrites": same("rewrites"), "forecasts": len(timed),
            "median factor": round(statistics.median(factors), 2) if factors else None, "within its range": holds}


def mode_of(name):
    """AccessExclusive for ACCESS-EXCLUSIVE, ACCESS_EXCLUSIVE or AccessExclusive."""
    plain = name.replace("-", "").replace("_", "").replace(" ", "").lower()
    return next(mode for mode in MODES if mode.lower() == plain)


def strongest(modes):
    return max(modes, key=MODES.index, default=None)


def blocking(modes):
    return {table: mode for table, mode in modes.items() if mode and mode != "AccessShare"}


def versions(options):
    programs = {"pgrig": options.pgrig, "eugene": options.eugene, "pg-blast-radius": options.pg_blast_radius}
    return {name: output([program, "--version"]).splitlines()[0] for name, program in programs.items() if program}


def psql(url, *statements):
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url]
    return output([*command, *(part for statement in statements for part in ("-c", statement))]).splitlines()


def output(command, environment=None):
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
    return ran.stdout.strip()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
