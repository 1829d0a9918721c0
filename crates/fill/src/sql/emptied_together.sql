-- $1: qualified names of tables. These, and the tables that reference them: TRUNCATE takes only all of them together.
WITH RECURSIVE emptied AS (
    SELECT name::regclass::oid AS oid FROM unnest($1::text[]) AS t (name)
     UNION
    SELECT c.conrelid FROM pg_constraint c JOIN emptied ON c.confrelid = emptied.oid
      JOIN pg_class r ON r.oid = c.conrelid
     WHERE c.contype = 'f' AND NOT r.relispartition
)
SELECT ARRAY(SELECT format('%s.%s', quote_ident(n.nspname), quote_ident(c.relname))
               FROM emptied JOIN pg_class c ON c.oid = emptied.oid JOIN pg_namespace n ON n.oid = c.relnamespace
              ORDER BY 1) AS tables,
       EXISTS (SELECT FROM emptied WHERE oid <> ALL ($1::text[]::regclass[]::oid[])) AS referencing
