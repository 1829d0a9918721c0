"""Judges of a copy that share no code with pgrig: SDMetrics' report of all tables, SDV as a rival, and a search for what leaked.

SDMetrics and SDV are packages of PyPI. If one is missing, its part is left out, and that is said.
`original` and `copy` are objects with `query(sql)`, which returns rows as psql -At prints them, and `csv(sql)`.
"""

import io
import sys
import time
import warnings

from faithful import total_variation

# Types by what a judge can do with their values.
NUMBERS = "('int2','int4','int8','float4','float8','numeric')"
TIMES = "('date','timestamp','timestamptz')"
TABLES = """SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relnamespace = 'public'::regnamespace ORDER BY 1"""
KEYS = """SELECT f.conrelid::regclass, a.attname, f.confrelid::regclass, b.attname FROM pg_constraint f
    JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = f.conkey[1] JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = f.confkey[1]
    WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace AND cardinality(f.conkey) = 1 AND f.conparentid = 0
      AND f.conrelid <> f.confrelid ORDER BY 1, 2"""
PRIMARY = """SELECT conrelid::regclass, a.attname FROM pg_constraint JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = conkey[1]
    WHERE contype = 'p' AND cardinality(conkey) = 1 AND connamespace = 'public'::regnamespace"""
COLUMNS = f"""SELECT a.attrelid::regclass, a.attname, CASE WHEN t.typname IN {NUMBERS} THEN 'numerical' WHEN t.typname IN {TIMES} THEN 'datetime'
        WHEN t.typname = 'bool' OR t.typtype = 'e' THEN 'categorical' WHEN s.n_distinct BETWEEN 1 AND 50 AND t.typcategory = 'S' THEN 'category' ELSE 'text' END
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_stats s ON s.schemaname = 'public' AND s.tablename = c.relname AND s.attname = a.attname AND s.inherited = (c.relkind = 'p')
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum"""


def listed(database, sql):
    return [line.split("|") for line in database.query(sql).splitlines()]


def columns(database):
    """Columns of each table with their kinds. `category` is text with at most 50 values."""
    found = {}
    for table, column, kind in listed(database, COLUMNS):
        found.setdefault(table, {})[column] = kind
    return found


def categories(database):
    """Columns of text with few values: `table.column`."""
    return [f"{table}.{column}" for table, kinds in columns(database).items() for column, kind in kinds.items() if kind == "category"]


class Report:
    """SDMetrics' report of a copy's tables."""

    def __init__(self, original):
        self.kinds = columns(original)
        self.primary, self.keys = dict(listed(original, PRIMARY)), listed(original, KEYS)
        self.keys = [key for key in self.keys if self.primary.get(key[2]) == key[3]]
        self.frames = self.read(original)

    def read(self, database):
        import pandas
        frames = {}
        for table, kinds in self.kinds.items():
            used = self.used(table)
            selected = ", ".join(f"extract(epoch FROM {name}) AS {name}" if kinds[name] == "datetime" else name for name in used)
            frame = pandas.read_csv(io.StringIO(database.csv(f"SELECT {selected} FROM {table}")), low_memory=False) if used else None
            for name in used if frame is not None else []:
                if kinds[name] in ("category", "categorical"):
                    frame[name] = frame[name].astype("object")
            frames[table] = frame
        # Of tables with fewer rows than k, a model has the number of rows only.
        return {table: frame for table, frame in frames.items() if frame is not None and len(frame) >= 20}

    def used(self, table):
        ids = {self.primary.get(table)} | {key[1] for key in self.keys if key[0] == table}
        return [name for name, kind in self.kinds[table].items() if name in ids or kind != "text"]

    def metadata(self):
        tables = {}
        for table in self.frames:
            ids = {self.primary.get(table)} | {key[1] for key in self.keys if key[0] == table}
            kind = {name: "id" if name in ids else {"category": "categorical", "datetime": "numerical"}.get(self.kinds[table][name], self.kinds[table][name])
                    for name in self.used(table)}
            tables[table] = {"columns": {name: {"sdtype": each} for name, each in kind.items()}}
            if self.primary.get(table):
                tables[table]["primary_key"] = self.primary[table]
        relationships = [{"parent_table_name": parent, "parent_primary_key": key, "child_table_name": child, "child_foreign_key": column}
                         for child, column, parent, key in self.keys if child in tables and parent in tables]
        return {"tables": tables, "relationships": relationships}

    def scores(self, copy):
        """Scores of the report, 1 is best; and the least score of a column."""
        from sdmetrics.column_pairs import CorrelationSimilarity, ContingencySimilarity
        from sdmetrics.column_pairs import ReferentialIntegrity
        from sdmetrics.reports.multi_table import QualityReport
        frames, metadata = self.read(copy), self.metadata()
        frames = {table: frame for table, frame in frames.items() if table in self.frames}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = QualityReport()
            report.generate(self.frames, frames, metadata, verbose=False)
            found = {f"SDMetrics: {row['Property'].lower()}": row["Score"] for _, row in report.get_properties().iterrows()}
            shapes = report.get_details("Column Shapes").dropna(subset=["Score"]).sort_values("Score")
            worst = [f"{row['Table']}.{row['Column']} {row['Score']:.3f}" for _, row in shapes.head(3).iterrows()]
            trends = report.get_details("Column Pair Trends").dropna(subset=["Score"]).sort_values("Score")
            worst += [f"{row['Table']}.{row['Column 1']}, {row['Column 2']} {row['Score']:.3f}" for _, row in trends.head(5).iterrows()]
            integrity = [ReferentialIntegrity.compute((self.frames[parent][key], self.frames[child][column]), (frames[parent][key], frames[child][column]))
                         for child, column, parent, key in self.keys if child in frames and parent in frames]
        found["SDMetrics: integrity, the least"] = min(integrity, default=1.0)
        return {name: None if score != score else float(score) for name, score in found.items()}, worst


def report(original):
    """The report's first half, or none without SDMetrics."""
    try:
        import pandas, sdmetrics  # noqa: E401, F401
    except ImportError:
        print("SDMetrics is not installed: its scores are left out", file=sys.stderr)
        return None
    return Report(original)


def leaks(original, copy, model, ddl, kept):
    """Original texts of six and more characters that the copy or the model has, of columns that were not kept; shares of shorter ones;
    rows of the original that the copy has. Text is every type but numbers, times, booleans and enums."""
    texts = {table: [name for name, kind in kinds.items() if kind in ("text", "category") and f"{table}.{name}" not in kept]
             for table, kinds in columns(original).items()}

    def words(database):
        found = set()
        for table, names in texts.items():
            for name in names:
                found.update(database.query(f"SELECT DISTINCT {name}::text FROM {table} WHERE {name} IS NOT NULL").splitlines())
        return found

    ours, theirs = words(original), words(copy)
    allowed = set()
    for name in kept:
        allowed.update(original.query(f"SELECT DISTINCT {name.split('.')[1]}::text FROM {name.split('.')[0]}").splitlines())
    long = [word for word in ours if len(word) >= 6 and word not in allowed and word not in ddl]
    body = model[model.index("[[tables]]"):]
    # A number in digits may stand in the model as a size or a share.
    in_model = [word for word in long if not word.isdigit() and (word in body)] if len(long) < 400_000 else None
    short = {word for word in ours if len(word) < 6}
    rows = {}
    for table in texts:
        hashes = [set(database.query(f"SELECT md5(t::text) FROM {table} t").split()) for database in (original, copy)]
        if hashes[0] & hashes[1]:
            rows[table] = len(hashes[0] & hashes[1])
    return {"long texts of the original": len(long), "of these in the copy": sorted(set(long) & theirs)[:20], "of these in the model": in_model and in_model[:20],
            "short texts": len(short), "of these in the copy (short)": len(short & theirs), "rows in common": rows}


def synthesized(original, of_pair):
    """SDV's copy of the market's clients: scores and seconds."""
    try:
        import pandas
        from sdv.metadata import Metadata
        from sdv.single_table import GaussianCopulaSynthesizer
    except ImportError:
        print("SDV is not installed: it is left out", file=sys.stderr)
        return None
    names = ["id", "country", "city", "segment", "phone", "mobile", "since", "income", "spent"]
    lines = original.query(f"SELECT {', '.join(names)} FROM clients").splitlines()
    table = pandas.DataFrame([[value or None for value in line.split("|")] for line in lines], columns=names)
    table = table.astype({"id": int, "segment": int, "income": float, "spent": float})
    # SDV 2 has the method for several tables only.
    detect = getattr(Metadata, "detect_from_dataframe", None)
    metadata = detect(table, table_name="clients") if detect else Metadata.detect_from_dataframes({"clients": table})
    began = time.monotonic()
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit(table)
    learned = time.monotonic()
    made = synthesizer.sample(len(table))
    seconds = {"capture": learned - began, "fill": time.monotonic() - learned}

    def nulls(frame):
        return ((~frame["phone"].isna()).astype(str) + (~frame["mobile"].isna()).astype(str)).value_counts(normalize=True).to_dict()

    def pair(frame):
        return (frame["country"] + " " + frame["city"]).value_counts(normalize=True).to_dict()

    return of_pair(table, made, "income", "spent") | {
        "country and city (total variation)": total_variation(pair(table), pair(made)),
        "NULLs of phone and mobile (total variation)": total_variation(nulls(table), nulls(made)),
    }, seconds
