-- Tables with rows of their own, each with a column that an UPDATE may set to its own value.
SELECT n.nspname::text AS schema,
       c.relname::text AS name,
       (SELECT a.attname::text
          FROM pg_attribute a
         WHERE a.attrelid = c.oid
           AND a.attnum > 0
           AND NOT a.attisdropped
           AND a.attgenerated = ''
           AND a.attidentity <> 'a'
         ORDER BY a.attnum DESC
         LIMIT 1) AS column
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r'
   AND c.relpersistence = 'p'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND EXISTS (SELECT FROM pg_attribute a
                WHERE a.attrelid = c.oid
                  AND a.attnum > 0
                  AND NOT a.attisdropped
                  AND a.attgenerated = ''
                  AND a.attidentity <> 'a')
 ORDER BY 1, 2
