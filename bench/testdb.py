#!/usr/bin/env python3
"""pgrig testdb beside what else gives a fresh database, and beside the article's sed, in turn.

Starts a server of its own through pgrig and prints tables:

- fresh: a database like a template of 200 tables: `pgrig testdb new` with its warm pool, `createdb -T` on the same
  server, and `pg_tmp` (package ephemeralpg) if it is there, which gives a whole server without any tables, each from
  the command's start to its end, with `true` to show what starting any program takes; and handed out by the keeper
  that `new` asks, over its HTTP socket. Before each trial the pool is full. `new` shall take at most a third of createdb's
  time, and handing out at most 5 ms.
- unlog: dumps of pgbench_accounts by pg_dump, with COPY data and with rows as INSERT, one and 1,000 in each, through
  `pgrig testdb unlog`, and through `sed` as in the article, into /dev/null. Each at least 500 MB/s.

All of it goes into one file in records/.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from common import arguments, output, parsed, save, serving, shown, spread, surroundings

TABLES = 200
POOL = 4
LEAST_RATE = 500e6
MOST_SHARE = 1 / 3
MOST_SECONDS = 5e-3
# The article's, 2012.
SED = ["sed", "s/^CREATE TABLE/CREATE UNLOGGED TABLE/"]

# pg_dump's flags.
FORMS = {"COPY": [], "an INSERT a row": ["--inserts"], "1,000 rows an INSERT": ["--rows-per-insert=1000"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.set_defaults(trials=30, profile="stock")
    parser.add_argument("--pg-client-bin", help="directory of createdb and pg_dump, no older than the server; else those "
                        "in --pg-bin, else in PATH")
    parser.add_argument("--scale", type=int, default=70, help="of the dump: 100,000 rows or some 9 MB each")
    parser.add_argument("--dump-trials", type=int, default=6)
    options = parsed(parser)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        record = {"benchmark": "testdb", **surroundings(options, server)}
        record["results"] = {
            "fresh": fresh(options, server, Path(scratch)),
            "unlog": unlog(options, server, Path(scratch)),
        }
    show(record["results"])
    save(options, server, record, f"{TABLES}-tables")


def client(options, program):
    directory = options.pg_client_bin or options.pg_bin
    return str(Path(directory) / program) if directory else program


def schema():
    """Tables as applications have them: a key, some columns, an index, a reference to the one before."""
    for number in range(TABLES):
        reference = f" REFERENCES t{number - 1}" if number else ""
        yield (f"CREATE TABLE t{number} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
               f"parent bigint{reference}, name text NOT NULL, made timestamptz DEFAULT now());\n"
               f"CREATE INDEX ON t{number} (name);\n")


def fresh(options, server, scratch):
    script = scratch / "schema.sql"
    script.write_text("".join(schema()))
    connection = connection_of(server.url)
    environment = {**os.environ, **connection}
    run([client(options, "createdb"), "bench_template"], environment)
    run([options.psql, "-Xqf", str(script), "bench_template"], environment)
    new = [options.pgrig, "testdb", "new", "--from", str(script), "--format", "url", "-q",
           "--pool", str(POOL), "--instance", server.instance]
    # The template and the pool are made.
    run(new)
    keeper = next(Path(server.home).glob("testdb/*/socket"))
    ways = {
        "handed out by the keeper": lambda number: ask(keeper, "POST", "/databases", {"from": str(script), "for": 600}),
        "pgrig testdb new": lambda number: run(new),
        "true": lambda number: run(["true"]),
        "createdb -T": lambda number: run(
            [client(options, "createdb"), "-T", "bench_template", f"bench_{number}"], environment),
    }
    if shutil.which("pg_tmp"):
        # PostgreSQL does not run as root.
        unprivileged = [] if os.getuid() else ["runuser", "-u", "postgres", "--"]
        ways["pg_tmp"] = lambda number: run([*unprivileged, "pg_tmp"])
    results = {way: [] for way in ways}
    for number in range(options.trials):
        for way in rotated(list(ways), number):
            await_pool(options, server)
            started = time.monotonic()
            ways[way](number)
            results[way].append(time.monotonic() - started)
    run([options.pgrig, "testdb", "drop", "--all", "-q", "--instance", server.instance])
    middle = {way: statistics.median(seconds) for way, seconds in results.items()}
    return {"seconds": results, "within": middle["handed out by the keeper"] <= MOST_SECONDS
            and middle["pgrig testdb new"] <= MOST_SHARE * middle["createdb -T"]}


class Keeper(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(keeper, method, path, body):
    connection = Keeper(keeper)
    connection.request(method, path, json.dumps(body))
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status != 201:
        sys.exit(f"{path} failed: {said}")


def await_pool(options, server):
    """Until the pool is full again, so that nobody pays for the one before."""
    listing = [options.pgrig, "testdb", "list", "--json", "-q", "--instance", server.instance]
    spares = []
    for _ in range(200):
        spares = [each for each in json.loads(output(listing))["databases"] if each["state"] == "spare"]
        if len(spares) == POOL:
            break
        time.sleep(0.05)
    else:
        sys.exit(f"pgrig's pool does not fill: {len(spares)} of {POOL}")


def unlog(options, server, scratch):
    run(server.fill(f"--scale {options.scale} --data-only"))
    return {form: rewritten(options, server, scratch / "dump.sql", flags) for form, flags in FORMS.items()}


def rewritten(options, server, dump, flags):
    with dump.open("wb") as file:
        environment = {**os.environ, **connection_of(server.url)}
        subprocess.run([client(options, "pg_dump"), *flags], check=True, stdout=file, env=environment)
    size = dump.stat().st_size
    dump.read_bytes()
    ways = {"pgrig testdb unlog": [options.pgrig, "testdb", "unlog", "-q"], "sed": SED, "cat": ["cat"]}
    results = {way: [] for way in ways}
    for number in range(options.dump_trials):
        for way in rotated(list(ways), number):
            with dump.open("rb") as file:
                started = time.monotonic()
                subprocess.run(ways[way], check=True, stdin=file, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
                results[way].append(time.monotonic() - started)
    rate = size / statistics.median(results["pgrig testdb unlog"])
    return {"bytes": size, "seconds": results, "within": rate >= LEAST_RATE}


def run(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def rotated(items, by):
    return items[by % len(items):] + items[:by % len(items)]


def connection_of(url):
    """The server's PG* variables out of pgrig's URI."""
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    found = {
        "PGHOST": query.get("host") or unquote(parts.hostname or ""),
        "PGPORT": query.get("port") or str(parts.port or ""),
        "PGUSER": query.get("user") or unquote(parts.username or ""),
        "PGDATABASE": "postgres",
    }
    return {name: value for name, value in found.items() if value}


def show(results):
    one, other = results["fresh"], results["unlog"]
    print(f"| a fresh database of {TABLES} tables | ms, median (least to most) | times createdb's |")
    print("|---|---|---|")
    createdb = statistics.median(one["seconds"]["createdb -T"])
    for way, seconds in one["seconds"].items():
        share = statistics.median(seconds) / createdb
        print(f"| {way} | {shown(*spread(each * 1e3 for each in seconds))} | {share:.3f} |")
    print(f"\nnew at most a third of createdb's, handed out in at most {MOST_SECONDS * 1e3:.0f} ms: {'yes' if one['within'] else 'NO'}\n")
    print("| a dump | " + " | ".join(other["COPY"]["seconds"]) + " |")
    print("|---|" + "---|" * len(other["COPY"]["seconds"]))
    for form, result in other.items():
        rates = [spread(result["bytes"] / 1e6 / each for each in seconds) for seconds in result["seconds"].values()]
        print(f"| {form}, {result['bytes'] / 1e6:.0f} MB | " + " | ".join(shown(*rate) for rate in rates) + " |")
    within = all(result["within"] for result in other.values())
    print(f"\nMB/s, median (least to most); at least {LEAST_RATE / 1e6:.0f}: {'yes' if within else 'NO'}")


if __name__ == "__main__":
    main()
