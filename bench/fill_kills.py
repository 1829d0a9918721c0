#!/usr/bin/env python3
"""pgrig fill in parts, of which one is killed at a random moment, or the server crashes.

Starts a server of its own through pgrig. Each case begins a fill by four parts, of pgbench's tables or of a schema (--ddl), and kills
one of them (kill -9), or the server with all its processes. Then it checks:

- noticed: a part that ends names the killed one, or the others complete the fill; after a crash of the server all parts fail;
- the same command completes the fill: the killed part again, or another number of parts, or one process;
- all rows, keys and indexes are those of one process;
- nothing is left: tables and schemas of pgrig, its locks, sessions, processes, journals, files that belong to no relation.

A part that ended before it was to be killed does not count: the case is repeated with another moment. Needs psql. Everything goes into
one file in records/.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from common import arguments, parsed, save, serving, shown, spread, surroundings

PARTS = 4
SHOP = """
CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text UNIQUE NOT NULL, credit numeric(10,2));
CREATE TABLE products (id serial PRIMARY KEY, sku text NOT NULL UNIQUE, tags text[]);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, placed_at timestamptz NOT NULL);
CREATE INDEX ON orders (customer_id);
CREATE TABLE items (order_id bigint REFERENCES orders, line smallint, product_id int NOT NULL REFERENCES products,
    quantity int NOT NULL CHECK (quantity BETWEEN 1 AND 100), PRIMARY KEY (order_id, line));
CREATE TABLE flags (code char(2));
"""
BENCH, SCHEMA = "pgbench's tables", "--ddl"
TABLES = {
    BENCH: ["pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history"],
    SCHEMA: ["customers", "products", "orders", "items", "flags"],
}
# Seconds in which all processes of a case end.
DEADLINE = 120
# Share of cases in which the server crashes.
CRASHES = 0.15
# Attempts to kill a part before it ends.
ATTEMPTS = 10


class Broken(Exception):
    """A promise that pgrig did not keep."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=3600, help="begin no further case after this time")
    parser.add_argument("--only", type=int, help="this case alone")
    parser.set_defaults(profile="stock")
    options = parsed(parser)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, server, Path(scratch))
        record = {"benchmark": "fill-parts", **surroundings(options, server), "parts": PARTS, "rows": bench.rows()}
        cases, until = [], time.monotonic() + options.seconds
        for number in range(options.kills) if options.only is None else [options.only]:
            if time.monotonic() > until:
                break
            case = bench.case(number)
            cases.append(case)
            print(f"{number:4} {' · '.join(f'{name} {value}' for name, value in case.items())}", flush=True)
        record["results"] = results(cases)
        record["cases"] = cases
    for name, result in record["results"].items():
        print(f"{name}: {result}")
    if options.only is None:
        save(options, server, record, f"{len(cases)}-kills")
    if record["results"]["broken"]:
        sys.exit(1)


def results(cases):
    return {
        "broken": [case for case in cases if "broken" in case],
        "killed": dict(Counter(case["killed"] for case in cases)),
        "outcome": dict(Counter(case.get("outcome", "broken") for case in cases)),
        "completed by": dict(Counter(case["by"] for case in cases if "by" in case)),
        "others ended after, s": shown(*spread(case["others"] for case in cases if "others" in case)),
    }


class Bench:
    def __init__(self, options, server, scratch):
        self.options, self.server, self.scratch = options, server, scratch
        (scratch / "shop.sql").write_text(SHOP)
        self.flags = {
            BENCH: "--rows 100000 --chunk 200kB --streams 1 --foreign-keys",
            SCHEMA: f"--ddl {scratch}/shop.sql --chunk 100kB --streams 1 --seed 3 --rows "
                    "customers=4000,products=1000,orders=2*customers,items=2*orders,flags=5",
        }
        self.seconds, self.expected = {}, {}
        # Files that the server itself has left after a crash, of transactions that created tables.
        self.of_crashes = set()
        for subject in TABLES:
            started = time.monotonic()
            for process in [self.part(subject, number, PARTS) for number in range(1, PARTS + 1)]:
                self.must(process)
            self.seconds[subject] = time.monotonic() - started
            in_parts = self.contents(subject)
            self.drop(subject)
            self.must(self.start(subject, ""))
            self.expected[subject] = self.contents(subject)
            self.drop(subject)
            if in_parts != self.expected[subject]:
                raise Broken(f"four parts make other data than one process: {in_parts} {self.expected[subject]}")
            print(f"{subject}: {self.seconds[subject]:.2f} s in parts")

    def rows(self):
        return {subject: sum(int(each.split("|")[0]) for each in found[0]) for subject, found in self.expected.items()}

    def start(self, subject, more):
        process = subprocess.Popen(
            self.server.fill(f"{self.flags[subject]} {more}"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process

    def part(self, subject, number, of):
        return self.start(subject, f"--part {number}/{of}")

    def end(self, process):
        """Waits for its end; returns its results and errors."""
        try:
            out, said = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Broken(f"did not end: {' '.join(process.args)}") from None
        return out + said

    def must(self, process):
        said = self.end(process)
        if process.returncode != 0:
            raise Broken(f"{' '.join(process.args)}: exit status {process.returncode}:\n{said}")
        return said

    def case(self, number):
        """One case, for the record."""
        subject = list(TABLES)[number % 2]
        for attempt in range(ATTEMPTS):
            chance = random.Random(f"{self.options.seed}-{number}-{attempt}")
            case = {"subject": subject, "killed": "server" if chance.random() < CRASHES else "part"}
            try:
                if self.play(case, chance):
                    return case
            except (Broken, subprocess.CalledProcessError) as broken:
                case["broken"] = f"{broken} {getattr(broken, 'stderr', '') or ''}"
                print(f"case {number}: {case['broken']}", file=sys.stderr)
                self.begin_anew(subject)
                return case
        return case | {"broken": "no part lived long enough to be killed"}

    def play(self, case, chance):
        """Returns whether something was killed."""
        subject = case["subject"]
        order = list(range(1, PARTS + 1))
        chance.shuffle(order)
        running = {number: self.part(subject, number, PARTS) for number in order}
        at = chance.uniform(0, self.seconds[subject])
        victim = chance.choice(order)
        time.sleep(at)
        case["at"] = round(at, 2)
        is_part = case["killed"] == "part"
        there = any(process.poll() is None for process in running.values())
        if running[victim].poll() is not None if is_part else not there:
            for process in running.values():
                self.end(process)
            self.begin_anew(subject)
            return False
        since = time.monotonic()
        ended = [number for number, process in running.items() if process.poll() is not None]
        if is_part:
            running[victim].kill()
            case["part"] = victim
        else:
            self.crash()
        said = {number: self.end(process) for number, process in running.items()}
        case["others"] = round(time.monotonic() - since, 2)
        if not is_part:
            self.server.pgrig("server", "start")
        self.noticed(case, running, said, ended, victim)
        if not self.is_complete(subject):
            self.complete(case, chance, subject, victim, is_part)
        self.check(subject, is_part)
        self.drop(subject)
        return True

    def noticed(self, case, running, said, ended, victim):
        subject = case["subject"]
        is_part = case["killed"] == "part"
        if is_part and running[victim].returncode not in (-signal.SIGKILL, 0):
            raise Broken(f"the killed part ended with {running[victim].returncode}: {said[victim]}")
        if self.is_complete(subject):
            case["outcome"] = "completed by the others"
            return
        others = {number: process for number, process in running.items() if number != victim and number not in ended}
        if is_part:
            wrong = {number: process.returncode for number, process in others.items() if process.returncode != 0}
            # A part that arrived first held the others up: they go on without it.
            if wrong:
                raise Broken(f"parts failed: {wrong}: {said}")
            named = [text for text in said.values() if re.search(rf"parts? ([\d, ]*\b)?{victim}\b[\d, ]*(has|have) not ended", text)]
            if others and not named:
                raise Broken(f"nobody names part {victim}: {said}")
            case["outcome"] = "named by the others" if others else "killed last"
        else:
            wrong = [number for number, process in running.items() if number not in ended and process.returncode == 0]
            if len(wrong) == len(running):
                raise Broken(f"nobody noticed the crash: {said}")
            case["outcome"] = "the parts failed"

    def complete(self, case, chance, subject, victim, is_part):
        ways = ["one process", "2 parts", "3 parts", "4 parts"]
        if is_part:
            ways.append("the killed part")
        case["by"] = chance.choice(ways)
        if case["by"] == "one process":
            processes = [self.start(subject, "")]
        elif case["by"] == "the killed part":
            processes = [self.part(subject, victim, PARTS)]
        else:
            of = int(case["by"].split()[0])
            processes = [self.part(subject, number, of) for number in range(1, of + 1)]
        said = [self.must(process) for process in processes]
        if not self.is_complete(subject):
            raise Broken(f"{case['by']} did not complete the fill: {said}")

    def crash(self):
        """All processes of the server at once, as by a power cut."""
        postmaster = int((self.data() / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in [postmaster, *map(int, children)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def data(self):
        return Path(self.server.home) / "instances" / self.server.instance / "data"

    # The server as witness

    def is_complete(self, subject):
        """The tables are there and no record of a fill is left."""
        there = self.server.query(f"SELECT count(*) FROM pg_class WHERE relname = '{TABLES[subject][0]}'")
        left = self.server.query("SELECT count(*) FROM pg_class WHERE relname LIKE 'pgrig%'")
        return there == "1" and left == "0"

    def contents(self, subject):
        """Rows of all tables in any order, and their keys and indexes."""
        rows = [self.server.query(f"SELECT count(*), sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint) FROM {table} t")
                for table in TABLES[subject]]
        keys = self.server.query(
            "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint "
            "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2")
        indexes = self.server.query("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")
        defaults = self.server.query("SELECT adrelid::regclass, pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1, 2")
        return rows, keys, indexes, defaults

    def check(self, subject, is_part):
        found = self.contents(subject)
        for name, one, other in zip(("rows", "constraints", "indexes", "defaults"), self.expected[subject], found):
            if one != other:
                raise Broken(f"{name} differ from those of one process:\n{one}\n{other}")
        nothing = {
            "relations": "SELECT relname FROM pg_class WHERE relname LIKE 'pgrig%'",
            "schemas": "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pgrig%'",
        }
        for name, query in nothing.items():
            if left := self.server.query(query):
                raise Broken(f"{name} are left: {left}")
        # Sessions of killed processes end by themselves.
        self.until("locks are left", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        self.until("sessions are left", "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgrig%'")
        self.no_orphans(is_part)
        for directory in ("journal", "direct"):
            path = Path(self.server.home) / directory
            files = [file.name for file in path.rglob("*") if file.is_file() and file.suffix != ".lock"] if path.exists() else []
            if files:
                raise Broken(f"{directory}/ has {files}")

    def until(self, what, query):
        since = time.monotonic()
        while self.server.query(query) != "0":
            if time.monotonic() - since > 30:
                raise Broken(what)
            time.sleep(0.05)

    def no_orphans(self, is_part):
        """Each file of the database belongs to a relation. The server removes files of dropped ones at a checkpoint, and none after a
        crash."""
        since = time.monotonic()
        directory = self.data() / "base" / self.server.query("SELECT oid FROM pg_database WHERE datname = current_database()")
        while True:
            self.server.query("CHECKPOINT")
            files = {match[1] for file in directory.iterdir() if (match := re.match(r"(\d+)(_|\.|$)", file.name))}
            known = set(self.server.query(
                "SELECT pg_relation_filenode(oid) FROM pg_class WHERE pg_relation_filenode(oid) IS NOT NULL").split())
            if not is_part:
                self.of_crashes = files - known
            if files <= known | self.of_crashes:
                return
            if time.monotonic() - since > 30:
                raise Broken(f"files of no relation: {sorted(files - known - self.of_crashes)}")
            time.sleep(0.1)

    def drop(self, subject):
        self.server.query(f"DROP TABLE {', '.join(TABLES[subject])}")

    def begin_anew(self, subject):
        """Removes everything, whatever is there."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self.server.pgrig("server", "start")
        self.server.query("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        self.server.query("DROP SCHEMA IF EXISTS pgrig CASCADE")


if __name__ == "__main__":
    main()
