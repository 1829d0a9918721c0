-- $1: a table's qualified name; $2: a foreign key of it. Statements that drop it and make it again as it was.
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', $1::text, k.conname) AS drops,
       array_remove(ARRAY[
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', $1::text, k.conname, pg_get_constraintdef(k.oid)),
           'COMMENT ON CONSTRAINT ' || quote_ident(k.conname) || ' ON ' || $1::text || ' IS '
               || quote_literal(obj_description(k.oid, 'pg_constraint'))
       ], NULL) AS makes
  FROM pg_constraint k
 WHERE k.conrelid = to_regclass($1) AND k.contype = 'f' AND k.conname = $2
