-- $1: qualified table name; $2: constraint name.
SELECT EXISTS (SELECT FROM pg_constraint WHERE conrelid = to_regclass($1) AND conname = $2)
