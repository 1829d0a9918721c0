-- $1: the fill's name; $2: a number that stands for a part and what it tells. False if another session holds the lock.
SELECT pg_try_advisory_lock(hashtext($1), $2)
