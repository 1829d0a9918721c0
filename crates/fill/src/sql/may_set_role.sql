-- Whether the role may set session_replication_role.
SELECT r.rolsuper OR has_parameter_privilege('session_replication_role', 'SET') AS may_set
  FROM pg_roles r
 WHERE r.rolname = current_user
