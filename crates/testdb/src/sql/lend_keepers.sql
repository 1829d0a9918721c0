-- What keepers call their sessions, as far as they are there.
SELECT DISTINCT application_name::text AS name FROM pg_stat_activity WHERE starts_with(application_name, 'pgrig testdb ')
