-- What there is of schema benchmark, and what this role may do.
SELECT to_regnamespace('benchmark') IS NOT NULL AS has_schema,
       to_regclass('benchmark.outcome') IS NOT NULL AS has_table,
       ARRAY(SELECT name FROM unnest(ARRAY['compare_outcome', 'compare_outcome_threshold']) AS name
              WHERE to_regclass('benchmark.' || name) IS NULL) AS missing_views,
       CASE WHEN to_regnamespace('benchmark') IS NULL THEN has_database_privilege(current_database(), 'CREATE')
            WHEN to_regclass('benchmark.outcome') IS NULL THEN has_schema_privilege('benchmark', 'CREATE')
            ELSE has_table_privilege('benchmark.outcome', 'INSERT') END AS may,
       quote_ident(current_user) AS role,
       current_database()::text AS database
