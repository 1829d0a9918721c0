"""Cases in which something is killed while pgrig works, and the same command is given again."""

import contextlib
import os
import re
import signal
import subprocess
import time

import checks
from kinds import BY_NAME, KINDS
from rig import Broken, descendants, is_alive, program_of, wait_until

# What is killed. "server" is the postmaster with all its children at once, as by a power cut.
ACTORS = ["pgrig", "server", "postmaster", "backend", "both", "ctrl-c", "terminate"]
# How the command names the server: pgrig starts it; it runs already; by its URI.
MODES = ["own", "detached", "named"]
# Seconds in which pgrig ends after Ctrl-C: 2 promised, and room for a machine that is busy.
AFTER_CTRL_C = 6
# What somebody else does to the table between the interruption and the repetition.
MEDDLING = ["truncate", "drop", "remake", "delete", "vacuum-full", "unlogged", "lock", "alter"]
# Its seconds are the unit of how long others take.
UNIT = BY_NAME["copy"]
# What a fill answers that finds its work complete.
ALREADY = re.compile("already has|has rows: give --append|already exists")
LOSS = r"empt|lost|loss|gone|missing|not there"


def case(rig, rng, index, unit):
    """One case: what it was, for the record."""
    kind = KINDS[index % len(KINDS)]
    actor = ACTORS[rng.randrange(len(ACTORS))]
    mode = rng.choice(MODES)
    rounds = rng.choice([1, 1, 1, 2, 3])
    meddling = rng.choice(MEDDLING) if kind.bulk and rng.random() < 0.35 else None
    seconds = unit * kind.times
    delays = [rng.uniform(0.0, 1.1) ** 1.2 * seconds for _ in range(rounds)]
    return f"kill {actor}, {kind.name}, {mode}" + (f", {meddling}" if meddling else ""), lambda: play(
        rig, kind, actor, mode, delays, meddling)


def measure(rig):
    """Seconds that the kind takes by which others are measured."""
    with rig.fresh():
        before_work(rig, UNIT, "detached")
        ran = rig.must(*command_of(rig, UNIT, "detached"))
        UNIT.verify(rig)
    return ran.seconds


def undisturbed(rig, kind):
    """A run that nothing happens to: right, and how long it takes."""
    with rig.fresh():
        shm = checks.shared_memory()
        before = before_work(rig, kind, "detached")
        ran = rig.must(*command_of(rig, kind, "detached"))
        kind.verify(rig)
        checks.left_clean(rig, before, shm=shm)
    return ran.seconds


def before_work(rig, kind, mode):
    if not rig.postmaster():
        rig.start()
    before = checks.state(rig)
    kind.prepare(rig)
    if mode == "own" and rig.postmaster():
        rig.stop()
    if mode != "own" and not rig.postmaster():
        rig.start()
    return before


def command_of(rig, kind, mode):
    server = ["-d", rig.url()] if mode == "named" else rig.own(kind.takes_settings)
    words = kind.command(rig)
    # What follows -- is another program's.
    cut = words.index("--") if "--" in words else len(words)
    return [*words[:cut], *server, *words[cut:]]


def play(rig, kind, actor, mode, delays, meddling):
    shm = checks.shared_memory()
    before = before_work(rig, kind, mode)
    command = command_of(rig, kind, mode)
    lost_server, said = False, ""
    for delay in delays:
        if not rig.postmaster() and mode == "named":
            rig.start()
        ran, struck = interrupted(rig, command, actor, delay)
        said += ran.err
        lost_server |= struck and actor not in ("pgrig", "ctrl-c", "terminate")
        if ran.code == 0 and kind.once:
            # It came to its end before it was struck, or because it could not be stopped any more.
            break
    if ran.code == 0 and kind.once:
        if not rig.postmaster():
            rig.start()
        if not ((kind.crash_costs_rows or kind.unlogged) and lost_server):
            kind.verify(rig)
    else:
        if meddling:
            meddled(rig, kind, mode, meddling)
        completed(rig, kind, command, mode, lost_server, meddling, said)
    # The server keeps files of transactions of its own that a crash cuts off; what pgrig wrote past it, pgrig removes.
    writes_files = kind.writes_files and mode != "named"
    servers_own = 0 if not lost_server else kind.servers_own if writes_files else 1 << 40
    checks.left_clean(rig, before, shm=shm, orphans=servers_own)


def interrupted(rig, command, actor, delay):
    """Runs the command and strikes after `delay` seconds, if it is not over by then."""
    process = rig.begin([rig.pgrig, *map(str, command)])
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=delay)
    if process.poll() is not None:
        return rig.finish(process), False
    rig.note(f"-- {actor} after {delay:.2f} s")
    struck_at = time.monotonic()
    strike(rig, process, actor)
    ran = rig.finish(process, 90)
    took = time.monotonic() - struck_at
    if actor in ("ctrl-c", "terminate") and took > AFTER_CTRL_C:
        raise Broken(f"took {took:.1f} s to end after {actor}:\n{ran}")
    return ran, True


def strike(rig, process, actor):
    postmaster = rig.postmaster()
    signals = {"ctrl-c": signal.SIGINT, "terminate": signal.SIGTERM}
    # The keeper of lent databases is a pgrig in the background.
    pgrigs = [pid for pid in rig.processes() if program_of(pid) == rig.pgrig]
    victims = []
    if actor in signals:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signals[actor])
        return
    if actor in ("server", "both") and postmaster:
        # Stopped first, so that none of them sees another die.
        os.kill(postmaster, signal.SIGSTOP)
        victims = [postmaster, *descendants(postmaster)]
    elif actor == "postmaster" and postmaster:
        victims = [postmaster]
    elif actor == "backend" and postmaster:
        found = rig.sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pgrig%' ORDER BY pid DESC LIMIT 1",
                        check=False, seconds=5)
        victims = [int(pid) for pid in found.stdout.split()]
    if actor in ("pgrig", "both"):
        victims = [*pgrigs, *victims]
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    rig.note(f"-- killed {len(victims)} processes, {len(pgrigs)} of pgrig there were")
    wait_until(lambda: not any(map(is_alive, victims)), 30, "a killed process does not end")


def meddled(rig, kind, mode, meddling):
    """Somebody else does something to the table. Without a table nothing happens."""
    if mode == "own":
        wait_until(lambda: not rig.postmaster(), 30, "the server does not end with its pgrig")
    was_down = not rig.postmaster()
    if was_down:
        rig.start()
    wait_until(lambda: rig.sql("SELECT 1", check=False, seconds=5).returncode == 0, 60, "the server is not ready")
    table = kind.bulk
    exists = rig.sql(f"SELECT to_regclass('{table}')")
    statements = {
        "truncate": f"TRUNCATE {table}",
        "drop": f"DROP TABLE {table} CASCADE",
        "remake": f"DROP TABLE {table} CASCADE; {kind.remake}",
        "delete": f"DELETE FROM {table} WHERE {kind.key} % 7 = 3",
        "vacuum-full": f"VACUUM FULL {table}",
        "unlogged": f"ALTER TABLE {table} SET UNLOGGED",
        "alter": f"ALTER TABLE {table} ADD COLUMN theirs int",
        "lock": "",
    }
    rig.note(f"-- somebody else: {meddling} ({'there is' if exists else 'there is no'} {table})")
    if exists:
        rig.sql("\n".join(part + ";" for part in statements[meddling].split(";") if part), check=False)
        if meddling == "lock" and not was_down:
            rig.begin(["psql", "-Xq", "-h", str(rig.socket), "-U", "postgres", "-d", "postgres", "-c",
                       f"BEGIN; LOCK {table}; SELECT pg_sleep(3); COMMIT"])
    if was_down:
        rig.stop()


def completed(rig, kind, command, mode, lost_server, meddling, said):
    """The same command completes the work, or says why it cannot, and how to begin anew."""
    if not rig.postmaster() and mode == "named":
        rig.start()
    ran = rig.verb(*command)
    said += ran.err
    if ran.code == 2 and ALREADY.search(ran.err) and not meddling:
        # The kill came between the last commit and the end of the process: all is there.
        if not rig.postmaster():
            rig.start()
        return kind.verify(rig)
    excused = meddling is not None or (kind.crash_costs_rows and lost_server)
    if ran.code != 0 and not excused:
        raise Broken(f"the same command does not complete it:\n{ran}")
    if not rig.postmaster():
        rig.start()
    if ran.code == 0:
        try:
            return kind.verify(rig)
        except Broken:
            if not (kind.crash_costs_rows and lost_server and kind.name.startswith("matrix") and re.search(LOSS, said)):
                raise
    if kind.name.startswith("matrix"):
        if "|u" in (found := rig.sql("SELECT relname, relpersistence FROM pg_class WHERE relname LIKE 'pgbench%' AND relkind = 'r'")):
            raise Broken(f"tables are unlogged still: {found}")
        if not re.search(LOSS, said):
            raise Broken(f"rows were lost, and nobody said so:\n{said}")
        return None
    if kind.crash_costs_rows and lost_server and not meddling:
        if not re.search(LOSS, ran.err):
            raise Broken(f"rows were lost; the message does not say so:\n{ran}")
        return None
    begun_anew(rig, kind, command)
    return None


def begun_anew(rig, kind, command):
    """After somebody else changed the table and pgrig refused to go on: the way out works."""
    if kind.name.startswith("table"):
        if kind.remake and not rig.sql(f"SELECT to_regclass('{kind.bulk}')"):
            rig.sql(kind.remake)
        rig.sql(f"TRUNCATE {kind.bulk}", check=False)
        again = rig.verb(*command, "--no-resume")
    else:
        again = rig.verb(*command, "--drop", "--no-resume")
    if again.code != 0:
        raise Broken(f"begun anew it does not work either:\n{again}")
    if not rig.postmaster():
        rig.start()
    kind.verify(rig)

