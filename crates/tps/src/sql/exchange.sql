-- $1: the name under which parts exchange documents. The channel of NOTIFY, and whether the server is a standby, which has none.
SELECT 'pgrig_' || (hashtext($1)::bigint & 4294967295) AS channel, pg_is_in_recovery() AS is_standby
