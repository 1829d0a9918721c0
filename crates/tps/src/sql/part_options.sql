-- $1: the run's name; $2: the options that all parts share; $3: the bit that marks a digest. All parts with the same options share the lock.
SELECT pg_try_advisory_lock_shared(hashtext($1), $3 | (hashtext($2) & 16777215))
