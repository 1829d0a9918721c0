-- $1: process id of the session that may be waiting for a lock. Who holds it, as a phrase; no row if nobody.
SELECT format('process %s (%s%s, %s)', holder.pid, holder.usename,
              coalesce(' from ' || nullif(holder.application_name, ''), ''),
              coalesce(holder.state, 'state unknown')) AS holder
  FROM unnest(pg_blocking_pids($1)) AS blocking(pid)
  JOIN pg_stat_activity holder ON holder.pid = blocking.pid
 LIMIT 1
