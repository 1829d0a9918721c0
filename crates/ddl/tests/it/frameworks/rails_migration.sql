BEGIN;
ALTER TABLE "articles" ADD "slug" character varying;
ALTER TABLE "articles" ALTER COLUMN "title" SET NOT NULL;
ALTER TABLE "articles" ADD CONSTRAINT chk_rails_1c1e9b6a2f CHECK (state >= 0) NOT VALID;
INSERT INTO "schema_migrations" ("version") VALUES ('20260203100000') RETURNING "version";
COMMIT;
ALTER TABLE articles VALIDATE CONSTRAINT chk_rails_1c1e9b6a2f;
CREATE UNIQUE INDEX CONCURRENTLY "index_articles_on_slug" ON "articles" ("slug");
