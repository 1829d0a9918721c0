"""How far a copy is from its original, counted by SQL and Python alone: a witness for `pgrig model check`.

`original` and `copy` are objects with `query(sql)`, which returns rows as psql -At prints them.
"""

import statistics
from math import sqrt

FIELDS = "schemaname || '.' || tablename || '.' || attname, null_frac, n_distinct, avg_width, correlation, " \
         "(most_common_freqs::float8[])[1], (SELECT sum(f) FROM unnest(most_common_freqs) f)"
NAMES = ["null_frac", "n_distinct", "avg_width", "correlation", "most common", "all common"]
SAMPLED = 30_000


def statistics_share(original, copy, tables):
    """Fields of pg_stats within 3 * sqrt(2) standard deviations of 11 ANALYZEs, and all; the rule of docs/src/methodology/model.md.

    Of frequencies, the first and the sum are compared. Histograms are left out, and so are widths of types that have one, and numbers of different values of unique columns.
    """
    rows = {f"public.{table}": int(original.query(f"SELECT count(*) FROM {table}")) for table in tables}
    fixed = fixed_fields(original)
    before, after = looks(original, tables, 11), looks(copy, tables, 5)
    within, count = 0, 0
    for key, ours in before.items():
        theirs = after.get(key)
        if not theirs or key in fixed:
            continue
        column, name = key
        mean, sampled = statistics.mean(ours), min(rows[column.rsplit(".", 1)[0]], SAMPLED)
        is_share = name in ("null_frac", "most common", "all common")
        drawn = sqrt(max(0.0, mean * (1 - mean)) / sampled) if is_share else 0.0
        least = 0.01 if name == "correlation" else 0.01 * abs(mean)
        deviation = statistics.stdev(ours) if len(ours) > 1 else 0.0
        count += 1
        within += abs(statistics.median(theirs) - mean) <= max(3 * sqrt(2) * max(deviation, drawn), least)
    return within, count


def looks(database, tables, times):
    """Values of each field after each of so many ANALYZEs."""
    found = {}
    for _ in range(times):
        database.query(f"ANALYZE {', '.join(tables)}")
        for line in database.query(f"SELECT {FIELDS} FROM pg_stats WHERE schemaname = 'public'").splitlines():
            column, *values = line.split("|")
            for name, value in zip(NAMES, values):
                if value and not (name == "n_distinct" and float(value) == 0):
                    found.setdefault((column, name), []).append(float(value))
    return found


def fixed_fields(database):
    """Fields that the schema decides."""
    widths = database.query("SELECT n.nspname || '.' || c.relname || '.' || a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = "
                            "a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.attlen > 0 AND a.attnum > 0 AND c.relkind = 'r'")
    keys = database.query("SELECT n.nspname || '.' || c.relname || '.' || a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
                          "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
                          "WHERE i.indisunique AND i.indnkeyatts = 1")
    return {(name, "avg_width") for name in widths.splitlines()} | {(name, "n_distinct") for name in keys.splitlines()}


def distances(original, copy, measures):
    """Each measure's distance: name -> (kind, query). Kinds: `shares` (rows of a key and a count: total variation), `number`
    (factor between two numbers), `correlation` (difference)."""
    found = {}
    for name, (kind, query) in measures.items():
        ours, theirs = original.query(query), copy.query(query)
        if kind == "shares":
            found[name] = total_variation(shares(ours), shares(theirs))
        elif kind == "number":
            one, other = max(1.0, float(ours)), max(1.0, float(theirs))
            found[name] = max(one / other, other / one)
        else:
            found[name] = abs(float(ours) - float(theirs))
    return found


def shares(text):
    counts = dict((line.rsplit("|", 1)[0], float(line.rsplit("|", 1)[1])) for line in text.splitlines())
    total = sum(counts.values())
    return {key: count / total for key, count in counts.items()}


def total_variation(one, other):
    return sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other.keys()) / 2
