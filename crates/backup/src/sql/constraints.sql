-- Valid constraints and indexes, by table and name. The foreign keys that partitions have from their table are not dumped: each restore
-- names them anew.
SELECT format('constraint %I.%I.%I', n.nspname, c.relname, k.conname) AS name,
       NOT (k.contype = 'f' AND k.conparentid <> 0) AS dumped
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE k.convalidated
   AND k.contype IN ('p', 'u', 'f', 'c', 'x')
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
UNION ALL
SELECT format('index %I.%I', n.nspname, x.relname), true
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
  JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = x.relnamespace
 WHERE i.indisvalid
   AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_'
   AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT FROM pg_depend d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
