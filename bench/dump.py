#!/usr/bin/env python3
"""How much smaller zstd makes a dump: what pgrig fill says, and what `pg_dump | zstd -3` does.

Starts a server of its own through pgrig, fills it to each size with each payload, and compares the ratio of the run
document's sample with the ratio of the whole dump. They shall agree within 10 %.

Needs pg_dump of the server's version or newer, zstd, pgbench and psql; any build of pgrig will do.
"""

import argparse
import subprocess
import sys
import tempfile

from common import arguments, parsed, save, serving, surroundings, timed

PAYLOADS = ["blank", "text", "random"]
MOST_OFF = 0.1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--sizes", default="20MB,300MB,1GB")
    parser.add_argument("--pg-dump", default="pg_dump")
    options = parsed(parser)
    with serving(options) as server:
        results = [compared(options, server, size, payload)
                   for size in options.sizes.split(",") for payload in PAYLOADS]
        record = {"benchmark": "dump", **surroundings(options, server), "results": results}
    print("| size | payload | dump bytes | pg_dump \\| zstd -3: times smaller | pgrig's sample | difference | within |")
    print("|---|---|---|---|---|---|---|")
    for each in results:
        print(f"| {each['size']} | {each['payload']} | {each['plain']:,} | {each['real']:.3f} | {each['sample']:.3f} "
              f"| {each['off']:+.1%} | {'yes' if each['within'] else 'NO'} |")
    save(options, server, record, options.sizes.replace(",", "-"))


def compared(options, server, size, payload):
    trial = timed(server.fill(f"{size} --drop --payload {payload}"))["run"]["trials"][0]
    seen = {each["name"]: each["value"] for each in trial["observations"]}
    sample = seen["sample-rows"] / seen["sample-rows-compressed"]
    plain, compressed = dumped(options, server)
    real = plain / compressed
    print(f"{size}, {payload}: {real:.1f}, of the sample {sample:.1f}", file=sys.stderr)
    return {"size": size, "payload": payload, "plain": plain, "compressed": compressed, "real": real, "sample": sample,
            "sampled": seen["sample-rows"], "off": sample / real - 1, "within": abs(sample / real - 1) < MOST_OFF}


def dumped(options, server):
    """Bytes of the dump before and after zstd."""
    with tempfile.TemporaryFile() as shrunk:
        dump = subprocess.Popen([options.pg_dump, server.url], stdout=subprocess.PIPE)
        zstd = subprocess.Popen(["zstd", "-3", "-c"], stdin=subprocess.PIPE, stdout=shrunk)
        plain = 0
        while data := dump.stdout.read(1 << 20):
            plain += len(data)
            zstd.stdin.write(data)
        zstd.stdin.close()
        if dump.wait() or zstd.wait():
            sys.exit("pg_dump or zstd failed")
        return plain, shrunk.seek(0, 2)


if __name__ == "__main__":
    main()
