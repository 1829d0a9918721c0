-- sourcefile is shown to superusers and members of pg_read_all_settings only.
SELECT s.name,
       s.context,
       current_setting(s.name) AS shown,
       s.setting,
       s.source,
       s.pending_restart,
       coalesce(s.sourcefile LIKE '%/postgresql.auto.conf', false) AS is_altered
  FROM pg_settings s
 WHERE lower(s.name) = lower($1)
