#!/usr/bin/env python3
"""pgrig fill in parts, each over a link of its own, against one process over one link.

Starts a server of its own through pgrig. A link is a proxy of this script: it passes on at most so many bytes per second in each
direction, and each of them after a delay. All connections of one link share its rate. In shuffled rounds, the same tables are filled
by one process over one link, with as many streams as there are parts, and by the parts, a link and a stream each. Rows/s are those of
the load: the longest time in which a process sent its rows. Prints medians, and the ratio of rows/s of the parts to those of one
process, round by round, with its range.

Needs psql. Everything goes into one file in records/.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from common import arguments, parsed, save, serving, shown, spread, surroundings
from fill_parts import Bench

PARTS, ONE = "parts, a link each", "one process, one link, as many streams"
# Bytes that are passed on at once.
PIECE = 16_384


class Link:
    """A proxy on loopback in front of a Unix socket."""

    def __init__(self, socket, rate, delay):
        self.socket, self.rate, self.delay = socket, rate, delay
        self.free = [0.0, 0.0]
        self.passed = [0, 0]

    async def open(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        with contextlib.suppress(OSError):
            inner, outer = await asyncio.open_unix_connection(self.socket)
            await asyncio.gather(self.carry(reader, outer, 0), self.carry(inner, writer, 1))

    async def carry(self, source, sink, direction):
        """Sends each piece when the link is free, and lets it arrive a delay later."""
        loop = asyncio.get_running_loop()
        under_way = asyncio.Queue(maxsize=max(1, int(self.rate * (self.delay + 0.05) / PIECE)))

        async def arrive():
            while (piece := await under_way.get())[1]:
                await asyncio.sleep(max(0.0, piece[0] - loop.time()))
                sink.write(piece[1])
                await sink.drain()
            with contextlib.suppress(OSError):
                sink.write_eof()

        arriving = asyncio.create_task(arrive())
        with contextlib.suppress(OSError):
            while data := await source.read(PIECE):
                sent = max(loop.time(), self.free[direction]) + len(data) / self.rate
                self.free[direction] = sent
                self.passed[direction] += len(data)
                await asyncio.sleep(max(0.0, sent - loop.time()))
                await under_way.put((sent + self.delay, data))
        await under_way.put((0.0, b""))
        with contextlib.suppress(OSError):
            await arriving


@contextlib.contextmanager
def links(socket, count, rate, delay):
    """So many links, carried by a thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = [Link(socket, rate, delay) for _ in range(count)]
    for link in made:
        asyncio.run_coroutine_threadsafe(link.open(), loop).result()
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


class LinkedBench(Bench):
    """Fills over links."""

    def __init__(self, options, server, scratch, made):
        super().__init__(options, server, scratch)
        self.made = made

    def command(self, number, flags):
        url = f"postgresql://postgres@127.0.0.1:{self.made[number].port}/postgres"
        return [self.options.pgrig, "fill", "-q", "-d", url, "--rows", str(self.options.rows), *flags.split(),
                "--json", str(self.scratch / f"{number}.json")]

    def flags(self, what):
        parts = self.options.parts
        return {
            PARTS: [f"--streams 1 --part {number}/{parts}" for number in range(1, parts + 1)],
            ONE: [f"--method copy --streams {parts} --chunk {self.chunk()}"],
        }[what]

    def fill(self, what):
        before = [link.passed[0] for link in self.made]
        trial = super().fill(what)
        sent = [link.passed[0] - earlier for link, earlier in zip(self.made, before)]
        seen = [{each["name"]: each["value"] for each in document["trials"][0]["observations"]} for document in self.documents]
        # What comes before and after crosses the links too, but does not grow with the rows.
        load = max(each["generate"] for each in seen)
        print(f"  rows in {load:.2f} s", file=sys.stderr)
        return {**trial, "load": load, "sent": [each for each in sent if each]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=1.5, help="MB/s of a link in each direction")
    parser.add_argument("--delay", type=float, default=0.5, help="milliseconds of a link in each direction")
    parser.set_defaults(profile="stock", unlogged=False)
    options = parsed(parser)
    chance = random.Random(options.seed)
    with serving(options) as server, tempfile.TemporaryDirectory() as scratch:
        where = parse_qs(urlsplit(server.url).query)
        socket = f"{where['host'][0]}/.s.PGSQL.{where.get('port', ['5432'])[0]}"
        with links(socket, options.parts, options.rate * 1e6, options.delay / 1e3) as made:
            bench = LinkedBench(options, server, Path(scratch), made)
            trials = []
            for number in range(options.trials):
                order = [PARTS, ONE]
                chance.shuffle(order)
                trials += [{"round": number, **bench.fill(what)} for what in order]
        record = {"benchmark": "fill-links", **surroundings(options, server), "parts": options.parts, "rows": options.rows,
                  "rate": options.rate * 1e6, "delay": options.delay / 1e3, "checksum": bench.checksum,
                  "results": results(trials), "trials": trials}
    for name, result in record["results"].items():
        print(f"{name}: {shown(*result)}")
    save(options, server, record, f"{options.parts}-links-{options.rate:g}MBs")


def results(trials):
    def of(what, name):
        return [trial[name] for trial in trials if trial["what"] == what]

    found = {f"{what}, {name}": spread(of(what, name)) for what in (PARTS, ONE) for name in ("load", "wall")}
    for name in ("load", "wall"):
        ratios = [one / parts for one, parts in zip(of(ONE, name), of(PARTS, name))]
        found[f"rows/s of {PARTS}, to {ONE}, {name}"] = spread(ratios)
    return found


if __name__ == "__main__":
    main()
