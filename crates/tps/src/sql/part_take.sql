-- $1: the run's name; $2: a number that stands for the part. False if another session holds the lock.
SELECT pg_try_advisory_lock(hashtext($1), $2)
