-- $1: a tablespace's name.
SELECT EXISTS (SELECT FROM pg_tablespace WHERE spcname = $1) AS exists,
       coalesce((SELECT has_tablespace_privilege(oid, 'CREATE') FROM pg_tablespace WHERE spcname = $1),
                false) AS allowed,
       quote_ident(current_user) AS role
