-- The largest tables with rows and a primary key of which this role may read all rows. A table that a session locks, or waits to lock, is left out:
-- a look at its size would wait, too.
WITH readable AS MATERIALIZED (
    SELECT c.oid,
           n.nspname,
           c.relname,
           c.relpages,
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
       AND has_table_privilege(c.oid, 'SELECT')
       AND has_schema_privilege(n.oid, 'USAGE')
       AND NOT row_security_active(c.oid)
       AND NOT EXISTS (SELECT 1
                         FROM pg_locks l
                         JOIN pg_database d ON d.oid = l.database
                        WHERE l.locktype = 'relation'
                          AND l.relation = c.oid
                          AND l.mode = 'AccessExclusiveLock'
                          AND d.datname = current_database())
)
SELECT nspname::text AS schema,
       relname::text AS name,
       relpages AS pages,
       columns
  FROM readable
 WHERE pg_relation_size(oid) > 0
 ORDER BY pg_relation_size(oid) DESC, oid
 LIMIT $1
