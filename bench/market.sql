-- A hard original: rows per parent by Zipf's law, columns that depend on each other, NULLs that come together.
SELECT setseed(0.42);
CREATE TABLE clients (id int PRIMARY KEY, email text NOT NULL, country text NOT NULL, city text NOT NULL, segment int NOT NULL,
    phone text, mobile text, since date NOT NULL, income numeric(12,2), spent numeric(12,2));
CREATE TABLE orders (id bigint PRIMARY KEY, client_id int NOT NULL REFERENCES clients, state text NOT NULL, kind text NOT NULL,
    placed timestamptz NOT NULL, sent timestamptz, back timestamptz, price numeric(10,2) NOT NULL, weight float8 NOT NULL, note text);
CREATE TABLE tickets (id bigint PRIMARY KEY, client_id int NOT NULL REFERENCES clients, topic text NOT NULL, level int NOT NULL);
-- Each city is in one country; income and spending are correlated; a phone without a mobile is rare.
INSERT INTO clients
SELECT i, 'client' || i || '@mail.invalid', 'Land-' || city % 17, 'Stadt-' || city, city % 17 % 5,
       CASE WHEN reach < 0.7 THEN '+49 30 ' || floor(random() * 1e7)::int END,
       CASE WHEN reach < 0.6 OR reach > 0.9 THEN '+49 151 ' || floor(random() * 1e7)::int END,
       date '2015-01-01' + (i / 20), round(exp(6 + 3 * size)::numeric, 2), round(exp(4 + 3 * size + random())::numeric, 2)
  FROM (SELECT i, floor(200 * random() ^ 2)::int AS city, random() AS reach, (random() + random() + random()) / 3 AS size
          FROM generate_series(1, 50000) i) x;
-- The client at place r of a random order has orders in proportion to 1 / r: a tenth of all clients has none.
CREATE TEMPORARY TABLE places AS SELECT id, row_number() OVER (ORDER BY random()) AS place FROM clients;
CREATE TEMPORARY TABLE wanted AS SELECT id, round(45000.0 / place)::int AS n FROM places WHERE place <= 45000;
-- PostgreSQL evaluates random() once for the columns and the order, so all columns of a row, and its place, come from one number.
INSERT INTO orders
SELECT row_number() OVER (), id, state, CASE WHEN random() < 0.93 THEN 'Kind-' || state ELSE 'other kind' END, placed,
       CASE WHEN state <> 'opened' THEN placed + random() * interval '3 days' END,
       CASE WHEN state = 'returned' THEN placed + interval '4 days' + random() * interval '20 days' END,
       round((5 + exp(7 * size) + 3 * random())::numeric, 2), 30 * size + 3 * random(),
       CASE WHEN random() < 0.2 THEN repeat('lorem ipsum ', 1 + floor(8 * random() ^ 2)::int) END
  FROM (SELECT id, (array['opened', 'sent out', 'returned'])[1 + floor(3 * random() ^ 1.5)::int] AS state,
               timestamptz '2020-01-01' + random() * interval '1500 days' AS placed, (random() + random()) / 2 AS size
          FROM wanted, generate_series(1, n) ORDER BY random()) x;
INSERT INTO tickets
SELECT row_number() OVER (), id, 'Topic-' || level, level
  FROM (SELECT id, floor(6 * random() ^ 2)::int AS level FROM places, generate_series(1, (300 / place)::int + (random() < 0.3)::int)) x;
DROP TABLE places, wanted;
VACUUM ANALYZE;
