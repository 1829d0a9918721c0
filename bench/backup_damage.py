#!/usr/bin/env python3
"""How many damaged backups pgrig backup check detects.

Starts a server of its own through pgrig, and fills a database of about 10 MB. For each way of backup it makes two backups: an older
one, and one after some rows have changed. It damages a copy of the second one at random places, runs pgrig backup check on each damaged
copy, and counts:

- detected: the verdict is "damaged" (exit status 3);
- refused: pgrig cannot tell what kind of backup it is (exit status 2);
- harmless: no damage found, and the restored content is the same: for dumps the SQL text without its comments, as pg_restore writes it; for
  base backups all files but the manifest, and of WAL the range that the manifest names;
- missed: no damage found, but the content is another. The record has the class of each: rows, definitions, large objects, files, or that
  pg_restore fails;
- faults: another exit status, no end within 120 s, or the verdict "whole" for other content.

The undamaged backup of each way is checked 5 times. With --restore, pgrig also restores the missed ones, which shows how many more are
detected then.

The places of the damages follow from the seed. The backups themselves differ between two runs, as times and positions in WAL do: --keep
saves what was missed. A damage that is drawn again does not count again, so there are fewer of some kinds than --damages. Ways that are
measured on the same day are added to the same record. Needs the client programs of one version of PostgreSQL.
"""

import argparse
import contextlib
import datetime
import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

from common import REPO, cpu, memory

# Seconds in which a run of pgrig ends.
DEADLINE = 120
# Checks of each undamaged backup.
UNDAMAGED = 5
# Bytes of a damaged run or block.
RUN = (512, 8192)
# A page of the server, and a block of a file system.
PAGE, BLOCK = 8192, 4096
# Attempts to find a place where the damage changes a byte.
ATTEMPTS = 50
# Segments of WAL.
SEGMENT = re.compile("[0-9A-F]{24}")
SEGMENT_SIZE = 16 << 20
# Sizes of the headers of pages of WAL: of the first one in a segment, and of others.
LONG, SHORT = 40, 24
MANIFEST = "backup/backup_manifest"
# Name of the target in a command line.
FILE = "FILE"
# Exit statuses of pgrig.
FINE, REFUSED, DAMAGED = 0, 2, 3

SCHEMA = """
SELECT setseed(0.5);
CREATE FUNCTION words(number int, seed bigint) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT string_agg((ARRAY['the','of','river','stone','blue','market','quickly','größe','north','paper','seven','winter','green',
        'a','to','under','letter','bridge','glass','często','evening','number','small','harbour','salt',
        'iron'])[1 + floor(random() * 26)::int], ' ')
    FROM generate_series(1, number) WHERE seed IS NOT NULL $$;
CREATE TABLE customers (
    id bigint PRIMARY KEY, name text NOT NULL, email text UNIQUE, city varchar(40), credit numeric(10,2), joined timestamptz);
CREATE TABLE products (id serial PRIMARY KEY, sku text NOT NULL, description text, tags text[], attributes jsonb);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, status text, note text,
    placed timestamptz);
CREATE INDEX orders_placed ON orders (placed);
CREATE TABLE items (
    order_id bigint REFERENCES orders, line smallint, product_id int NOT NULL REFERENCES products, quantity int CHECK (quantity > 0),
    price numeric(10,2), PRIMARY KEY (order_id, line));
CREATE TABLE measurements (at timestamptz, sensor int, value double precision);
CREATE TABLE documents (id int PRIMARY KEY, title text, body bytea);
CREATE TABLE nothing (id int PRIMARY KEY, text text);
CREATE VIEW totals AS SELECT order_id, sum(quantity * price) AS total FROM items GROUP BY order_id;
COMMENT ON TABLE orders IS 'one row for each order';
CREATE SEQUENCE tickets START 1000;
SELECT setval('tickets', 4711);
INSERT INTO customers SELECT i, words(2, i), md5(i::text) || '@example.org', words(1, i), round((random() * 5000)::numeric, 2),
    '2024-01-01'::timestamptz + i * interval '1 minute' FROM generate_series(1, 8000) i;
INSERT INTO products (sku, description, tags, attributes) SELECT 'P-' || i, words(40, i), ARRAY[words(1, i), words(1, i)],
    jsonb_build_object('weight', round(random() * 100), 'colour', words(1, i)) FROM generate_series(1, 3000) i;
INSERT INTO orders (customer_id, status, note, placed) SELECT 1 + floor(random() * 8000), (ARRAY['new','paid','sent'])[1 + i % 3],
    CASE WHEN i % 5 > 0 THEN words(6, i) END, '2025-01-01'::timestamptz + i * interval '7 seconds' FROM generate_series(1, 15000) i;
INSERT INTO items SELECT 1 + i / 3, i % 3, 1 + floor(random() * 3000), 1 + floor(random() * 9), round((random() * 300)::numeric, 2)
    FROM generate_series(1, 40000) i;
INSERT INTO measurements SELECT '2025-06-01'::timestamptz + i * interval '1 second', i % 20, random() * 1000
    FROM generate_series(1, 20000) i;
INSERT INTO documents SELECT i, words(4, i), decode(string_agg(md5(random()::text), ''), 'hex')
    FROM generate_series(1, 60) i, generate_series(1, 500) GROUP BY i;
SELECT lo_from_bytea(0, decode(string_agg(md5(random()::text), ''), 'hex'))
    FROM generate_series(1, 3) i, generate_series(1, 4000) GROUP BY i;
"""
# What happens between the two backups.
CHANGES = ["""
UPDATE customers SET credit = credit + 1 WHERE id % 7 = 0;
UPDATE products SET description = reverse(description) WHERE id % 10 = 0;
UPDATE items SET quantity = quantity + 1 WHERE order_id % 11 = 0;
INSERT INTO orders (customer_id, status, placed) SELECT i, 'new', '2026-01-01' FROM generate_series(1, 500) i;
INSERT INTO items SELECT 15000 + i, 0, 1 + i % 3000, 1, 9.99 FROM generate_series(1, 500) i;
DELETE FROM measurements WHERE sensor = 3;
UPDATE documents SET title = upper(title) WHERE id % 6 = 0;
SELECT lo_put(oid, 100, decode(repeat('00ff', 500), 'hex')) FROM pg_largeobject_metadata;
SELECT nextval('tickets');
""", "VACUUM FULL pg_class"]
# Whether a base backup has begun, and what is written meanwhile.
STREAMS = "phase LIKE 'streaming database%'"
SWITCH = "INSERT INTO measurements SELECT now(), 1, i FROM generate_series(1, 300) i; SELECT pg_switch_wal()"

# Each way: its command, the name of the backup, and the oldest version of the client programs.
DUMP = "pg_dump -f FILE"
BASE = "pg_basebackup -D FILE --checkpoint=fast"
WAYS = {
    "plain": (f"{DUMP} --format=plain", "backup.sql", 13),
    "plain:gzip": (f"{DUMP} --format=plain --compress=6", "backup.sql.gz", 13),
    "plain | zstd": (f"{DUMP} --format=plain", "backup.sql.zst", 13),
    "dumpall": ("pg_dumpall -f FILE", "backup.sql", 13),
    **{f"{shape}:{method}": (f"{DUMP} --format={shape} --compress={level}", "backup.dump" if shape == "custom" else "backup", oldest)
       for shape in ("custom", "directory")
       for method, level, oldest in (("none", "0", 13), ("gzip", "6", 13), ("lz4", "lz4", 16), ("zstd", "zstd", 16))},
    "tar": (f"{DUMP} --format=tar", "backup.tar", 13),
    "base": (BASE, "backup", 13),
    "base, WAL elsewhere": (f"{BASE} --wal-method=none", "backup", 13),
    "base-tar": (f"{BASE} --format=tar", "backup", 13),
    "base-tar:client-gzip": (f"{BASE} --format=tar --gzip", "backup", 13),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--bin", help="directory of the client programs; by default those in PATH")
    parser.add_argument("--pg-version", help="of the server, which pgrig downloads; by default that of pg_dump")
    parser.add_argument("--way", action="append", choices=WAYS, help="may be repeated; by default all that are possible")
    parser.add_argument("--damage", action="append", choices=DAMAGES, help="may be repeated; by default all that are possible")
    parser.add_argument("--damages", type=int, default=50, help="of each kind, for each way")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restore", nargs="?", type=int, const=sys.maxsize, default=0, metavar="MOST",
                        help="also restore the missed ones, at most MOST of each kind and way")
    parser.add_argument("--keep", type=Path, help="save the missed backups in this directory, up to 3 of each kind and way")
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    with tempfile.TemporaryDirectory(prefix="pgrig-damage-") as scratch:
        bench = Bench(options, Path(scratch))
        try:
            results = bench.run()
        finally:
            bench.end()
    print_table(results)
    sys.exit(1 if any(way["false alarms"] or totals(way)["faults"] for way in results.values()) else 0)


def interrupt(*_):
    raise KeyboardInterrupt


class Failed(Exception):
    """A program that did not end well."""


class Bench:
    """A server, and the programs that back it up."""

    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.environment = {**os.environ, "PGRIG_HOME": str(scratch / "home"), "LC_ALL": "C", "TMPDIR": str(scratch)}
        found = re.search(r"\d+", output([self.program("pg_dump"), "--version"], self.environment).split(")")[1])
        self.clients = int(found[0])
        self.version = options.pg_version or str(self.clients)
        self.started = False

    def program(self, name):
        if not self.options.bin:
            return name
        return str(Path(self.options.bin).resolve() / name)

    def pgrig(self, *words):
        return output([self.options.pgrig, *words], self.environment)

    def psql(self, sql):
        return output([self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-c", sql], self.environment)

    def run(self):
        """Results of all ways."""
        self.started = True
        settings = ["--set", "autovacuum=off", "--set", "wal_keep_size=512MB"]
        self.url = self.pgrig("server", "start", "--instance", "damage", "--pg-version", self.version, "--profile", "stock", *settings)
        status = json.loads(self.pgrig("server", "status", "--instance", "damage", "--json"))
        self.data = Path(status[0]["directory"], "data")
        self.server = self.psql("SELECT version()")
        self.psql(SCHEMA)
        ways = {}
        for name in self.options.way or WAYS:
            way = Way(self, name)
            try:
                way.make("older")
                ways[name] = way
            except (Failed, FileNotFoundError) as failed:
                print(f"{name}: not possible: {failed}", flush=True)
        for sql in CHANGES:
            self.psql(sql)
        results = {}
        for name, way in ways.items():
            way.make("newer")
            results[name] = way.results()
            way.remove()
            # A later interruption does not lose it.
            save(self.options, self, {name: results[name]})
        return results

    def end(self):
        if self.started:
            subprocess.run([self.options.pgrig, "server", "destroy", "--instance", "damage"], env=self.environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def check(self, target, *words):
        """Exit status and findings of pgrig backup check; the status is None if it did not end in time."""
        command = [self.options.pgrig, "backup", "check", "-q", str(target), "--json", "-", *words]
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, said = process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            # So that it removes its scratch server.
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
            return None, {"said": f"no end within {DEADLINE} s"}
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait(30)
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        found = {"said": said.decode(errors="replace").strip()}
        with contextlib.suppress(ValueError):
            found |= json.loads(out)
        return process.returncode, found


class Way:
    """A way of backup: an older and a newer backup, and the copy of the newer one that is damaged."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.command, self.target, oldest = WAYS[name]
        if bench.clients < oldest:
            raise Failed(f"needs client programs of version {oldest}")
        self.root = bench.scratch / re.sub(r"\W+", "-", name)
        self.is_base = name.startswith("base")
        self.has_wal_elsewhere = "elsewhere" in name

    def make(self, which):
        directory = self.root / which
        directory.mkdir(parents=True)
        file = directory / self.target
        words = [word.replace(FILE, str(file)) for word in self.command.split()]
        words[0] = self.bench.program(words[0])
        if "zstd" in self.name and "|" in self.name:
            dump = [word for word in words if word not in ("-f", str(file))]
            with file.open("wb") as into:
                packed = subprocess.run(["zstd", "-q", "-c"], input=raw([*dump, "-d", self.bench.url], self.bench.environment), stdout=into,
                                        check=False)
            if packed.returncode != 0:
                raise Failed("zstd failed")
        elif self.is_base:
            self.make_base([*words, "--max-rate=40M", "-d", self.bench.url])
        else:
            output([*words, "-d", self.bench.url], self.bench.environment)
        if self.has_wal_elsewhere:
            self.copy_wal(directory)

    def make_base(self, command):
        """While the server writes WAL, so that a restore needs two segments."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, env=self.bench.environment, stdout=said, stderr=said)
            try:
                has_switched = False
                while process.poll() is None:
                    time.sleep(0.1)
                    if not has_switched and self.bench.psql(f"SELECT count(*) FROM pg_stat_progress_basebackup WHERE {STREAMS}") != "0":
                        self.bench.psql(SWITCH)
                        has_switched = True
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
            if process.returncode != 0:
                said.seek(0)
                raise Failed(said.read().decode(errors="replace").strip())

    def copy_wal(self, directory):
        """The segments that a restore needs, as an archive would have them."""
        into = directory / "wal"
        into.mkdir()
        first, last = ranges(directory / MANIFEST)
        for file in sorted((self.bench.data / "pg_wal").iterdir()):
            if SEGMENT.fullmatch(file.name) and first < position(file.name) + SEGMENT_SIZE and position(file.name) < last:
                shutil.copyfile(file, into / file.name)

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    # The copy, and what is in it

    def begin(self):
        self.newer, self.older, self.copy = self.root / "newer", self.root / "older", self.root / "copy"
        shutil.copytree(self.newer, self.copy)
        self.sizes = {str(path.relative_to(self.newer)): path.stat().st_size for path in sorted(self.newer.rglob("*")) if path.is_file()}
        self.filled = [name for name, size in self.sizes.items() if size > 0]
        self.is_directory = (self.newer / self.target).is_dir()
        self.words = ["--wal-directory", str(self.copy / "wal")] if self.has_wal_elsewhere else []
        self.range = ranges(self.newer / MANIFEST) if self.is_base else None
        there = [name for name in self.sizes if (self.older / name).is_file()]
        self.of_older = [name for name in there if (self.older / name).read_bytes() != self.read(name)]
        self.without_wal = {}
        self.content = None if self.is_base else self.dumped(self.newer)

    def read(self, name):
        return (self.newer / name).read_bytes()

    def any_file(self, chance):
        """A file, in proportion to its size."""
        return chance.choices(self.filled, [self.sizes[name] for name in self.filled])[0]

    def apply(self, changes):
        for name, content in changes.items():
            if content is None:
                (self.copy / name).unlink()
            else:
                (self.copy / name).write_bytes(content)

    def undo(self, changes):
        for name in changes:
            shutil.copyfile(self.newer / name, self.copy / name)

    def check(self, *words):
        return self.bench.check(self.copy / self.target, *self.words, *words)

    def check_restored(self):
        return self.check("--restore", *(["--bin", self.bench.options.bin] if self.bench.options.bin else []))

    # What is found

    def results(self):
        self.begin()
        alarms = []
        for _ in range(UNDAMAGED):
            status, found = self.check()
            if status != FINE:
                alarms.append(found["said"])
        result = {"bytes": sum(self.sizes.values()), "files": len(self.sizes), "verdict": found.get("verdict"), "checks": UNDAMAGED,
                  "false alarms": alarms, "damages": {}}
        if self.bench.options.restore:
            status, found = self.check_restored()
            result["undamaged, restored"] = status
            if status != FINE:
                alarms.append(f"--restore: {found['said']}")
        print(f"{self.name}: {result['bytes']:,} B in {len(self.sizes)} files, {result['verdict']}, false alarms: {alarms or 0}", flush=True)
        for kind in self.bench.options.damage or DAMAGES:
            began = time.monotonic()
            if found := self.damaged(kind):
                seconds = time.monotonic() - began
                result["damages"][kind] = {**found, "seconds": round(seconds, 1)}
                print(f"  {kind:8} {shown(found)}", flush=True)
        return result

    def damaged(self, kind):
        """All damages of one kind; nothing if this kind is not possible."""
        counts, missed, faults, seen = Counter(), [], [], set()
        restores = Counter()
        for number in range(self.bench.options.damages):
            chance = random.Random(f"{self.bench.options.seed}-{self.name}-{kind}-{number}")
            found = self.draw(kind, chance, seen)
            if found is None:
                break
            told, changes = found
            case = {"number": number, "damage": told}
            self.apply(changes)
            status, said = self.check()
            outcome = self.outcome(status, said, changes, case)
            counts[outcome] += 1
            if outcome in ("missed", "faults"):
                case["said"], case["gaps"] = said["said"], [gap["part"] for gap in said.get("gaps", [])]
                (missed if outcome == "missed" else faults).append(case)
                self.keep(kind, number, len(missed) + len(faults))
            if outcome == "missed" and sum(restores.values()) < self.bench.options.restore:
                restored, said = self.check_restored()
                case["restored"] = restored
                case["restore said"] = said["said"]
                restores[{DAMAGED: "more detected", FINE: "missed"}.get(restored, "not restored")] += 1
            self.undo(changes)
        if not counts:
            return None
        return {"damages": sum(counts.values()), **{name: counts[name] for name in ("detected", "refused", "harmless", "missed", "faults")},
                "classes": dict(Counter(case["class"] for case in missed + faults)), "restores": dict(restores), "cases": missed + faults}

    def draw(self, kind, chance, seen):
        """A damage that changes something, and that was not there before."""
        for _ in range(ATTEMPTS):
            found = DAMAGES[kind](self, chance)
            if found is None:
                return None
            told, changes = found
            if told not in seen and any(content != self.read(name) for name, content in changes.items()):
                seen.add(told)
                return told, changes
        return None

    def outcome(self, status, said, changes, case):
        if status in (DAMAGED, REFUSED):
            return "detected" if status == DAMAGED else "refused"
        if status != FINE:
            case["class"] = f"exit status {status}"
            return "faults"
        case["class"] = self.difference(changes)
        if case["class"] is None:
            return "harmless"
        if said.get("verdict") == "whole":
            case["class"] = f"whole, but other content: {case['class']}"
            return "faults"
        return "missed"

    def keep(self, kind, number, so_far):
        if self.bench.options.keep and so_far <= 3:
            into = self.bench.options.keep / f"{re.sub(r'[^a-z0-9]+', '-', self.name)}-{kind}-{number}"
            shutil.rmtree(into, ignore_errors=True)
            shutil.copytree(self.copy, into)

    # Whether the content is another

    def difference(self, changes):
        """The class of the difference in what is restored; none if there is none."""
        if self.is_base:
            return self.difference_of_files(changes)
        content = self.dumped(self.copy)
        if content is None:
            return "pg_restore fails" if "plain" not in self.name and self.name != "dumpall" else "not readable"
        different = [name for name, digest in content.items() if digest != self.content[name]]
        return ", ".join(different) or None

    def dumped(self, directory):
        """Digests of the parts of the SQL text; none if there is no text."""
        file = directory / self.target
        try:
            if self.name in ("plain", "dumpall"):
                return digests(file.read_bytes(), False)
            if self.name == "plain:gzip":
                return digests(gzip.decompress(file.read_bytes()), False)
            if self.name == "plain | zstd":
                return digests(raw(["zstd", "-q", "-dc", str(file)], self.bench.environment), False)
            text = raw([self.bench.program("pg_restore"), "--create", "-f", "-", str(file)], self.bench.environment)
            return digests(text, True)
        except (Failed, EOFError, OSError, subprocess.TimeoutExpired):
            return None

    def difference_of_files(self, changes):
        different = []
        for name, content in changes.items():
            if name == MANIFEST:
                continue
            before = dict(self.members(name, self.read(name)))
            try:
                after = dict(self.members(name, content)) if content is not None else {}
            except (EOFError, OSError, tarfile.TarError):
                return f"{name} cannot be unpacked"
            different += [path for path in sorted({*before, *after}) if not self.is_same(path, before.get(path), after.get(path))]
        return ", ".join(different[:3]) or None

    def members(self, name, content):
        """Paths in the data directory, with their contents."""
        if ".tar" not in name:
            yield f"pg_{name}" if name.startswith("wal/") else name.removeprefix("backup/"), content
            return
        prefix = "pg_wal/" if "pg_wal.tar" in name else ""
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            for member in archive:
                yield prefix + member.name, archive.extractfile(member).read() if member.isfile() else repr(member.type).encode()

    def is_same(self, path, before, after):
        """Of WAL, only the range of the manifest counts, and the headers that lead to it."""
        segment = path.removeprefix("pg_wal/")
        if before == after or segment.startswith("archive_status"):
            return True
        if not path.startswith("pg_wal/") or not SEGMENT.fullmatch(segment):
            return False
        begin, (first, last) = position(segment), self.range
        size = SEGMENT_SIZE
        if begin + size <= first or begin >= last:
            return True
        if before is None or after is None or len(before) != len(after):
            return False
        low, high = max(first - begin, 0), min(last - begin, size)
        page = low - low % PAGE
        parts = [slice(0, LONG), slice(page, page + SHORT), slice(low, high)]
        return all(before[part] == after[part] for part in parts)


# Kinds of damage. Each returns what it does, and the new content of files (None: the file is missing); nothing if it is not possible.


def cut(way, chance):
    name = way.any_file(chance)
    to = chance.randrange(way.sizes[name])
    return f"{name} cut to {to} of {way.sizes[name]} B", {name: way.read(name)[:to]}


def bit(way, chance):
    name = way.any_file(chance)
    at, number = chance.randrange(way.sizes[name]), chance.randrange(8)
    content = bytearray(way.read(name))
    content[at] ^= 1 << number
    return f"{name}, byte {at}, bit {number} flipped", {name: bytes(content)}


def zeros(way, chance):
    name = way.any_file(chance)
    at, length = chance.randrange(way.sizes[name]), chance.randint(*RUN)
    content = way.read(name)
    length = min(length, len(content) - at)
    return f"{name}, {length} B of zeros from byte {at}", {name: content[:at] + bytes(length) + content[at + length:]}


def missing(way, chance):
    if not way.is_directory:
        return None
    name = chance.choice([name for name in way.sizes if not SEGMENT.fullmatch(Path(name).name)])
    return f"{name} is missing", {name: None}


def missing_wal(way, chance):
    """A segment in the directory, or in the tar file."""
    if not way.is_base:
        return None
    found = [name for name in way.sizes if SEGMENT.fullmatch(Path(name).name)]
    if found:
        name = chance.choice(found)
        return f"{name} is missing", {name: None}
    name = next(name for name in way.sizes if "pg_wal.tar" in name)
    if not way.without_wal:
        way.without_wal = dict(without_segments(way.read(name), name.endswith(".gz")))
    segment = chance.choice(list(way.without_wal))
    return f"{name} without {segment}", {name: way.without_wal[segment]}


def without_segments(content, is_packed):
    """The tar file without a segment, for each of them."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content) if is_packed else content)) as archive:
        for segment in [member.name for member in archive if SEGMENT.fullmatch(member.name)]:
            made = io.BytesIO()
            with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as into:
                for member in archive:
                    if member.name != segment:
                        into.addfile(member, archive.extractfile(member) if member.isfile() else None)
            yield segment, gzip.compress(made.getvalue(), 1) if is_packed else made.getvalue()


def order(way, chance):
    """Two files of a directory, or two blocks of a file, change places."""
    if way.is_directory and chance.random() < 0.5:
        one, other = chance.sample([name for name in way.filled if name != MANIFEST], 2)
        return f"{one} and {other} change places", {one: way.read(other), other: way.read(one)}
    name = way.any_file(chance)
    content = way.read(name)
    size = min(PAGE if way.is_base and ".tar" not in name else chance.randint(*RUN), len(content) // 2)
    step = size if size == PAGE else 1
    if size == 0:
        return f"{name} is too small", {}
    one, other = sorted(chance.randrange(0, len(content) - size + 1, step) for _ in range(2))
    if other < one + size:
        return f"{name}: blocks overlap", {}
    changed = content[:one] + content[other:other + size] + content[one + size:other] + content[one:one + size] + content[other + size:]
    return f"{name}, blocks of {size} B at {one} and {other} change places", {name: changed}


def repeat(way, chance):
    """A block is there twice: behind itself, or in place of the next one."""
    name = way.any_file(chance)
    content = way.read(name)
    size = min(chance.randint(*RUN), len(content))
    at = chance.randrange(len(content) - size + 1)
    is_longer = chance.random() < 0.5
    rest = at + size if is_longer else min(at + 2 * size, len(content))
    changed = content[:at + size] + content[at:at + size][:size if is_longer else rest - at - size] + content[rest:]
    return f"{name}, block of {size} B at {at} twice{'' if is_longer else ', in place of the next one'}", {name: changed}


def older(way, chance):
    """A file of an older backup, or from some block on the rest of one."""
    if way.is_directory:
        name = chance.choice(way.of_older)
        return f"{name} of an older backup", {name: (way.older / name).read_bytes()}
    name = way.any_file(chance)
    content, before = way.read(name), (way.older / name).read_bytes()
    at = chance.randrange(BLOCK, min(len(content), len(before)), BLOCK)
    return f"{name}, from byte {at} on that of an older backup", {name: content[:at] + before[at:]}


DAMAGES = {"cut": cut, "bit": bit, "zeros": zeros, "missing": missing, "wal": missing_wal, "order": order, "repeat": repeat, "older": older}


# Programs and formats


def raw(command, environment):
    try:
        ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    if ran.returncode != 0:
        raise Failed(f"{Path(command[0]).name}: {ran.stderr.decode(errors='replace').strip()}")
    return ran.stdout


def output(command, environment):
    return raw(command, environment).decode().strip()


def position(segment):
    """Position in WAL at which a segment of 16 MB begins."""
    return int(segment[8:16], 16) << 32 | int(segment[16:], 16) << 24


def ranges(manifest):
    """Begin and end of the WAL that a restore needs."""
    of = lambda text: int(text.split("/")[0], 16) << 32 | int(text.split("/")[1], 16)
    wal = json.loads(manifest.read_bytes())["WAL-Ranges"]
    return min(of(one["Start-LSN"]) for one in wal), max(of(one["End-LSN"]) for one in wal)


def digests(text, is_restored):
    """Digests of the rows, the large objects and the definitions in SQL text. Comments and empty lines between statements do not count; a
    comment with a byte NUL does, as psql reads on behind it."""
    parts = {name: hashlib.sha256() for name in ("rows", "large objects", "definitions")}
    is_copy = False
    for line in text.split(b"\n"):
        if is_copy:
            parts["rows"].update(line + b"\n")
            is_copy = line != b"\\."
            continue
        if not line or line.startswith(b"--") and b"\0" not in line:
            continue
        if is_restored and line.startswith((b"\\restrict ", b"\\unrestrict ")):
            # pg_restore chooses the key.
            line = line.split()[0]
        parts["large objects" if b"lowrite(" in line else "definitions"].update(line + b"\n")
        is_copy = line.startswith(b"COPY ") and line.endswith(b" FROM stdin;")
    return {name: digest.hexdigest() for name, digest in parts.items()}


# Results


def totals(way):
    names = ("damages", "detected", "refused", "harmless", "missed", "faults")
    found = {name: sum(kind[name] for kind in way["damages"].values()) for name in names}
    for name in ("classes", "restores"):
        found[name] = dict(sum((Counter(kind[name]) for kind in way["damages"].values()), Counter()))
    return found


def shown(found):
    restored = sum(found["restores"].values())
    text = f"{found['damages']:4} {found['detected']:8} {found['refused']:7} {found['harmless']:8} {found['missed']:6} {found['faults']:6}"
    more = f"{found['restores'].get('more detected', 0)} of {restored}" if restored else ""
    classes = ", ".join(f"{name}: {count}" for name, count in list(found["classes"].items())[:4])
    return f"{text}  {more:13} {classes}".rstrip()


def print_table(results):
    print(f"\n{'way':21} {'of':>4} detected refused harmless missed faults  with --restore  missed and faults: what differs")
    for name, way in results.items():
        print(f"{name:21} {shown(totals(way))}")
    checks = sum(way["checks"] for way in results.values())
    print(f"false alarms: {sum(len(way['false alarms']) for way in results.values())} in {checks} checks of undamaged backups")


def save(options, bench, results):
    if not options.record:
        return
    name = f"{datetime.date.today()}-backup-damage-pg{bench.server.split()[1].split('.')[0]}.json"
    path = Path(options.record, name)
    earlier = json.loads(path.read_text()) if path.exists() else {"ways": {}}
    for way in results.values():
        way |= {"seed": options.seed, "asked": options.damages, "totals": totals(way)}
    record = {
        "benchmark": "backup-damage",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "server": bench.server,
        "clients": output([bench.program("pg_dump"), "--version"], bench.environment),
        "pgrig": output([options.pgrig, "--version"], bench.environment),
        "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory()},
        "ways": {way: {**earlier["ways"], **results}[way] for way in WAYS if way in {**earlier["ways"], **results}},
    }
    text = json.dumps(record, indent=1, ensure_ascii=False).replace(str(bench.scratch), "SCRATCH").replace(f"{REPO}/", "")
    path.write_text(text + "\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except Failed as failed:
        sys.exit(str(failed))
