-- $1: application_name of the run's clients; $2: the end of that of all parts of the run, or NULL. What the server is at, in one row. pg_stat_activity without its joins.
SELECT extract(epoch FROM clock_timestamp())::float8 AS clock,
       checkpoint.checkpoint_lsn::text AS last_checkpoint,
       -- A checkpoint's time is that of its beginning (CreateCheckPoint, xlog.c); a standby has its primary's.
       CASE WHEN NOT pg_is_in_recovery()
            THEN extract(epoch FROM clock_timestamp() - checkpoint.checkpoint_time)::float8 END AS last_checkpoint_ago,
       CASE WHEN NOT pg_is_in_recovery()
            THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END AS wal,
       coalesce(activity.checkpointing, false) AS checkpointing,
       activity.others AS others
  FROM pg_control_checkpoint() AS checkpoint,
       (SELECT bool_or(wait_event IS DISTINCT FROM 'CheckpointerMain')
                 FILTER (WHERE backend_type = 'checkpointer') AS checkpointing,
               count(*) FILTER (WHERE backend_type = 'client backend' AND state = 'active'
                                  AND application_name <> $1 AND pid <> pg_backend_pid()
                                  AND application_name NOT IN ('pgrig watch', 'pgrig part')
                                  AND ($2::text IS NULL OR right(application_name, length($2)) <> $2)) AS others
          FROM pg_stat_get_activity(NULL)) AS activity
