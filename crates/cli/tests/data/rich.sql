-- A column of every kind that pages are written of, and an index of every sort.
CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN grade AS percent NOT NULL CHECK (VALUE > 10);
CREATE TABLE rich (
    id int PRIMARY KEY,
    seq bigint NOT NULL UNIQUE,
    two smallint NOT NULL,
    at timestamptz NOT NULL,
    day date,
    flag boolean,
    r real, d double precision, n numeric, price numeric(8,2) NOT NULL, m money,
    t text, v varchar(20), c char(12), nm name, b bytea,
    tm time, tz timetz, ts timestamp(6), iv interval,
    u uuid, j json, jb jsonb, x xml,
    i inet, ci cidr, ma macaddr, ma8 macaddr8,
    bi bit(5), vb bit varying(9),
    po point, li line, ls lseg, bo box, pa path, pg polygon, cc circle,
    o oid, l pg_lsn,
    ints int[], texts text[], numbers numeric(6,1)[],
    part percent, grade grade,
    k int DEFAULT 7 CHECK (k > 0),
    EXCLUDE USING btree (seq WITH =),
    EXCLUDE USING btree (u WITH =)
);
CREATE INDEX rich_at ON rich (at);
CREATE UNIQUE INDEX rich_at_70 ON rich (at) WITH (fillfactor = 70);
CREATE INDEX rich_two ON rich (two);
CREATE INDEX rich_day ON rich (day);
CREATE INDEX rich_day_apart ON rich (day) WITH (deduplicate_items = off);
CREATE INDEX rich_ts ON rich (ts) WITH (fillfactor = 70);
CREATE INDEX rich_tm ON rich (tm);
CREATE UNIQUE INDEX rich_u ON rich (u);
CREATE INDEX rich_part ON rich (part);
CREATE INDEX rich_k ON rich (k);
CREATE INDEX rich_t ON rich (t);
CREATE INDEX rich_v ON rich (v) WITH (fillfactor = 50);
CREATE INDEX rich_t_by_language ON rich (t COLLATE "und-x-icu");
CREATE INDEX rich_several ON rich (day, two);
CREATE INDEX rich_expression ON rich (lower(t));
CREATE INDEX rich_partial ON rich (id) WHERE flag;
CREATE INDEX rich_descending ON rich (id DESC);
CREATE INDEX rich_nulls_first ON rich (id NULLS FIRST);
CREATE INDEX rich_covering ON rich (id) INCLUDE (two);
CREATE INDEX rich_pattern ON rich (t text_pattern_ops);
CREATE INDEX rich_gin ON rich USING gin (ints);
CREATE INDEX rich_documents ON rich USING gin (jb);
CREATE INDEX rich_gist ON rich USING gist (bo);
CREATE INDEX rich_hash ON rich USING hash (u);
CREATE INDEX rich_brin ON rich USING brin (at);
