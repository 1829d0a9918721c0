-- $1: schema; $2: the ledger's name.
SELECT count(*) > 0 AS ledger_exists, min(obj_description(c.oid, 'pg_class')) AS ledger_comment
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind = 'r'
