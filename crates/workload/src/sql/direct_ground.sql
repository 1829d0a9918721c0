-- What pg_control says of the formats of files, and a relation that has a page; what new tables are.
SELECT max_data_alignment,
       blocks_per_segment,
       data_page_checksum_version,
       current_setting('server_encoding') AS encoding,
       current_setting('default_table_access_method') AS access_method,
       pg_relation_filepath('pg_catalog.pg_class') AS a_catalog
  FROM pg_control_init()
