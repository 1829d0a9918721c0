-- $1: name of the lock. Takes it for this session, or tells which server process holds it.
-- The lock's first key is "pgri" in ASCII.
SELECT CASE WHEN pg_try_advisory_lock(1885827689, hashtext($1)) THEN NULL
            ELSE coalesce((SELECT pid FROM pg_locks
                            WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
                              AND classid = 1885827689 AND objid = (hashtext($1)::bigint & 4294967295)::oid
                              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                            LIMIT 1), 0)
       END AS holder
