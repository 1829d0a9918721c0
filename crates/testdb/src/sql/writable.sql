-- Whether tables can be changed at all.
SELECT pg_is_in_recovery() AS in_recovery,
       current_setting('transaction_read_only')::bool AS read_only,
       current_setting('server_version_num')::int AS version_num
