-- Enabled triggers that fire for each row, with the bits of their events (pg_trigger.h: TRIGGER_TYPE_*). A trigger of a partitioned table has one on
-- each partition, from PostgreSQL 13 on with the column tgparentid.
SELECT n.nspname::text AS schema, c.relname::text AS name, g.tgname::text AS own, g.tgtype::int4 AS events
  FROM pg_catalog.pg_trigger g
  JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype::int4 & 1 <> 0 AND c.relkind IN ('r', 'p')
   AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'
 ORDER BY 1, 2, 3
