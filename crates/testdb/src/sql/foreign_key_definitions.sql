-- $1: oids of foreign keys. What it takes to drop them and to add them again; names are qualified if search_path is
-- empty.
WITH RECURSIVE family (root, oid) AS (
    SELECT oid, oid FROM unnest($1::oid[]) AS g (oid)
    UNION ALL
    SELECT f.root, k.oid FROM family f JOIN pg_constraint k ON k.conparentid = f.oid
)
SELECT k.oid,
       k.conname::text AS name,
       n.nspname::text AS schema,
       c.relname::text AS table,
       c.relkind::text AS kind,
       pg_get_constraintdef(k.oid) AS definition,
       obj_description(k.oid, 'pg_constraint') AS comment,
       EXISTS (SELECT
                 FROM family f JOIN pg_trigger t ON t.tgconstraint = f.oid
                WHERE f.root = k.oid AND t.tgenabled <> 'O') AS has_disabled_triggers
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE k.oid = ANY ($1)
 ORDER BY k.oid
