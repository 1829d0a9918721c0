"""Cases in which the network between pgrig and the server fails. A proxy stands between them."""

import contextlib
import re
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time

import checks
from kills import AFTER_CTRL_C, ALREADY, before_work
from kinds import BY_NAME
from rig import Broken, wait_until

FAULTS = ["cut", "reset", "delay", "silent", "mute"]
KINDS = ["copy", "chunked", "frozen-partitions", "table", "table-with-enum", "append", "mixed-own", "blockio", "micro-ddl",
         "matrix-settings", "testdb-bench", "keeper", "explode", "server-side"]


class Proxy:
    """Passes bytes between TCP clients and a Unix socket, until it is told otherwise."""

    def __init__(self, server):
        self.server, self.state, self.pairs = server, "open", []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ends = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.ends:
            with contextlib.suppress(OSError):
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        pair = (client, server)
        self.pairs.append(pair)
        try:
            self._wait_if_silent()
            server.connect(self.server)
            with selectors.DefaultSelector() as ready:
                ready.register(client, selectors.EVENT_READ, server)
                ready.register(server, selectors.EVENT_READ, client)
                while not self.ends:
                    for key, _ in ready.select(1):
                        self._wait_if_silent()
                        # Mute: what the server says does not arrive.
                        if self.state == "mute" and key.fileobj is server:
                            time.sleep(0.05)
                            continue
                        data = key.fileobj.recv(65536)
                        if not data:
                            return
                        if self.state == "delay":
                            time.sleep(0.03)
                        key.data.sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            self.close(pair)

    def _wait_if_silent(self):
        while self.state == "silent" and not self.ends:
            time.sleep(0.02)

    def close(self, pair, reset=False):
        for end in pair:
            with contextlib.suppress(OSError):
                if reset and end.family == socket.AF_INET:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    end.shutdown(socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                end.close()
        with contextlib.suppress(ValueError):
            self.pairs.remove(pair)

    def strike(self, fault):
        if fault in ("cut", "reset"):
            for pair in list(self.pairs):
                self.close(pair, fault == "reset")
        else:
            self.state = fault

    def heal(self):
        """A network that works again; what was open is gone."""
        for pair in list(self.pairs):
            self.close(pair)
        self.state = "open"

    def end(self):
        self.ends = True
        self.heal()
        self.listener.close()


def case(rig, rng, index, unit):
    kind = BY_NAME[KINDS[index % len(KINDS)]]
    fault = rng.choice(FAULTS)
    seconds = unit * kind.times
    at_start = fault in ("silent", "mute") and rng.random() < 0.15
    delay = 0 if at_start else rng.uniform(0.0, 1.1) * seconds
    # Whoever waits long enough reads what is waited for.
    waits = fault in ("silent", "mute") and not at_start and rng.random() < 0.1
    how = ", from the start" if at_start else ", waited for" if waits else ""
    return f"network {fault}, {kind.name}{how}", lambda: play(rig, kind, fault, delay, at_start, waits)


def play(rig, kind, fault, delay, at_start, waits):
    shm = checks.shared_memory()
    before = before_work(rig, kind, "detached")
    proxy = Proxy(str(rig.socket / ".s.PGSQL.5432"))
    try:
        words = kind.command(rig)
        cut = words.index("--") if "--" in words else len(words)
        uri = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        command = [rig.pgrig, *map(str, [*words[:cut], "-d", uri, *words[cut:]])]
        ran = struck(rig, proxy, command, fault, delay, at_start, waits)
        proxy.heal()
        again = None if ran and ran.code == 0 and kind.once else rig.run(command)
        if again and again.code != 0 and not (again.code == 2 and ALREADY.search(again.err)):
            raise Broken(f"over a network that works again it does not complete:\n{again}")
        if kind.name == "keeper":
            rig.must("testdb", "drop", "--all", "-d", uri)
        else:
            kind.verify(rig)
    finally:
        proxy.end()
    sessions = ("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                "AND pid <> pg_backend_pid()")
    wait_until(lambda: rig.sql(sessions) == "0", 75, "sessions stay in the server")
    checks.left_clean(rig, before, shm=shm)


def struck(rig, proxy, command, fault, delay, at_start, waits):
    if at_start:
        proxy.strike(fault)
    process = rig.begin(command)
    if at_start:
        return silent_from_the_start(rig, process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=delay)
    if process.poll() is not None:
        return rig.finish(process)
    rig.note(f"-- {fault} after {delay:.2f} s")
    proxy.strike(fault)
    if fault == "delay":
        time.sleep(1)
        proxy.state = "open"
        ran = rig.finish(process)
        if ran.code != 0:
            raise Broken(f"a slow network makes it fail:\n{ran}")
        return ran
    if fault in ("cut", "reset"):
        return rig.finish(process, 90)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=36 if waits else 1)
    if process.poll() is not None:
        return rig.finish(process)
    process.send_signal(signal.SIGINT)
    pressed = time.monotonic()
    ran = rig.finish(process, 60)
    took = time.monotonic() - pressed
    if took > AFTER_CTRL_C:
        raise Broken(f"the peer is silent, and it took {took:.1f} s to end after Ctrl-C:\n{ran}")
    if waits and not re.search(r"wait", ran.err):
        raise Broken(f"the peer was silent for 36 s, and no line says so:\n{ran}")
    return ran


def silent_from_the_start(rig, process):
    ran = rig.finish(process, 60)
    if ran.code != 1 or not re.search(r"tim|within|10 s", ran.err):
        raise Broken(f"a peer that accepts and says nothing should be a time-out:\n{ran}")
    return ran
