SELECT version() AS version,
       current_database()::text AS database,
       current_user::text AS role,
       current_setting('transaction_read_only')::bool AS read_only,
       (SELECT source = 'client' FROM pg_settings
         WHERE name = 'default_transaction_read_only') AS read_only_by_client,
       current_setting('server_version_num')::int AS version_num,
       current_setting('block_size')::int AS block_size,
       pg_is_in_recovery() AS in_recovery,
       current_setting('wal_level') AS wal_level,
       pg_size_bytes(current_setting('maintenance_work_mem')) AS maintenance_work_mem,
       pg_size_bytes(current_setting('shared_buffers')) AS shared_buffers,
       current_setting('max_connections')::int AS max_connections,
       -- Visible to superusers and members of pg_read_all_settings only.
       (SELECT setting FROM pg_settings WHERE name = 'data_directory') AS data_directory
