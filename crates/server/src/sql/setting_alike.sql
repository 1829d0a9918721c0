-- A setting whose name differs in its case, underscores or hyphens only.
SELECT min(name) AS alike
  FROM pg_settings
 WHERE replace(lower(name), '_', '') = translate(lower($1), '_- ', '')
