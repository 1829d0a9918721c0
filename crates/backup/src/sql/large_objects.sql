-- Number of large objects, and whether the role may read their pages: by default, only superusers may.
SELECT count(*) AS objects,
       has_table_privilege('pg_catalog.pg_largeobject', 'SELECT') AS readable
  FROM pg_largeobject_metadata
