SELECT count(*) AS indexes
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
 WHERE x.relkind = 'i'
   AND x.relam <> (SELECT oid FROM pg_am WHERE amname = 'btree')
   AND x.relpersistence = 'p'
