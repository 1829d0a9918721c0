-- What pg_control says of the formats of files; what new tables are; and a relation whose first page is on disk:
-- the other catalogs of a database just created (15 and later: by way of WAL) are there with the next checkpoint.
SELECT max_data_alignment,
       blocks_per_segment,
       data_page_checksum_version,
       current_setting('server_encoding') AS encoding,
       current_setting('default_table_access_method') AS access_method,
       pg_relation_filepath('pg_catalog.pg_database') AS a_catalog
  FROM pg_control_init()
