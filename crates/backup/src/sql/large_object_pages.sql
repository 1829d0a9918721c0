-- A sum of hashes of the pages and lengths of all large objects: the order does not matter. Missing bytes of an object are zeros, which
-- a restore of a dump writes (inv_api.c: inv_read, inv_write). So each page is filled up with zeros, pages of zeros do not count, and
-- an object is as long as the end of its last page.
WITH zeros AS MATERIALIZED (
    SELECT b.bytes, decode(repeat('00', b.bytes), 'hex') AS page
      FROM (SELECT current_setting('block_size')::int / 4 AS bytes) AS b
), pages AS (
    SELECT p.loid,
           p.pageno,
           p.pageno::bigint * z.bytes + length(p.data) AS ends,
           CASE WHEN length(p.data) < z.bytes THEN p.data || substring(z.page FROM 1 FOR z.bytes - length(p.data))
                ELSE p.data
           END AS data,
           z.page AS zeros
      FROM pg_largeobject p
     CROSS JOIN zeros z
), objects AS (
    SELECT loid,
           max(ends) AS ends,
           coalesce(sum(hashtextextended(concat(loid, ':', pageno, ':', md5(data)) COLLATE "C", 0)::numeric)
                    FILTER (WHERE data <> zeros), 0) AS hashes
      FROM pages
     GROUP BY loid
)
SELECT coalesce(sum(hashes + hashtextextended(concat(loid, '=', ends) COLLATE "C", 0)::numeric), 0)::text AS hash
  FROM objects
 WHERE ends > 0
