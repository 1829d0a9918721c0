-- $1, $2: tablespaces that tables and indexes are created in, NULL for the session's default. Oids of the
-- tablespaces that tables, indexes and temporary files go to. A default_tablespace that does not exist is
-- ignored by the server too.
WITH listed AS (
    SELECT trim(trim(name), '"') AS name, place
      FROM unnest(string_to_array(current_setting('temp_tablespaces'), ',')) WITH ORDINALITY AS t (name, place)
), database AS (
    SELECT dattablespace AS oid FROM pg_database WHERE datname = current_database()
)
SELECT coalesce((SELECT oid FROM pg_tablespace
                  WHERE spcname = coalesce($1::text, current_setting('default_tablespace'))),
                (SELECT oid FROM database)) AS heap,
       coalesce((SELECT oid FROM pg_tablespace
                  WHERE spcname = coalesce($2::text, current_setting('default_tablespace'))),
                (SELECT oid FROM database)) AS index,
       coalesce((SELECT t.oid FROM pg_tablespace t JOIN listed ON t.spcname = listed.name
                  ORDER BY listed.place LIMIT 1),
                (SELECT oid FROM database)) AS temporary
