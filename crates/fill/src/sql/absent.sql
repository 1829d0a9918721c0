-- $1: roles, $2: settings, $3: extensions, $4: methods of compression. Those of them that the server does not have; and roles that objects
-- cannot be given to. Before PostgreSQL 14, columns have no method.
SELECT ARRAY(SELECT name FROM unnest($1::text[]) name WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)) AS roles,
       ARRAY(SELECT name FROM unnest($1::text[]) name JOIN pg_roles r ON r.rolname = name
              WHERE NOT pg_has_role(r.oid, 'MEMBER')) AS strangers,
       ARRAY(SELECT name FROM unnest($2::text[]) unnest (name)
              WHERE NOT EXISTS (SELECT FROM pg_settings s WHERE lower(s.name) = lower(unnest.name))) AS settings,
       ARRAY(SELECT name FROM unnest($3::text[]) unnest (name)
              WHERE NOT EXISTS (SELECT FROM pg_available_extensions e WHERE e.name = unnest.name)) AS extensions,
       ARRAY(SELECT method FROM unnest($4::text[]) method
              WHERE NOT EXISTS (SELECT FROM pg_settings s WHERE s.name = 'default_toast_compression'
                                                            AND (method = 'default' OR method = ANY (s.enumvals)))) AS compressions
