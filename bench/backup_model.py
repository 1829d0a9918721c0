#!/usr/bin/env python3
"""Whether backups of a copy that pgrig makes from a model are as large as those of the original.

The original (`--original`, `--sql`) is one of those of bench/model.py: `tpch` (tpchgen-cli), `market` (bench/market.sql), or `--sql FILE`: a
file of SQL. Copies of it are filled from models, one for each variant:

- `statistics`: `pgrig model capture`; all texts are replaced;
- `aggregates`: with `--aggregates`; all texts are replaced;
- `few kept`: with `--aggregates`, and `--keep-values` for each column of text with at most 50 values;
- `all kept`: with `--aggregates`, and `--keep-values` for each column of text.

Each database is alone on a server of its own, which pgrig starts. `pgrig backup rehearse` backs it up in each way, restores it, and compares it,
so that each size is that of a backup that works. From base backups, the size of a base backup of an empty server is subtracted. The
target is a size within 15 % of the original's in each way. Ways that the client programs cannot do are left out.

To show what causes a difference, gzip then compresses the rows of each table and the values of each column (COPY … TO STDOUT, in the order of
the rows). `weight` is the difference of a table or column in percent of all gzip bytes of the original's tables.

Runs for other originals with the same major version on the same day are added to the same record. Needs psql and the client programs of the
server's version (`--bin`); for `tpch` also tpchgen-cli 4 (PyPI, or crates.io).
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
import tomllib
import zlib
from pathlib import Path

from common import arguments, cpu, memory, output, parsed, serving
from judges import categories
from model import Database, made

WAYS = ["plain:none", "plain:gzip", "custom:gzip", "custom:lz4", "custom:zstd=1", "custom:zstd=9", "base", "base-tar:client-gzip=1"]
VARIANTS = ["statistics", "aggregates", "few kept", "all kept"]
TARGET = 0.15
COLUMNS = """SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'public.{}'::regclass AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attgenerated = '' ORDER BY a.attnum"""
BYTES = """SELECT coalesce(sum(pg_table_size(relid)), 0) || '|' || coalesce(sum(pg_indexes_size(relid)), 0)
    FROM (SELECT 'public.{0}'::regclass AS relid UNION SELECT relid FROM pg_partition_tree('public.{0}')) t"""
# A table's own rows: tables that inherit from it are in the list, too, but partitions are not.
ROWS = "SELECT CASE relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || oid::regclass FROM pg_class WHERE oid = 'public.{}'::regclass"
# Rows come in their order on disk.
SETTINGS = "SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--bin", help="directory of the client programs [default: those that pgrig finds]")
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor of TPC-H [0.1]")
    parser.add_argument("--tpchgen-cli", default="tpchgen-cli")
    parser.add_argument("--original", default="tpch", choices=["tpch", "market"])
    parser.add_argument("--sql", action="append", help="the original: a file of statements for psql; for several files, repeat it")
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"copies [{','.join(VARIANTS)}]")
    parser.add_argument("--way", action="append", help=f"default: {' '.join(WAYS)}")
    parser.set_defaults(profile="stock", pg_version="17")
    options = parsed(parser)
    options.way = options.way or WAYS
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        with serving(options) as server:
            Database(server, options, "original").query("VACUUM ANALYZE")
            empty = rehearsed(options, server, scratch, [way for way in options.way if way.startswith("base")])
        with serving(options) as server:
            database = Database(server, options, "original")
            name, tables, _ = made(options, database, scratch)
            name += f" {options.scale:g}" if name == "tpch" else ""
            version, few = server.version, categories(database)
            texts = replaced(captured(server, scratch, "all", []))
            keeps = {"few kept": [column for column in few if column in texts], "all kept": texts}
            original = measured(options, server, database, scratch, tables)
            models = {variant: captured(server, scratch, variant, keeps.get(variant, [])) for variant in options.variants.split(",")}
        copies = {}
        for variant, model in models.items():
            with serving(options) as server:
                database = Database(server, options, "original")
                output(server.fill(f"--model {model} -d original"))
                database.query("VACUUM ANALYZE")
                copies[variant] = measured(options, server, database, scratch, tables)
            print(f"{name}, {variant}: measured", file=sys.stderr, flush=True)
    results = {variant: compared(original, copy, empty) for variant, copy in copies.items()}
    found = {"keeps": {variant: keeps[variant] for variant in copies if variant in keeps}, "results": results, "original": original, "copies": copies}
    record = saved(options, version, name, empty, found)
    shown(name, results, record["summary"])


def captured(server, scratch, variant, keep):
    model = Path(scratch) / f"{variant.replace(' ', '-')}.model.toml"
    aggregates = [] if variant == "statistics" else ["--aggregates"]
    kept = [argument for column in keep for argument in ("--keep-values", column)]
    server.pgrig("model", "capture", "-q", "-d", "original", "-o", str(model), *aggregates, *kept)
    return model


def replaced(file):
    """The columns of text that a model replaces, and that --keep-values can keep."""
    model = tomllib.loads(file.read_text())
    return [f"{table['name'].split('.', 1)[1]}.{column['name']}" for table in model["tables"] if table["rows"] >= model["k"]
            for column in table.get("columns", []) if column["values"]["from"] in ("letters", "list")
            and column["type"].split("(")[0] in ("text", "character varying", "character", "bpchar", "name")]


def rehearsed(options, server, scratch, ways):
    """Bytes of a backup in each way that is possible."""
    document = Path(scratch) / "backup.json"
    words = [part for way in ways for part in ("--way", way)] + (["--bin", options.bin] if options.bin else [])
    url = server.url.replace("/postgres?", "/original?")
    command = [options.pgrig, "backup", "rehearse", "-q", "-d", url, "--no-probe", "--trials", "1", *words, "--json", str(document)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stderr}")
    run = json.loads(document.read_text())
    sizes = {trial["config"]: next(one["value"] for one in trial["observations"] if one["name"] == "size") for trial in run["trials"]}
    if missing := [way for way in ways if way not in sizes]:
        print(f"without {', '.join(missing)}: {run['notes']}", file=sys.stderr)
    return sizes


def measured(options, server, database, scratch, tables):
    """Bytes of backups, tables and columns."""
    sizes = rehearsed(options, server, scratch, options.way)
    found = {}
    for table in tables:
        source = database.query(ROWS.format(table))
        heap, indexes = database.query(BYTES.format(table)).split("|")
        columns = database.query(COLUMNS.format(table)).splitlines()
        found[table] = {"rows": int(database.query(f"SELECT count(*) FROM {source}")), "heap": int(heap), "indexes": int(indexes),
                        **copied(options, database, f"SELECT * FROM {source}"),
                        "columns": {column: copied(options, database, f'SELECT "{column}" FROM {source}') for column in columns}}
    return {"sizes": sizes, "tables": found}


def copied(options, database, query):
    """Bytes of the rows as COPY writes them, and after gzip."""
    command = [options.psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-c", SETTINGS, "-c", f"COPY ({query}) TO STDOUT", database.url]
    gzip, plain, compressed = zlib.compressobj(6, zlib.DEFLATED, 31), 0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while part := process.stdout.read(1 << 20):
            plain += len(part)
            compressed += len(gzip.compress(part))
    if process.returncode != 0:
        sys.exit(f"{query} failed")
    return {"plain": plain, "gzip": compressed + len(gzip.flush())}


def compared(original, copy, empty):
    """Of each way the bytes of both and their ratio; the tables, and the columns of the worst one, with the greatest difference first."""
    ways = {}
    for way, bytes in original["sizes"].items():
        if way in copy["sizes"]:
            ours, theirs = bytes - empty.get(way, 0), copy["sizes"][way] - empty.get(way, 0)
            ways[way] = {"original": ours, "copy": theirs, "ratio": theirs / ours}
    whole = sum(table["gzip"] for table in original["tables"].values())

    def differences(ours, theirs):
        each = {name: {"gzip": [one["gzip"], theirs[name]["gzip"]], "ratio": theirs[name]["gzip"] / one["gzip"],
                       "ratio of plain": theirs[name]["plain"] / max(1, one["plain"]),
                       "weight": 100 * (theirs[name]["gzip"] - one["gzip"]) / whole} for name, one in ours.items() if name in theirs}
        return dict(sorted(each.items(), key=lambda one: -abs(one[1]["weight"])))

    tables = differences(original["tables"], copy["tables"])
    worst = next(iter(tables))
    columns = differences(original["tables"][worst]["columns"], copy["tables"][worst]["columns"])
    return {"ways": ways, "within": within([ways]), "tables": tables, "worst table": worst, "its columns": columns}


def within(all, compressed=False):
    """How many sizes are within the target, of how many: of all ways, or of those that compress."""
    ratios = [way["ratio"] for ways in all for name, way in ways.items() if not compressed or name not in ("plain:none", "base")]
    return [sum(abs(ratio - 1) <= TARGET for ratio in ratios), len(ratios)]


def saved(options, version, name, empty, found):
    """The record with this original. It is written if that is asked for."""
    major, date = version.split()[1].split(".")[0], datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path = Path(options.record, f"{date[:10]}-backup-model-pg{major}.json")
    earlier = json.loads(path.read_text())["originals"] if options.record and path.exists() else {}
    originals = earlier | {name: found}
    listed = {variant: [one["results"][variant]["ways"] for one in originals.values() if variant in one["results"]] for variant in VARIANTS}
    dump = Path(options.bin, "pg_dump") if options.bin else "pg_dump"
    record = {"benchmark": "backup-model", "date": date, "server": version, "clients": output([str(dump), "--version"]),
              "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()}, "target": TARGET,
              "empty server": empty, "summary": {variant: {"all": within(all), "compressed": within(all, True)} for variant, all in listed.items() if all}, "originals": originals}
    if options.record:
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"record: {path}\n")
    return record


def shown(name, results, summary):
    print("| original | variant | way | original, bytes | copy, bytes | ratio |\n|---|---|---|---|---|---|")
    for variant, found in results.items():
        for way, one in found["ways"].items():
            print(f"| {name} | {variant} | {way} | {one['original']:,.0f} | {one['copy']:,.0f} | {one['ratio']:.2f} |")
    for variant, found in results.items():
        print(f"\n{name}, {variant}: {of(found['within'])} within {TARGET:.0%}; greatest differences of gzip (weight, ratio, ratio without gzip)")
        for kind, listed in (("table", found["tables"]), (f"column of {found['worst table']}", found["its columns"])):
            for each, one in list(listed.items())[:5]:
                print(f"  {kind} {each}: {one['weight']:+.1f} %, {one['ratio']:.2f}, {one['ratio of plain']:.2f}")
    print("\nall originals: " + "; ".join(f"{variant} {of(one['all'])}, of compressed ones {of(one['compressed'])}" for variant, one in summary.items()))


def of(count):
    return f"{count[0]} of {count[1]} ({count[0] / max(1, count[1]):.0%})"


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
