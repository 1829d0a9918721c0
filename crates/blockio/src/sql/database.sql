-- What all sessions in this database have found in shared_buffers and read, blocks, and how long they waited,
-- ms (0 without track_io_timing).
SELECT blks_hit AS hits, blks_read AS reads, blk_read_time AS read_time, blk_write_time AS write_time
  FROM pg_stat_database
 WHERE datname = current_database()
