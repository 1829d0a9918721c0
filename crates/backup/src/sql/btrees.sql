-- All B-tree indexes that can be used.
SELECT x.oid, x.oid::regclass::text AS name
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
 WHERE x.relkind = 'i'
   AND x.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
   AND x.relpersistence = 'p'
   AND i.indisvalid
   AND i.indisready
 ORDER BY 1
