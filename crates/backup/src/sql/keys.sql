-- The largest tables with rows and a primary key of which this role may read all rows.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       c.relpages AS pages,
       ARRAY(SELECT a.attname::text
               FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k (number, place)
               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
              ORDER BY k.place) AS columns
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE i.indisprimary
   AND i.indisvalid
   AND c.relkind = 'r'
   AND c.relpersistence <> 't'
   AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND pg_relation_size(c.oid) > 0
   AND has_table_privilege(c.oid, 'SELECT')
   AND has_schema_privilege(n.oid, 'USAGE')
   AND NOT row_security_active(c.oid)
 ORDER BY pg_relation_size(c.oid) DESC, c.oid
 LIMIT $1
