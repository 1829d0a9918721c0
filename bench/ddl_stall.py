"""The stalls that pgrig ddl prints, beside those that sessions of psql measure at the same time on the same tables.

pgrig measures each migration on a server that this script starts (--scratch). When pgrig has made the copy in which it measures
stalls, two sessions of psql connect to it: one looks rows of `orders` up, the other updates them, each every 2 ms from a schedule
of its own, whether or not the statement before has been answered (psql reads them from a pipe). A wait counts from the scheduled
time to the answer. The sessions share no code with pgrig. Both wait for the same locks in the same run: that judges pgrig's
schedule, clock, and the statement to which it assigns a wait; it does not judge the choice of the statements that wait.

Each migration begins with an advisory lock, which this script has in that database. It gives the lock back at a time that it
notes; the longest wait of a session is that of the statements which were answered after it.

The stall of pgrig is the longest of all statements after the lock. Rounds of the same options on the same day are added to the same record.
Needs psql.
"""

import argparse
import contextlib
import datetime
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from common import cpu, memory, output, shown, spread

REPO = Path(__file__).resolve().parent.parent
SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, name text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id bigint NOT NULL, state int, total int, note varchar(60));
"""
LOCK = 4242
# Name, migration, seconds of --blocker.
CASES = [
    ("catalog only", "ALTER TABLE orders ADD a text", None),
    ("scan", "ALTER TABLE orders ADD CHECK (total > -2000000000)", None),
    ("foreign key", "ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers", None),
    ("index build", "CREATE INDEX ON orders (note)", None),
    ("rewrite", "ALTER TABLE orders ADD a uuid DEFAULT gen_random_uuid()", None),
    ("rows", "UPDATE orders SET total = total + 1", None),
    ("transaction of 1 s", "BEGIN; ALTER TABLE orders ADD a int; SELECT pg_sleep(1); COMMIT", None),
    ("catalog only, behind a transaction", "ALTER TABLE orders ADD a text", 2),
]
INTERVAL = 0.002
# The target: the greater of seconds and of a part of what the session measures.
WITHIN = (0.020, 0.05)
WORK = {
    "read": "SELECT {number} + 0 * count(*) FROM orders WHERE id = {id};\n",
    "write": "UPDATE orders SET state = state WHERE id = {id} RETURNING {number};\n",
}
# A prime: the rows come from the whole table.
STEP = 104_729


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pgrig", default=str(REPO / "target/release/pgrig"))
    parser.add_argument("--pg-version", default="18")
    parser.add_argument("--rows", type=int, default=500_000, help="of the larger table")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--record", default=str(REPO / "records"), help="directory; empty for none")
    options = parser.parse_args()
    record = Path(options.record, f"{datetime.date.today()}-ddl-stall-pg{options.pg_version}-{options.rows}-rows.json")
    earlier = json.loads(record.read_text()) if options.record and record.exists() else {"trials": []}
    trials, first = earlier["trials"], max((each["round"] for each in earlier["trials"]), default=0)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "PGRIG_HOME": home}
        Path(home, "schema.sql").write_text(SCHEMA)
        start = [options.pgrig, "server", "start", "--instance", "stall", "--profile", "stock", "--pg-version", options.pg_version,
                 "--set", "wal_level=replica", "--set", "autovacuum=off"]
        try:
            url = subprocess.run(start, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
            for number in range(first + 1, first + options.rounds + 1):
                for case in CASES:
                    trials += measured(options, environment, home, url, number, case)
            version = output(["psql", "-XAtq", "-c", "SELECT version()", url])
        finally:
            subprocess.run([options.pgrig, "server", "destroy", "--instance", "stall"], env=environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    results = [result(trials, name, kind) for name, _, _ in CASES for kind in WORK]
    for each in results:
        print(f"{each['case']:36} {each['kind']:6} pgrig {shown(*each['pgrig'])} s, psql {shown(*each['psql'])} s: "
              f"{'within' if each['within'] else 'BEYOND'}; {each['rounds_within']} of {each['rounds']} rounds")
    if options.record:
        given = {"pg_version": options.pg_version, "rows": options.rows}
        found = {"benchmark": "ddl-stall", "server": version, "options": given, "within": WITHIN, "interval": INTERVAL,
                 "machine": {"cpu": cpu(), "cores": os.cpu_count(), "memory": memory(), "system": platform.platform()},
                 "pgrig": output([options.pgrig, "--version"]), "cases": CASES, "results": results, "trials": trials}
        record.write_text(json.dumps(found, indent=1) + "\n")


def result(trials, name, kind):
    """Medians of all rounds, and how many rounds are within the target."""
    of_case = [(each["pgrig"][kind], each["psql"][kind]) for each in trials if each["case"] == name]
    ours, theirs = zip(*of_case, strict=True)
    return {"case": name, "kind": kind, "pgrig": spread(ours), "psql": spread(theirs), "rounds": len(of_case),
            "within": is_within(statistics.median(ours), statistics.median(theirs)),
            "rounds_within": sum(is_within(one, other) for one, other in of_case)}


def is_within(ours, theirs):
    return abs(ours - theirs) <= max(WITHIN[0], WITHIN[1] * theirs)


def measured(options, environment, home, url, number, case):
    """A run of pgrig, with the sessions of psql beside it."""
    name, migration, blocker = case
    document = Path(home, "run.json")
    document.unlink(missing_ok=True)
    command = [options.pgrig, "ddl", "-q", "--scratch", url, "--schema-file", str(Path(home, "schema.sql")), "--seed", str(number),
               "-c", f"SELECT pg_advisory_lock({LOCK}); {migration}", "--quick", "--up-to", "1TB", "--json", str(document),
               "--rows", f"customers={options.rows // 10},orders={options.rows}",
               "--column", f"orders.customer_id=uniform(1,{options.rows // 10})"]
    command += ["--blocker", f"{blocker}s"] if blocker else []
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen, waits = set(), None
    # With a blocker the second copy is the one that counts.
    for _ in range(2 if blocker else 1):
        waits = witnessed(url, options.rows, seen, process)
    said = process.communicate()[1]
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    event = "stall-blocked" if blocker else "stall"
    stalls = [each["what"]["stall"] for trial in json.loads(document.read_text())["trials"][1:] for each in trial["events"]
              if each["what"]["event"] == event]
    ours = {kind: max(stall[kind]["seconds"] for stall in stalls if stall[kind]) for kind in WORK}
    print(f"round {number}, {name}: " + "; ".join(f"{kind} pgrig {ours[kind]:.4f}, psql {waits[kind]:.4f}" for kind in WORK),
          file=sys.stderr, flush=True)
    return [{"round": number, "case": name, "pgrig": ours, "psql": waits, "load": os.getloadavg()[0]}]


def witnessed(url, rows, seen, process):
    """The longest waits of both sessions in the next copy, from the time at which the migration goes on."""
    postgres = Psql(url)
    copies = "SELECT oid || ' ' || datname FROM pg_database WHERE datname LIKE 'pgrig_ddl_%_stall'"
    while not (found := [line for line in postgres.ask(copies) if line not in seen]):
        if process.poll() is not None:
            sys.exit(f"pgrig ended before it measured stalls:\n{process.stderr.read()}")
        time.sleep(0.005)
    seen.update(found)
    copy = of_database(url, found[0].split()[1])
    holder = Psql(copy)
    holder.ask(f"SELECT pg_advisory_lock({LOCK})")
    ends = {kind: multiprocessing.Pipe(duplex=False) for kind in WORK}
    sessions = [multiprocessing.Process(target=session, args=(copy, kind, rows, end)) for kind, (_, end) in ends.items()]
    for each in sessions:
        each.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    deadline = time.time() + 30
    while holder.ask(waiting) != ["1"]:
        if time.time() > deadline:
            sys.exit("pgrig's migration does not wait for the lock: the sessions came too late")
        time.sleep(0.005)
    time.sleep(0.3)
    began = time.time()
    holder.ask(f"SELECT pg_advisory_unlock({LOCK})")
    holder.close()
    answers = {kind: receiving.recv() for kind, (receiving, _) in ends.items()}
    for each in sessions:
        each.join()
    postgres.close()
    return {kind: max(answered - scheduled for scheduled, answered in found if answered >= began) for kind, found in answers.items()}


def session(url, kind, rows, end):
    """Sends statements on a schedule until the database is dropped, and returns when each was due and answered."""
    psql = subprocess.Popen(["psql", "-XAtq", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first, answers = time.time() + 0.1, []

    def send():
        with contextlib.suppress(BrokenPipeError):
            for number in range(10**9):
                time.sleep(max(0.0, first + number * INTERVAL - time.time()))
                psql.stdin.write(WORK[kind].format(number=number, id=1 + number * STEP % rows).encode())
                psql.stdin.flush()

    threading.Thread(target=send, daemon=True).start()
    for line in psql.stdout:
        answers.append((first + int(line) * INTERVAL, time.time()))
    psql.wait()
    end.send(answers)


class Psql:
    """A session that is asked one query after the other."""

    def __init__(self, url):
        self.process = subprocess.Popen(["psql", "-XAtq", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, sql):
        self.process.stdin.write(f"{sql};\n\\echo END\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) != "END\n":
            if not line:
                sys.exit(f"psql ended: {sql}")
            lines.append(line.rstrip("\n"))
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def of_database(url, name):
    """The URL with another database."""
    before, _, options = url.partition("?")
    return f"{before.rsplit('/', 1)[0]}/{name}" + (f"?{options}" if options else "")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
