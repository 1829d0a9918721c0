-- $1: names as SQL would have them. Which relation each is; null if none.
SELECT name, to_regclass(name)::oid AS oid FROM unnest($1::text[]) AS g (name)
