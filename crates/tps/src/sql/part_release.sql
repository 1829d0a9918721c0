-- $1: the run's name; $2: the number of a lock that this session holds.
SELECT pg_advisory_unlock(hashtext($1), $2)
