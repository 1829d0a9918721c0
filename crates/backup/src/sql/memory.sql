SELECT pg_size_bytes(current_setting('shared_buffers')) AS shared_buffers,
       pg_size_bytes(current_setting('maintenance_work_mem')) AS maintenance_work_mem,
       pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size
