-- What a plan needs besides: bytes that WAL may take, bytes of one copy of pg_settings as table rows, and
-- connections.
SELECT pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size,
       -- Of what pg_column_size counts, the column seq and the line pointer are missing; what does not fill
       -- a block is about 3 %.
       (SELECT sum(pg_column_size(s) + 12) * 103 / 100 FROM pg_settings s)::bigint AS copy_bytes,
       (SELECT count(*) FROM pg_settings) AS copy_rows
