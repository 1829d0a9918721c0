-- What all processes of the server have done to relations through shared_buffers, bytes; PostgreSQL 16 and 17.
SELECT coalesce(sum(reads * op_bytes), 0)::bigint AS reads,
       coalesce(sum(writes * op_bytes), 0)::bigint AS writes,
       coalesce(sum(extends * op_bytes), 0)::bigint AS extends,
       coalesce(sum(fsyncs), 0)::bigint AS fsyncs
  FROM pg_stat_io
 WHERE object = 'relation'
