"""Random schemas, each from its seed: tables, types, constraints, indexes and what else a dump holds.

Each can be filled: whatever keeps rows here leaves room for thousands of them, unless a key is of few values.
"""

import random
from dataclasses import dataclass, field

NAMES = ["orders", "customers", "items", "events", "users", "Order Lines", "select", "größen", 'say "hi"', "accounts",
         "invoices", "log", "MixedCase", "tags", "visits"]
COLUMNS = ["name", "email", "code", "title", "status", "amount", "price", "quantity", "created_at", "updated_at", "note",
           "kind", "city", "Full Name", "group", "position", "data", "valid", "ref", "level", "größe", "is_active",
           "starts", "ends", "rating", "slug", "url", "phone", "weight", "version", "body", "country", "age", "year"]


def quoted(name):
    plain = name.isascii() and name.islower() and name.isidentifier() and name not in ("select", "group", "order")
    return name if plain else '"' + name.replace('"', '""') + '"'


@dataclass
class Column:
    """A column; `sort` says what conditions on two of them may compare."""

    name: str
    type: str
    sort: str = ""
    default: str = ""
    not_null: bool = False
    # Of this column alone, with {} where its name stands.
    checks: list = field(default_factory=list)
    generated: bool = False
    # Whether ALTER TABLE drops it, or adds it.
    dropped: bool = False
    added: bool = False

    @property
    def sql(self):
        return quoted(self.name)


@dataclass
class Table:
    schema: str
    name: str
    columns: list = field(default_factory=list)
    # Column lists that rows of other tables may reference.
    keys: list = field(default_factory=list)
    constraints: list = field(default_factory=list)
    unlogged: bool = False
    partition: str = ""
    leaves: list = field(default_factory=list)
    # Statements about it once it and its partitions are there.
    altered: list = field(default_factory=list)

    @property
    def sql(self):
        return f"{quoted(self.schema)}.{quoted(self.name)}"


@dataclass
class Schema:
    """`before` makes tables without foreign keys, `after` the rest."""

    seed: int
    before: str
    after: str
    tables: list

    @property
    def ddl(self):
        return self.before + self.after


class Maker:
    def __init__(self, seed, major):
        self.random = random.Random(f"schema {seed}")
        self.seed, self.major = seed, major
        self.types, self.after, self.tables, self.functions = [], [], [], []
        self.schemas = ["public"]
        self.serial = 0

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *values):
        return self.random.choice(values)

    def fresh(self, stem):
        self.serial += 1
        return f"{stem}_{self.serial}"

    def make(self):
        if self.chance(0.4):
            self.schemas.append(self.pick("shop", "Sales", "archive"))
        self.make_types()
        names = self.random.sample(NAMES, self.random.randint(2, 8))
        for name in names:
            self.tables.append(self.table(name))
        if self.chance(0.1):
            for table in self.tables:
                table.unlogged = not table.partition
        self.references()
        for table in self.tables:
            self.indexes(table)
        for table in self.tables:
            self.alter(table)
        self.others()
        before = [f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}" for name in self.schemas[1:]]
        before += self.types
        for table in self.tables:
            before += statements_of(table)
        return Schema(self.seed, script(before), script(self.after), self.tables)

    # Types

    def make_types(self):
        place = quoted(self.pick(*self.schemas))
        self.enum = f"{place}.mood"
        labels = ["sad", "ok", "happy", "it's", "Very Happy"][: self.random.randint(2, 5)]
        self.types.append(f"CREATE TYPE {self.enum} AS ENUM ({', '.join(literal(label) for label in labels)})")
        self.labels = labels
        self.composite = f"{place}.{quoted(self.pick('address', 'Address'))}"
        self.types.append(f"CREATE TYPE {self.composite} AS (street text, number int, zone {self.enum})")
        self.domains = []
        for sort, base, check in self.random.sample([
            ("text", "text", "CHECK (VALUE ~ '^[A-Z]{2}-[0-9]{4}$')"),
            ("text", "varchar(60)", "CHECK (length(VALUE) >= 3)"),
            ("int", "int", "CHECK (VALUE > 0) CHECK (VALUE < 1000000)"),
            ("int", "bigint", "NOT NULL CHECK (VALUE >= 0)"),
            ("numeric", "numeric(9,3)", "CHECK (VALUE BETWEEN 0 AND 500)"),
            ("text", "text", "CHECK (VALUE = lower(VALUE) AND VALUE <> '')"),
            ("enum", self.enum, f"CHECK (VALUE <> {literal(labels[0])})"),
            ("", "int[]", "CHECK (cardinality(VALUE) <= 4)"),
            ("text", "text", "DEFAULT 'x' CHECK (VALUE LIKE 'x%')"),
            ("date", "date", "CHECK (VALUE >= '2000-01-01')"),
            ("json", "jsonb", "CHECK (jsonb_typeof(VALUE) = 'object')"),
        ], 4):
            name = f"{place}.{self.fresh('domain')}"
            self.types.append(f"CREATE DOMAIN {name} AS {base} {check}")
            self.domains.append((sort, name))
        if self.chance(0.3):
            name = f"{place}.{self.fresh('domain')}"
            sort, base = self.domains[0]
            self.types.append(f"CREATE DOMAIN {name} AS {base}")
            self.domains.append((sort, name))
        if self.chance(0.3):
            self.types.append(f"CREATE TYPE {place}.floatrange AS RANGE (subtype = float8)")
            self.range = f"{place}.floatrange"
        else:
            self.range = "numrange"

    def column(self, name):
        """A column of any type, with conditions on its own."""
        makers = [self.number, self.number, self.text, self.text, self.time, self.other, self.other]
        column = self.random.choice(makers)(name)
        column.not_null = self.chance(0.4)
        if column.checks and not self.chance(0.7):
            column.checks = []
        if column.checks and self.chance(0.15):
            column.checks = [f"{{0}} IS NULL OR ({check})" for check in column.checks]
        return column

    def number(self, name):
        sort, type = self.pick(
            ("int", "smallint"), ("int", "int"), ("int", "bigint"), ("int", "int"), ("numeric", "numeric(10,2)"),
            ("numeric", "numeric"), ("float", "real"), ("float", "double precision"), ("numeric", "numeric(4,3)"),
            ("numeric", "numeric(30,10)"), ("money", "money"), ("domain", ""))
        if sort == "domain":
            found = [domain for domain in self.domains if domain[0] in ("int", "numeric")]
            sort, type = self.random.choice(found) if found else ("int", "int")
            return Column(name, type, sort)
        column = Column(name, type, sort)
        if sort == "money":
            return column
        if type == "numeric(4,3)":
            column.checks = [self.pick("{0} >= 0", "{0} BETWEEN 0 AND 1", "{0} < 5")]
        elif sort in ("numeric", "float"):
            column.checks = [self.pick("{0} >= 0", "{0} > 0 AND {0} < 10000", "{0} BETWEEN 0.5 AND 99.5", "{0} <> 0",
                                       "round({0}::numeric, 1) > 1", "abs({0}) < 1000")]
        else:
            column.checks = [self.pick("{0} > 0", "{0} BETWEEN 1 AND 100", "{0} IN (1, 2, 3, 5, 8)", "{0} <> 0", "{0} >= -5",
                                       "{0} % 2 = 0", "{0} = ANY (ARRAY[10, 20, 30])", "NOT {0} < 4",
                                       "{0} < 0 OR {0} > 100", "{0} * 2 < 5000 AND {0} > -100")]
        if self.chance(0.3):
            column.default = self.pick("20", "10") if column.checks[0] != "{0} IN (1, 2, 3, 5, 8)" else "5"
            if type == "numeric(4,3)" or column.checks[0] == "{0} < 0 OR {0} > 100":
                column.default = "0.5" if type == "numeric(4,3)" else "-3"
            if column.checks[0] == "{0} BETWEEN 1 AND 100":
                column.default = "17 + 3"
        return column

    def text(self, name):
        kind = self.random.randrange(20)
        length = self.pick(20, 40, 80, 255, 1000)
        type = self.pick("text", "text", f"varchar({length})", f"char({min(length, 40)})", "varchar")
        if kind == 0:
            found = [domain for domain in self.domains if domain[0] == "text"]
            if found:
                return Column(name, self.random.choice(found)[1], "text")
        column = Column(name, type, "text")
        if type.startswith("char("):
            return column
        checks = ["length({0}) BETWEEN 3 AND 18", "{0} <> ''", "{0} LIKE 'A%'", "{0} IN ('red', 'green', 'it''s')",
                  "{0} ~ '^[A-Z]{{2}}[0-9]{{3,5}}$'", "lower({0}) = {0}", "length(trim({0})) > 0", "{0} ~* '^[a-z]+$'",
                  "{0} NOT LIKE '%;%'", "{0} !~ '[[:space:]]'", "char_length({0}) <= 12", "{0} ~ '^[^@]+@[^@]+[.][a-z]{{2,}}$'",
                  "{0} = ANY (ARRAY['a'::text, 'b'::text, 'c'::text])", "upper({0}) = {0} AND length({0}) = 3",
                  "octet_length({0}) < 16", "{0} ILIKE 'x_%'", "{0} SIMILAR TO '(a|b)+[0-9]*'", "position('@' IN {0}) > 1",
                  "left({0}, 2) = 'ab'", "{0} <> 'none' AND {0} > 'a'"]
        if type in ("text", "varchar"):
            # Too long for a row of one page.
            checks += ["length({0}) BETWEEN 2500 AND 9000", "length({0}) > 3000"]
        column.checks = [self.random.choice(checks)]
        if self.chance(0.2):
            column.checks = []
            column.default = self.pick("''", "'none'", "'it''s'", "substr('abc', 2)", "lower('ABC')", "CURRENT_USER")
        if self.chance(0.15):
            column.type += f' COLLATE "{self.pick("C", "en-x-icu", "de-x-icu", "POSIX")}"'
        return column

    def time(self, name):
        sort = self.pick("date", "timestamp", "timestamptz", "timestamptz")
        column = Column(name, sort, sort)
        column.checks = [self.pick("{0} >= '2020-01-01'", "{0} < '2100-01-01'", "{0} > '1990-01-01' AND {0} < '2050-01-01'",
                                   "extract(year FROM {0}) >= 2000", "{0} IS NOT NULL")]
        if sort == "date" and self.chance(0.2):
            column.checks = ["extract(isodow FROM {0}) < 6"]
        if sort == "timestamptz":
            column.checks = [] if "extract" in column.checks[0] else column.checks
        if self.chance(0.4):
            column.default = self.pick("now()", "CURRENT_TIMESTAMP", "'2024-05-06'", "clock_timestamp()",
                                       "now() + interval '1 day'")
        return column

    def other(self, name):
        types = [("bool", "boolean"), ("uuid", "uuid"), ("json", "jsonb"), ("json", "json"), ("", "bytea"), ("inet", "inet"),
                 ("", "cidr"), ("", "macaddr"), ("", "bit(8)"), ("", "varbit(20)"), ("", "point"), ("", "box"), ("", "interval"),
                 ("", "time"), ("", "timetz"), ("enum", self.enum), ("enum", self.enum), ("", f"{self.enum}[]"),
                 ("array", "int[]"), ("array", "text[]"), ("", "numeric(6,2)[]"), ("", "timestamptz[]"), ("range", "int4range"),
                 ("range", "daterange"), ("range", "tstzrange"), ("range", self.range), ("", self.composite),
                 ("", f"{self.composite}[]"), ("", "tsvector"), ("", '"char"'), ("", "name"), ("", "oid"), ("", "xml"),
                 ("", "bigint[][]"), ("", "circle"), ("", "pg_lsn"), ("", "macaddr8"), ("", "uuid[]"), ("", "jsonb[]"),
                 ("", "boolean[]")]
        if self.major >= 14:
            types += [("", "int4multirange"), ("", "tstzmultirange")]
        types += [(sort, domain) for sort, domain in self.domains] * 2
        sort, type = self.random.choice(types)
        column = Column(name, type, sort)
        if type == "jsonb":
            column.checks = [self.pick("jsonb_typeof({0}) = 'object'", "{0} ? 'id'", "({0} ->> 'kind') IN ('a', 'b')",
                                       "jsonb_typeof({0}) = ANY (ARRAY['object', 'array'])")]
            column.default = self.pick("", "'{{}}'".format(), "'[]'") if self.chance(0) else ""
        elif type == "json":
            column.checks = ["json_typeof({0}) = 'object'"]
        elif type == self.enum:
            column.checks = [self.pick(f"{{0}} <> {literal(self.labels[0])}", f"{{0}} IN ({literal(self.labels[0])}, {literal(self.labels[1])})",
                                       f"{{0}} >= {literal(self.labels[1])}")]
            column.default = literal(self.labels[1])
        elif type == "int[]":
            column.checks = [self.pick("array_length({0}, 1) <= 5", "cardinality({0}) > 0", "array_position({0}, NULL) IS NULL",
                                       "0 < ALL ({0})")]
        elif type == "text[]":
            column.checks = [self.pick("{0} <@ ARRAY['a', 'b', 'c']", "array_length({0}, 1) BETWEEN 1 AND 3", "cardinality({0}) > 0")]
            if not self.chance(0.6):
                column.checks, column.default = [], "'{}'"
        elif type in ("int4range", "daterange", "tstzrange"):
            column.checks = [self.pick("NOT isempty({0})", "lower({0}) < upper({0})", "lower_inc({0})", "NOT upper_inf({0})",
                                       "lower({0}) IS NOT NULL")]
        elif type == "interval":
            column.checks = [self.pick("{0} > interval '0'", "{0} BETWEEN '1 hour' AND '10 days'")]
        elif type == "bytea":
            column.checks = [self.pick("octet_length({0}) <= 32", "length({0}) = 16")]
        elif type == "inet":
            column.checks = [self.pick("family({0}) = 4", "masklen({0}) = 32 OR family({0}) = 6")]
        elif type == "boolean":
            column.default = self.pick("", "true", "false")
        elif type == "uuid" and self.major >= 13:
            column.default = self.pick("", "gen_random_uuid()")
        return column

    # Tables

    def table(self, name):
        table = Table(self.pick(*self.schemas), name)
        names = self.random.sample(COLUMNS, self.random.randint(1, 9))
        self.key(table)
        for column in names:
            table.columns.append(self.column(column))
        self.conditions(table)
        if self.chance(0.25):
            self.long(table)
        self.generated(table)
        self.uniques(table)
        if self.chance(0.15):
            self.exclusion(table)
        if self.chance(0.2) and not any("EXCLUDE" in constraint for constraint in table.constraints):
            self.partitions(table)
        if not table.partition and self.chance(0.05):
            table.unlogged = True
        if self.chance(0.15) and not table.partition.startswith("LIST"):
            leaves = [f"{quoted(table.schema)}.{quoted(f'{table.name}_p{number}')}" for number in range(len(table.leaves))]
            for leaf in leaves or [table.sql]:
                table.altered.append(f"ALTER TABLE {leaf} SET (toast_tuple_target = {self.pick(128, 500, 4000, 8160)})")
        self.random.shuffle(table.columns)
        return table

    def long(self, table):
        """Columns that make rows longer than a page has room for, so that values are compressed, or moved out of line."""
        for type, check in self.random.sample([("text", "length({0}) BETWEEN 7000 AND 12000"), ("text", "length({0}) > 2500"),
                                               ("varchar(4000)", "length({0}) >= 1800"), ("bytea", "length({0}) BETWEEN 2100 AND 6000"),
                                               ("char(3000)", "")], self.pick(1, 1, 2, 3)):
            column = Column(self.fresh("long"), type, "text" if type in ("text", "varchar(4000)") else "", not_null=self.chance(0.5))
            column.checks = [check] if check else []
            table.columns.append(column)
            if self.chance(0.3):
                name = column.sql
                self.after.append(f"CREATE INDEX ON {table.sql} " + self.pick(f"(md5({name}))", f"(length({name}))", f"USING hash ({name})"))

    def key(self, table):
        kind = self.random.randrange(14)
        column = Column("id", "bigint", "", not_null=True)
        if kind in (0, 1):
            column.default = "GENERATED ALWAYS AS IDENTITY"
            if self.chance(0.3):
                column.default += self.pick(" (START 100 INCREMENT 5)", " (MINVALUE 1000)", " (CACHE 20)", " (INCREMENT -1 MAXVALUE -1)")
        elif kind == 2:
            column.default = "GENERATED BY DEFAULT AS IDENTITY"
        elif kind in (3, 4):
            column.type = self.pick("serial", "bigserial")
        elif kind == 5:
            column.type, column.default = "uuid", "DEFAULT gen_random_uuid()"
        elif kind == 6:
            column.type = self.pick("text", "varchar(20)", "char(6)")
            column.name = "code_"
        elif kind == 7:
            column.type = "int"
        elif kind == 8:
            return
        elif kind == 9:
            table.columns += [Column("tenant", "int", "", not_null=True), Column("number", self.pick("smallint", "int"), "", not_null=True)]
            table.constraints.append("PRIMARY KEY (tenant, number)")
            table.keys.append(["tenant", "number"])
            return
        elif kind == 10:
            table.columns += [Column("zone", self.enum, "", not_null=True), Column("number", "int", "", not_null=True)]
            table.constraints.append("PRIMARY KEY (number, zone)")
            table.keys.append(["number", "zone"])
            return
        elif kind == 11:
            column.type = self.pick("numeric(12)", "timestamptz", "date", "inet", "bytea", "double precision")
        elif kind == 12:
            table.columns += [Column("tenant", "uuid", "", not_null=True), Column("name_", "text", "", not_null=True),
                              Column("nr", "int", "", not_null=True)]
            table.constraints.append("PRIMARY KEY (tenant, name_, nr)")
            table.keys.append(["tenant", "name_", "nr"])
            return
        elif kind == 13:
            domains = [domain for sort, domain in self.domains if sort == "int"]
            column.type = domains[0] if domains else "int"
        table.columns.append(column)
        table.keys.append([column.name])
        table.constraints.append(f"{self.pick('', 'CONSTRAINT ' + quoted(self.fresh('Key')) + ' ')}PRIMARY KEY ({column.sql})")

    def conditions(self, table):
        """CHECKs on two columns."""
        by_sort = {}
        for column in table.columns:
            if column.sort and not column.checks and not column.default:
                by_sort.setdefault(column.sort, []).append(column)
        for sort, columns in by_sort.items():
            if len(columns) < 2 or not self.chance(0.6):
                continue
            a, b = self.random.sample(columns, 2)
            if "domain" in a.type + b.type:
                continue
            if sort in ("int", "numeric", "float", "date", "timestamp", "timestamptz"):
                condition = self.pick("{a} < {b}", "{a} <= {b}", "{a} <> {b}", "{b} > {a} OR {b} IS NULL", "{a} IS NULL OR {b} >= {a}")
                if sort in ("int", "numeric") and self.chance(0.2):
                    condition = "{a} + {b} > 0"
            elif sort == "text":
                condition = self.pick("{a} <> {b}", "{a} IS NOT NULL OR {b} IS NOT NULL", "length({a}) < length({b})")
            else:
                condition = "{a} IS NOT NULL OR {b} IS NOT NULL"
            table.constraints.append(f"CHECK ({condition.format(a=a.sql, b=b.sql)})")
        nullable = [column for column in table.columns if not column.not_null and not column.checks and not column.default]
        used = "".join(table.constraints)
        nullable = [column for column in nullable if column.sql not in used]
        if len(nullable) >= 2 and self.chance(0.4):
            a, b = self.random.sample(nullable, 2)
            condition = self.pick("({a} IS NULL) = ({b} IS NULL)", "({a} IS NULL AND {b} IS NOT NULL) OR ({a} IS NOT NULL AND {b} IS NULL)",
                                  "num_nonnulls({a}, {b}) = 1", "({a} IS NULL) <> ({b} IS NULL)", "{a} IS NOT NULL OR {b} IS NULL",
                                  "num_nulls({a}, {b}) IN (0, 2)")
            name = self.pick("", f"CONSTRAINT {self.fresh('pair')} ")
            table.constraints.append(f"{name}CHECK ({condition.format(a=a.sql, b=b.sql)})")
        bools = [column for column in table.columns if column.type == "boolean" and not column.default]
        if bools and nullable and self.chance(0.5) and nullable[0] is not bools[0]:
            table.constraints.append(f"CHECK (NOT {bools[0].sql} OR {nullable[0].sql} IS NOT NULL)")

    def generated(self, table):
        kept = "VIRTUAL" if self.major >= 18 and self.chance(0.4) else "STORED"
        for column in list(table.columns):
            if not self.chance(0.07) or column.generated:
                continue
            built_in = "." not in column.type
            name = self.fresh("made")
            if column.sort == "int" and built_in:
                made = Column(name, "bigint", default=f"{column.sql}::bigint * 2 + 1")
            elif column.sort == "text" and built_in:
                made = self.pick(Column(name, "text", default=f"lower({column.sql})"), Column(name, "int", default=f"length({column.sql})"),
                                 Column(name, "text", default=f"coalesce({column.sql}, '-') || '/' || coalesce({column.sql}, '')"))
            elif column.sort == "numeric" and built_in:
                made = Column(name, "numeric", default=f"{column.sql} * 1.19")
            elif column.sort == "json" and column.type == "jsonb":
                made = Column(name, "text", default=f"{column.sql} ->> 'id'")
            elif column.sort == "date" and built_in:
                made = Column(name, "int", default=f"extract(year FROM {column.sql})::int")
            elif column.sort == "range" and built_in:
                made = Column(name, "boolean", default=f"isempty({column.sql})")
            else:
                continue
            made.default, made.generated = f"GENERATED ALWAYS AS ({made.default}) {kept}", True
            table.columns.append(made)

    def uniques(self, table):
        for column in table.columns:
            # A condition may leave few values: then the table is smaller.
            roomy = column.type in ("text", "varchar(255)", "uuid", "bigint", "timestamptz", "numeric", "int", "varchar(40)", "inet", "bytea")
            if column.generated or column.checks or column.default or not roomy or not self.chance(0.12) or [column.name] in table.keys:
                continue
            distinct = " NULLS NOT DISTINCT" if self.major >= 15 and self.chance(0.3) else ""
            late = self.pick("", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED")
            table.constraints.append(f"UNIQUE{distinct} ({column.sql}){late}")
            if not late:
                table.keys.append([column.name])
        if self.chance(0.1):
            found = [column for column in table.columns if column.type in ("int", "text", "date", self.enum, "smallint") and not column.default]
            if len(found) >= 2 and not all(column.checks for column in found[:2]):
                names = [column.name for column in found[:2]]
                table.constraints.append(f"UNIQUE ({', '.join(map(quoted, names))})")

    def exclusion(self, table):
        name = self.fresh("during")
        type = self.pick("tstzrange", "int4range", "daterange", "tsrange")
        table.columns.append(Column(name, type, not_null=self.chance(0.5)))
        scalar = [column for column in table.columns if column.type in ("int", "bigint", "text") and not column.checks and not column.default]
        if scalar and self.chance(0.5):
            self.types.append("CREATE EXTENSION IF NOT EXISTS btree_gist")
            table.constraints.append(f"EXCLUDE USING gist ({self.random.choice(scalar).sql} WITH =, {name} WITH &&)")
        else:
            table.constraints.append(f"EXCLUDE USING gist ({name} WITH &&)")

    def partitions(self, table):
        """Keys of a partitioned table hold the column that rows are parted by."""
        keys = [constraint for constraint in table.constraints if "PRIMARY KEY" in constraint or "UNIQUE" in constraint]
        method = self.pick("hash", "list", "range", "range")
        if method == "hash":
            name = next((column.name for column in table.columns if column.type in ("int", "bigint", "uuid", "text") and not column.generated
                         and "IDENTITY" not in column.default), None)
        elif method == "list":
            name = self.fresh("part")
            table.columns.append(Column(name, self.pick(self.enum, "int"), not_null=True))
        else:
            name = self.fresh("part")
            table.columns.append(Column(name, self.pick("timestamptz", "date", "int"), not_null=True))
        if name is None or (self.major < 17 and any("IDENTITY" in column.default for column in table.columns)):
            if name is not None and method != "hash":
                table.columns.pop()
            return
        column = next(column for column in table.columns if column.name == name)
        for constraint in keys:
            table.constraints.remove(constraint)
            inside, _, tail = constraint.rpartition(")")
            if column.sql not in constraint:
                constraint = f"{inside}, {column.sql}){tail}"
            table.constraints.append(constraint)
        table.keys = [key if name in key else [*key, name] for key in table.keys]
        table.partition = f"{method.upper()} ({column.sql})"
        if method == "hash":
            count = self.random.randint(2, 5)
            table.leaves = [f"WITH (MODULUS {count}, REMAINDER {n})" for n in range(count)]
        elif method == "list" and column.type == self.enum:
            table.leaves = [f"IN ({literal(label)})" for label in self.labels[1:]] + ["DEFAULT" if self.chance(0.5) else f"IN ({literal(self.labels[0])})"]
        elif method == "list":
            table.leaves = ["IN (1, 2)", "IN (3)", "IN (40, 50, 60)"]
        elif column.type == "int":
            table.leaves = ["FROM (MINVALUE) TO (0)", "FROM (0) TO (1000)", "FROM (1000) TO (5000)"] + (["DEFAULT"] if self.chance(0.4) else [])
        else:
            table.leaves = ["FROM ('2023-01-01') TO ('2024-01-01')", "FROM ('2024-01-01') TO ('2025-01-01')", "FROM ('2025-01-01') TO ('2030-01-01')"]

    def alter(self, table):
        """What a table's past leaves behind: columns that were dropped, or came later."""
        if self.chance(0.12):
            at = self.random.randint(0, len(table.columns))
            table.columns.insert(at, Column("gone", self.pick("int", "text", "numeric NOT NULL"), dropped=True))
            table.altered.append(f"ALTER TABLE {table.sql} DROP COLUMN gone")
        if self.chance(0.12):
            type = self.pick("int DEFAULT 7", "text DEFAULT 'x' NOT NULL", "timestamptz DEFAULT now()", "uuid", "int[]",
                             "bigint GENERATED ALWAYS AS IDENTITY" if not table.partition else "bigint")
            table.columns.append(Column("added", type, added=True))
            table.altered.append(f"ALTER TABLE {table.sql} ADD COLUMN added {type}")
        if table.partition.startswith("RANGE") and self.chance(0.3):
            # A partition whose columns stand in another order.
            name = f"{table.name}_attached"
            bound = {"FROM (MINVALUE) TO (0)": "FROM (5000) TO (9000)"}.get(table.leaves[0], "FROM ('2030-01-01') TO ('2040-01-01')")
            if "DEFAULT" not in table.leaves:
                leaf = f"{quoted(table.schema)}.{quoted(name)}"
                table.altered.append(f"CREATE TABLE {leaf} (LIKE {table.sql} INCLUDING ALL EXCLUDING IDENTITY, odd int)")
                table.altered += [f"ALTER TABLE {leaf} DROP COLUMN odd", f"ALTER TABLE {table.sql} ATTACH PARTITION {leaf} FOR VALUES {bound}"]
        elif table.partition.startswith("LIST") and self.chance(0.4):
            place = f"{quoted(table.schema)}.{quoted(table.name + '_p0')}"
            key = next(column.sql for column in table.columns if column.sql in table.partition and column.name.startswith("part_"))
            table.leaves[0] += f" PARTITION BY HASH ({key})"
            for n in range(2):
                leaf = f"{quoted(table.schema)}.{quoted(f'{table.name}_p0_{n}')}"
                table.altered.insert(0, f"CREATE TABLE {leaf} PARTITION OF {place} FOR VALUES WITH (MODULUS 2, REMAINDER {n})")

    # Between tables

    def references(self):
        for at, table in enumerate(self.tables):
            for _ in range(self.pick(0, 1, 1, 2, 3)):
                roll = self.random.random()
                parents = self.tables[:at] if roll < 0.8 else [table] if roll < 0.92 else self.tables[at + 1:]
                parents = [parent for parent in parents if parent.keys and (table.unlogged or not parent.unlogged)]
                if parents:
                    # Those to tables that come later make cycles.
                    nullable = roll >= 0.92 and self.chance(0.5) or 0.8 <= roll < 0.92
                    self.reference(table, self.random.choice(parents), nullable)

    def reference(self, table, parent, nullable):
        key = self.random.choice(parent.keys)
        columns = []
        for name in key:
            target = next(column for column in parent.columns if column.name == name)
            type = {"serial": "int", "bigserial": "bigint"}.get(target.type, target.type)
            column = Column(self.fresh("ref"), type, "", not_null=not nullable and self.chance(0.5))
            columns.append(column)
            table.columns.append(column)
        names = ", ".join(column.sql for column in columns)
        if not nullable and not table.partition and self.chance(0.12):
            for column in columns:
                column.not_null = True
            table.constraints.append(f"UNIQUE ({names})")
        full = " MATCH FULL" if len(key) > 1 and self.chance(0.3) else ""
        action = self.pick("", "", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON DELETE RESTRICT ON UPDATE CASCADE", " ON DELETE SET DEFAULT")
        late = self.pick("", "", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED", " NOT VALID")
        if late == " NOT VALID" and table.partition:
            late = ""
        name = self.pick("", f" CONSTRAINT {quoted(self.fresh('Fk'))}")
        targets = ", ".join(map(quoted, key))
        self.after.append(f"ALTER TABLE {table.sql} ADD{name} FOREIGN KEY ({names}) REFERENCES {parent.sql} ({targets}){full}{action}{late}")
        if self.chance(0.4):
            self.after.append(f"CREATE INDEX ON {table.sql} ({names})")
        same = [other for other in table.columns if other.name.startswith("ref_") and other.type == columns[0].type and other is not columns[0]]
        if same and len(columns) == 1 and self.chance(0.3) and not table.partition:
            table.constraints.append(f"CHECK ({columns[0].sql} <> {same[0].sql})")

    def indexes(self, table):
        for column in table.columns:
            if not self.chance(0.2):
                continue
            name, on = column.sql, f"CREATE INDEX ON {table.sql}"
            built_in = "." not in column.type
            choices = []
            if column.sort in ("int", "numeric", "text", "date", "timestamp", "timestamptz", "enum", "uuid", "float", "bool", "inet") and not column.generated:
                choices += [f"{on} ({name})", f"{on} ({name} DESC NULLS LAST)", f"{on} ({name}) WHERE {name} IS NOT NULL"]
                if column.sort != "bool":
                    choices.append(f"{on} USING hash ({name})")
                if column.sort in ("int", "date", "timestamptz", "float"):
                    choices.append(f"{on} USING brin ({name})")
                if column.sort == "text" and built_in:
                    choices += [f"{on} (lower({name}))", f"{on} ({name} text_pattern_ops)" if column.type == "text" else f"{on} ({name})",
                                f"{on} USING gin (to_tsvector('simple', {name}))", f'{on} ({name} COLLATE "C")']
                    if not column.checks and not column.default and not table.partition and column.type in ("text", "varchar(255)"):
                        choices += [f"CREATE UNIQUE INDEX ON {table.sql} (lower({name}))",
                                    f"CREATE UNIQUE INDEX ON {table.sql} ({name}) WHERE {name} <> ''"]
            if column.type in ("jsonb", "int[]", "text[]", "tsvector"):
                choices.append(f"{on} USING gin ({name})")
            if column.type == "jsonb":
                choices += [f"{on} USING gin ({name} jsonb_path_ops)", f"{on} (({name} ->> 'id'))"]
            if column.sort == "range" or column.type in ("point", "box"):
                choices.append(f"{on} USING gist ({name})")
            if column.type == "bytea":
                choices.append(f"{on} ({name})")
            if choices and not (column.generated and "VIRTUAL" in column.default):
                self.after.append(self.random.choice(choices))
        plain = [column for column in table.columns if column.type in ("int", "bigint", "date", "boolean", "uuid")
                 and "VIRTUAL" not in column.default]
        if len(plain) >= 2 and self.chance(0.4):
            a, b = self.random.sample(plain, 2)
            self.after.append(f"CREATE INDEX ON {table.sql} ({a.sql}, {b.sql} DESC)" + (f" INCLUDE ({a.sql})" if self.chance(0.2) else ""))
        flags = [column for column in table.columns if column.type == "boolean"]
        if flags and plain and not table.partition and self.chance(0.3) and plain[0] is not flags[0] and not plain[0].checks and not plain[0].default:
            self.after.append(f"CREATE UNIQUE INDEX ON {table.sql} ({plain[0].sql}) WHERE {flags[0].sql}")

    def others(self):
        table = self.random.choice(self.tables)
        if self.chance(0.3):
            self.after.append(f"CREATE VIEW public.overview AS SELECT count(*) AS n FROM {table.sql}")
        if self.chance(0.2):
            self.after.append(f"CREATE MATERIALIZED VIEW public.summary AS SELECT count(*) AS n FROM {table.sql}")
        if self.chance(0.15):
            when, result = self.pick(("BEFORE INSERT", "NEW"), ("AFTER INSERT", "NULL"), ("BEFORE UPDATE", "NEW"))
            self.after.append(f"CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN {result}; END;$$")
            self.after.append(f"CREATE TRIGGER touched {when} ON {table.sql} FOR EACH ROW EXECUTE FUNCTION public.touch()")
        if self.chance(0.2):
            self.after.append(f"COMMENT ON TABLE {table.sql} IS 'It''s; a \"comment\"'")
        if self.chance(0.1):
            self.after.append(f"ALTER TABLE {table.sql} ENABLE ROW LEVEL SECURITY")
        if self.chance(0.1) and not table.partition:
            self.after.append(f"ALTER TABLE {table.sql} SET (fillfactor = 70)")
        wide = [column for column in table.columns if column.type == "text" and not column.dropped]
        if wide and self.chance(0.2):
            self.after.append(f"ALTER TABLE {table.sql} ALTER {wide[0].sql} SET STORAGE {self.pick('EXTERNAL', 'PLAIN', 'MAIN')}")


def statements_of(table):
    lines = []
    for column in table.columns:
        if column.added:
            continue
        words = [column.sql, column.type]
        if column.default:
            words.append(column.default if column.default.startswith(("GENERATED", "DEFAULT")) else f"DEFAULT {column.default}")
        if column.not_null:
            words.append("NOT NULL")
        words += [f"CHECK ({check.format(column.sql)})" for check in column.checks]
        lines.append(" ".join(words))
    inside = ",\n    ".join(lines + table.constraints)
    parted = f" PARTITION BY {table.partition}" if table.partition else ""
    yield f"CREATE {'UNLOGGED ' if table.unlogged else ''}TABLE {table.sql} (\n    {inside}\n){parted}"
    for number, bound in enumerate(table.leaves):
        leaf = f"{quoted(table.schema)}.{quoted(f'{table.name}_p{number}')}"
        values = bound if bound == "DEFAULT" else f"FOR VALUES {bound}"
        yield f"CREATE TABLE {leaf} PARTITION OF {table.sql} {values}"
    yield from table.altered


def script(statements):
    return "".join(f"{statement};\n" for statement in statements)


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def made(seed, major):
    """The schema of this seed for a server of this major version."""
    return Maker(seed, major).make()
