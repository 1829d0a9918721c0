-- Each B-tree index, with all rows of its table looked up in it. An index that is damaged is an error.
SELECT count(*) AS indexes
  FROM (SELECT {schema}.bt_index_check(i.indexrelid, true)
          FROM pg_index i
          JOIN pg_class x ON x.oid = i.indexrelid
         WHERE x.relkind = 'i'
           AND x.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
           AND x.relpersistence = 'p'
           AND i.indisvalid
           AND i.indisready) AS checked
