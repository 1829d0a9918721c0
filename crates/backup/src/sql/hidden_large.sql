-- Large objects that the role may not read, though pg_dump dumps all of them.
SELECT count(*) AS objects
  FROM pg_largeobject_metadata m
 WHERE NOT pg_has_role(m.lomowner, 'USAGE')
   AND current_setting('lo_compat_privileges') = 'off'
   AND NOT EXISTS (SELECT FROM aclexplode(m.lomacl) AS a
                    WHERE a.privilege_type = 'SELECT'
                      AND CASE WHEN a.grantee = 0 THEN true ELSE pg_has_role(a.grantee, 'USAGE') END)
