SELECT current_database()::text AS database,
       pg_encoding_to_char(d.encoding)::text AS encoding,
       d.datcollate::text AS collate,
       d.datctype::text AS ctype,
       CASE to_jsonb(d) ->> 'datlocprovider' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' END AS provider,
       coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') AS locale,
       current_setting('lc_monetary') AS monetary,
       pg_database_size(d.oid) AS bytes,
       (SELECT coalesce(sum(CASE WHEN has_database_privilege(o.oid, 'CONNECT') THEN pg_database_size(o.oid) ELSE 0 END), 0)::bigint
          FROM pg_database o) AS server_bytes,
       pg_is_in_recovery() AS in_recovery,
       current_setting('max_wal_senders')::int AS senders,
       current_setting('wal_level') AS wal_level,
       coalesce(current_setting('summarize_wal', true) = 'on', false) AS summarizes_wal,
       current_setting('max_prepared_transactions') AS prepared,
       current_user::text AS role,
       (SELECT r.rolreplication OR r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) AS may_replicate,
       (SELECT rolname::text FROM pg_roles WHERE rolsuper AND rolcanlogin ORDER BY oid LIMIT 1) AS superuser,
       ARRAY(SELECT rolname::text FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1) AS roles,
       ARRAY(SELECT r.rolname::text
               FROM pg_roles r
              WHERE r.rolsuper
                 OR r.oid IN (SELECT evtowner FROM pg_event_trigger UNION ALL SELECT fdwowner FROM pg_foreign_data_wrapper)) AS superusers,
       ARRAY(SELECT extname::text FROM pg_extension ORDER BY 1) AS extensions
  FROM pg_database d
 WHERE d.datname = current_database()
