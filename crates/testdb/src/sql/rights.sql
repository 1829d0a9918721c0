-- Whether this role may create databases (documentation, CREATE DATABASE).
SELECT current_user::text AS role, rolsuper OR rolcreatedb AS may_create FROM pg_roles WHERE rolname = current_user
