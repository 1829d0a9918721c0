//! Rows that are too long for a page: values that were compressed or moved to the TOAST table are those that the server
//! would have stored.

use pgserver::Spec;
use testkit::{Need, RELEASES, Server, assert_says, block_on, require};

use crate::support::{Filling, Tables};

/// Each way of storing a long row: `text` compresses, `random` does not, `blank` does very well.
const TABLES: &str = "
    CREATE TABLE words (id bigint PRIMARY KEY, body text NOT NULL, note text);
    CREATE TABLE noise (id bigint PRIMARY KEY, body text NOT NULL, data bytea);
    CREATE TABLE blanks (id int, body text, filler char(5000));
    CREATE TABLE outside (id int, body text, more text, b bool, least smallint);
    ALTER TABLE outside ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE mainly (id int, body text, more text, rest text);
    ALTER TABLE mainly ALTER body SET STORAGE MAIN, ALTER more SET STORAGE MAIN;
    CREATE TABLE medium (id int, a text, b text, c text, d text, e text, f text, g text, h text, i text, j text);
    CREATE TABLE targeted (id int, a text, b text, c text) WITH (toast_tuple_target = 200, fillfactor = 40);
    CREATE TABLE wide_target (id int, a text, b text) WITH (toast_tuple_target = 8160);
    CREATE TABLE documents (id int PRIMARY KEY, doc jsonb NOT NULL, tags text[], raw json, t tsvector);
    CREATE TABLE rarely (id int PRIMARY KEY, body text NOT NULL);
    CREATE UNLOGGED TABLE passing (id int, body text);
    CREATE TABLE parts (id int NOT NULL, body text) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (700) WITH (toast_tuple_target = 500);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (700) TO (MAXVALUE);
    CREATE TABLE made (id int, body text, lowered text GENERATED ALWAYS AS (lower(body)) STORED);
    CREATE INDEX ON words (length(body)); CREATE INDEX ON words (md5(body)); CREATE INDEX ON words USING hash (body);
    CREATE INDEX ON made (lowered);
    CREATE INDEX ON documents USING gin (doc);";

const FILLINGS: &[(&str, u64, &[&str])] = &[
    ("words", 2_000, &["body=text(10,9000)", "note=nulls(0.4,text(0,300))"]),
    ("noise", 1_500, &["body=random(1,8000)", "data=nulls(0.2,random(1,5000))"]),
    ("blanks", 1_500, &["id=serial", "body=blank(1,40000)", "filler=text(1,5000)"]),
    ("outside", 1_500, &["id=serial", "body=text(1,7000)", "more=text(1,4000)"]),
    ("mainly", 1_500, &["id=serial", "body=random(1,6000)", "more=text(1,9000)", "rest=text(1,3000)"]),
    (
        "medium",
        2_000,
        &[
            "id=serial",
            "a=text(300,500)",
            "b=random(200,400)",
            "c=text(1,1000)",
            "d=random(10,30)",
            "e=blank(20,700)",
            "f=text(200)",
            "g=random(200)",
            "h=text(90,150)",
            "i=nulls(0.5,random(100,900))",
            "j=text(5)",
        ],
    ),
    ("targeted", 3_000, &["id=serial", "a=text(10,900)", "b=random(1,1500)", "c=text(1,3000)"]),
    ("wide_target", 2_000, &["id=serial", "a=random(1,3900)", "b=text(1,6000)"]),
    // The index compresses its keys too.
    ("made", 1_000, &["id=serial", "body=blank(1,20000)"]),
    ("rarely", 50_000, &["body=text(1,2100)"]),
    ("passing", 1_000, &["id=serial", "body=random(3000)"]),
    ("parts", 1_400, &["id=serial", "body=text(1,4000)"]),
];

/// Values that the server stores are the same bytes, in the rows and in the TOAST table, in heaps of the same size.
#[test]
fn long_rows_are_stored_as_the_server_stores_them() {
    for major in RELEASES {
        block_on(async {
            let tables = Tables::new(major, TABLES).await;
            let [doc, raw] = ["doc", "raw"].map(|column| -> &'static str {
                let numbers: Vec<String> =
                    (0..1500).map(|number| (number * 7919 % 10_007).to_string()).collect();
                let numbers = numbers.join(",");
                Box::leak(
                    format!("{column}=list('[{numbers}]','{{\"n\":[{numbers}]}}','[]')").into_boxed_str(),
                )
            });
            let documents: &'static [&'static str] = Box::leak(Box::new([doc, raw]));
            for (table, rows, columns) in FILLINGS.iter().chain(&[("documents", 500, documents)]) {
                tables.fill_directly(&Filling { columns, ..Filling::of(table, *rows) }).await;
                for leaf in tables.leaves(table).await {
                    same_as_copied(&tables, &leaf, true).await;
                }
            }
            // Whoever comes next gets numbers of his own.
            tables.execute("INSERT INTO noise SELECT id + 1000000, body, data FROM noise").await;
            tables.execute("UPDATE words SET body = body || 'x'; DELETE FROM words WHERE id % 3 = 0").await;
            tables.execute("VACUUM words").await;
            let parts =
                "SELECT count(*) FROM noise a JOIN noise b ON a.id + 1000000 = b.id AND a.body = b.body";
            assert_eq!(tables.value::<i64>(parts).await, 1_500);
            let sound = "SELECT bt_index_check(indexrelid, true) FROM pg_index
                          WHERE indrelid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'noise')";
            tables.execute(sound).await;
        });
    }
}

/// With lz4, the server reads the same values as it writes itself, and their sizes are about the same: PostgreSQL calls
/// another implementation.
#[test]
fn values_are_compressed_with_lz4() {
    if !require(Need::Installation) {
        return;
    }
    let pg_bin = Some(pgserver::Binaries::system().remove(0).dir().to_owned());
    let server: &'static Server =
        Box::leak(Box::new(Server::lasting(Spec { version: None, pg_bin, ..testkit::spec(18, &[]) })));
    block_on(async {
        let script = "SET default_toast_compression = lz4; DO $$ BEGIN EXECUTE format(
                 'ALTER DATABASE %I SET default_toast_compression = lz4', current_database()); END $$;
             CREATE TABLE words (id bigint PRIMARY KEY, body text NOT NULL, note text);
             CREATE TABLE noise (id bigint PRIMARY KEY, body text NOT NULL, data bytea COMPRESSION pglz);
             CREATE TABLE mainly (id int, body text COMPRESSION lz4, more text, rest text COMPRESSION pglz);
             ALTER TABLE mainly ALTER body SET STORAGE MAIN, ALTER more SET STORAGE MAIN;
             CREATE TABLE medium (id int, a text, b text, c text, d text, e text, f text, g text, h text, i text, j text);
             CREATE TABLE targeted (id int, a text, b text, c text) WITH (toast_tuple_target = 200, fillfactor = 40);";
        let tables = Tables::on(server, script).await;
        let names = ["words", "noise", "mainly", "medium", "targeted"];
        for (table, rows, columns) in FILLINGS.iter().filter(|(table, ..)| names.contains(table)) {
            tables.fill_directly(&Filling { columns, ..Filling::of(table, *rows) }).await;
            same_as_copied(&tables, table, false).await;
        }
        let compressed = "SELECT count(*) FILTER (WHERE pg_column_compression(body) = 'lz4') FROM words";
        assert!(tables.value::<i64>(compressed).await > 1000);
    });
}

/// The same rows, which the server writes itself; whether their sizes are the same to the byte.
async fn same_as_copied(tables: &Tables, table: &str, to_the_byte: bool) {
    let file = std::env::temp_dir().join(format!("pgrig-toast-{}-{table}", tables.database.major));
    let data = tables.server.data_dir();
    let file = data.join(file.file_name().unwrap());
    let options: Option<String> = tables
        .value(&format!(
            "SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = '{table}'::regclass"
        ))
        .await;
    let with = options.map(|options| format!("WITH ({options})")).unwrap_or_default();
    tables
        .execute(&format!(
            "COPY {table} TO '{file}';
             BEGIN;
             DROP TABLE IF EXISTS copied;
             CREATE TABLE copied (LIKE {table} INCLUDING ALL) {with};
             COPY copied FROM '{file}' (FREEZE);
             COMMIT",
            file = file.display()
        ))
        .await;
    tables.execute("VACUUM (FREEZE) copied").await;
    std::fs::remove_file(&file).unwrap();
    let of_rows = ["t::text", "ROW(pg_column_size(t.*), ctid)"];
    for of in &of_rows[..if to_the_byte { 2 } else { 1 }] {
        let sums = ["copied", table]
            .map(|name| format!("(SELECT sum(hashtext(({of})::text)::bigint) FROM {name} t)"));
        let same = format!("SELECT {} = {}", sums[0], sums[1]);
        assert!(tables.value::<bool>(&same).await, "{table}: {of}");
    }
    let columns: Vec<String> = tables
        .value(&format!(
            "SELECT array_agg(quote_ident(attname)) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0"
        ))
        .await;
    for column in columns {
        let sums =
            ["copied", table].map(|name| format!("(SELECT sum(pg_column_size({column})) FROM {name})"));
        let least = if to_the_byte { 1.0 } else { 0.98 };
        let same = format!(
            "SELECT coalesce(least(a, b) >= {least} * greatest(a, b), true), concat_ws(' ', a, b) FROM (SELECT {} AS a, {} AS b) s",
            sums[0], sums[1]
        );
        let row = tables.connection.client.query_one(&same, &[]).await.unwrap();
        assert!(row.get::<_, bool>(0), "{table}.{column}: {}", row.get::<_, String>(1));
    }
    let mut toast = Vec::new();
    let mut sizes = Vec::new();
    for name in ["copied", table] {
        let toasted =
            format!("SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = '{name}'::regclass");
        let toasted: String = tables.value(&toasted).await;
        toast.push(
            tables
                .value::<String>(&format!(
                    "SELECT concat_ws(' ', count(*), sum(hashtext(encode(chunk_data, 'hex'))::bigint), sum(chunk_seq),
                            count(DISTINCT chunk_id), sum(((ctid::text::point)[1] * chunk_seq)::bigint)) FROM {toasted}"
                ))
                .await,
        );
        sizes.push([
            tables.value::<i64>(&format!("SELECT pg_relation_size('{name}')")).await,
            tables.value::<i64>(&format!("SELECT pg_relation_size('{toasted}')")).await,
            tables.value::<i64>(&format!("SELECT pg_indexes_size('{toasted}')")).await,
        ]);
    }
    assert!(toast[0] == toast[1] || !to_the_byte, "{table}: chunks: {toast:?}");
    for (copied, ours) in sizes[0].iter().zip(sizes[1]) {
        // COPY may extend a heap by some pages more than it needs.
        let most = (copied / 50).max(8 * 8192);
        assert!((copied - ours).abs() <= most, "{table}: {sizes:?}");
    }
}

#[test]
fn what_the_server_would_store_otherwise_goes_by_copy() {
    block_on(async {
        let script = "CREATE TABLE plain (id int, body text); ALTER TABLE plain ALTER body SET STORAGE PLAIN;
                      CREATE TABLE long (id int, body text)";
        let tables = Tables::new(18, script).await;
        let plain = Filling { columns: &["body=text(1,4000)"], ..Filling::of("plain", 100) };
        assert_says(&tables.reason(&plain).await, &["STORAGE PLAIN"]);
        // A server that was built with lz4 may have made the table; this one was not.
        tables.execute("UPDATE pg_attribute SET attcompression = 'l' WHERE attname = 'body' AND attrelid = 'long'::regclass").await;
        let long = Filling { columns: &["body=text(1,4000)"], ..Filling::of("long", 100) };
        assert_says(
            &tables.reason(&long).await,
            &["column body uses a compression that this PostgreSQL lacks"],
        );
        // Short rows are not compressed.
        tables.fill_directly(&Filling { columns: &["body=text(1,1000)"], ..Filling::of("long", 100) }).await;
    });
}
