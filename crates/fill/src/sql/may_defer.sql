-- $1: a table's qualified name; $2: a foreign key of it. Whether the server can check it after all rows of a transaction.
SELECT k.condeferrable AS is_deferrable,
       pg_has_role(c.relowner, 'USAGE') AS may_alter
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
 WHERE k.conrelid = to_regclass($1) AND k.contype = 'f' AND k.conname = $2
