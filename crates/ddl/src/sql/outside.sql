-- Values of a partition key: $1 and $2 have the lower and upper bounds of the partitions before the migration, $3 and $4 those of all partitions
-- (NULL: MINVALUE, MAXVALUE). "low" and "high" are the ends of the longest stretch that partitions before the migration cover without a
-- gap; "within" is the number of values from "low" to "high", at most 10000; "outside" are values that lie in no partition. Only an unqualified
-- unnest takes several arrays (parse_clause.c: transformRangeFunction). TYPE, STEP, TAIL and SPAN are replaced: the type that counts, the
-- distance of the values outside, that of "high" from the bound, and the length of the stretch as a number.
WITH old AS (
    SELECT low::TYPE AS low, high::TYPE AS high
      FROM unnest($1::text[], $2::text[]) AS o (low, high)
     WHERE low IS NOT NULL AND high IS NOT NULL
), marked AS (
    SELECT low, high,
           pg_catalog.sum(CASE WHEN low = previous THEN 0 ELSE 1 END) OVER (ORDER BY low) AS stretch
      FROM (SELECT low, high, pg_catalog.lag(high) OVER (ORDER BY low) AS previous FROM old) p
), longest AS (
    SELECT pg_catalog.min(low) AS low, pg_catalog.max(high) AS high
      FROM marked GROUP BY stretch ORDER BY pg_catalog.max(high) - pg_catalog.min(low) DESC LIMIT 1
), ends AS (
    SELECT pg_catalog.min(low::TYPE) AS bottom, pg_catalog.max(high::TYPE) AS top,
           pg_catalog.bool_or(low IS NULL) AS is_open_below, pg_catalog.bool_or(high IS NULL) AS is_open_above
      FROM unnest($3::text[], $4::text[]) AS a (low, high)
)
SELECT longest.low::text AS low, (longest.high - TAIL)::text AS high,
       pg_catalog.floor(LEAST(10000, GREATEST(1, SPAN)))::int AS within,
       ARRAY(SELECT (CASE WHEN is_open_above THEN bottom - n * STEP ELSE top + n * STEP END)::text
               FROM pg_catalog.generate_series(1, 20) n) AS outside
  FROM longest, ends
 WHERE longest.high - TAIL >= longest.low AND NOT (is_open_above AND is_open_below)
