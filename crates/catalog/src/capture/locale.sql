-- The locale of a database. $1: its name; NULL for that of the session. Provider, locale and rules are columns of later releases.
SELECT coalesce(pg_catalog.to_jsonb(d) ->> 'datlocprovider', 'c') AS provider, d.datcollate::text AS collate, d.datctype::text AS ctype,
       coalesce(pg_catalog.to_jsonb(d) ->> 'datlocale', pg_catalog.to_jsonb(d) ->> 'daticulocale') AS locale,
       pg_catalog.to_jsonb(d) ->> 'daticurules' AS rules
  FROM pg_catalog.pg_database d
 WHERE d.datname::text = coalesce($1::text, pg_catalog.current_database()::text)
