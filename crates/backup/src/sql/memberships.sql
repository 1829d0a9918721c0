-- Memberships by which a role has the rights of another one without SET ROLE. Those of predefined roles are there in each server.
SELECT DISTINCT g.rolname::text AS granted, m.rolname::text AS member
  FROM pg_auth_members a
  JOIN pg_roles g ON g.oid = a.roleid
  JOIN pg_roles m ON m.oid = a.member
 WHERE m.rolname !~ '^pg_'
   AND coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit)
 ORDER BY 1, 2
