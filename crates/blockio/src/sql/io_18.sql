-- What all processes of the server have done to relations through shared_buffers, bytes; PostgreSQL 18.
SELECT coalesce(sum(read_bytes), 0)::bigint AS reads,
       coalesce(sum(write_bytes), 0)::bigint AS writes,
       coalesce(sum(extend_bytes), 0)::bigint AS extends,
       coalesce(sum(fsyncs), 0)::bigint AS fsyncs
  FROM pg_stat_io
 WHERE object = 'relation'
