-- $1: application_name of the run's clients. What each waits for now, and how many do.
SELECT coalesce(wait_event_type || ':' || wait_event, 'running on CPU') AS event, count(*) AS sessions
  FROM pg_stat_get_activity(NULL)
 WHERE application_name = $1 AND backend_type = 'client backend' AND pid <> pg_backend_pid()
 GROUP BY 1
