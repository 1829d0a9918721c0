//! A server that takes tables from rowgen.

use bytes::Bytes;
use connect::Connection;
use futures_util::SinkExt;
use rowgen::{Column, Constants, Encoder, Format, Kind, Precision, Table, Values};
use testkit::{block_on, quoted, shared};
use tokio_postgres::types::FromSqlOwned;

pub(crate) struct Server {
    pub(crate) connection: Connection,
    pub(crate) version: u16,
}

/// Runs a test in a database of a server of this version.
pub(crate) fn on(version: u16, test: impl AsyncFnOnce(Server)) {
    block_on(async {
        let connection = shared(version).database().await.target.connect().await.unwrap();
        let server = Server { connection, version };
        server.sql(TYPES).await;
        test(server).await;
    });
}

const TYPES: &str = r#"
    CREATE TYPE mood AS ENUM ('sad', E'it''s "\\\t odd, (very)', 'ok');
    CREATE TYPE pair AS (a int, b text, c numeric(6,2), d mood);
    CREATE TYPE floats AS RANGE (subtype = float8);
    CREATE TYPE words AS RANGE (subtype = text)"#;

impl Server {
    pub(crate) async fn sql(&self, statements: &str) {
        if let Err(error) = self.connection.client.batch_execute(statements).await {
            panic!("{statements}: {error:?}");
        }
    }

    pub(crate) async fn value<T: FromSqlOwned>(&self, query: &str) -> T {
        self.connection
            .client
            .query_one_scalar(query, &[])
            .await
            .unwrap_or_else(|error| panic!("{query}: {error:?}"))
    }

    /// Creates the table, each column with `suffix`, and loads all its rows.
    pub(crate) async fn load(&self, table: &Table, format: Format, suffix: &str) {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|column| format!("{} {}{suffix}", quoted(&column.name), column.kind.sql()))
            .collect();
        let name = quoted(&table.name);
        self.sql(&format!("CREATE TABLE {name} ({})", columns.join(", "))).await;
        let encoder = Encoder::new(table, format, Constants::Sent);
        let mut bytes = encoder.header().to_vec();
        encoder.encode(0..table.rows, &mut bytes);
        bytes.extend(encoder.trailer());
        let statement = format!("COPY {name} FROM STDIN (FORMAT {})", format.name());
        let sink = self.connection.client.copy_in::<_, Bytes>(&statement).await.unwrap();
        let mut sink = std::pin::pin!(sink);
        sink.send(Bytes::from(bytes)).await.unwrap();
        match sink.finish().await {
            Ok(rows) => assert_eq!(rows, table.rows),
            Err(error) => panic!("{name}, {format:?}: {error:?}"),
        }
    }

    /// Every kind that the server has, with the variants that matter.
    pub(crate) async fn kinds(&self) -> Vec<Kind> {
        let mut kinds = vec![
            Kind::Bool,
            Kind::Int2,
            Kind::Int4,
            Kind::Int8,
            Kind::Float4,
            Kind::Float8,
            Kind::Numeric(None),
            numeric(10, 2),
            numeric(3, 3),
            numeric(38, 20),
            Kind::Money,
            Kind::Text,
            Kind::Varchar(None),
            Kind::Varchar(Some(7)),
            Kind::Char(1),
            Kind::Char(150),
            Kind::Name,
            Kind::Bytea,
            Kind::Date,
            Kind::Time,
            Kind::TimeTz,
            Kind::Timestamp,
            Kind::TimestampTz,
            Kind::Interval,
            Kind::Uuid,
            Kind::Json,
            Kind::Jsonb,
            Kind::Inet,
            Kind::Cidr,
            Kind::Macaddr,
            Kind::Macaddr8,
            Kind::Bit(1),
            Kind::Bit(83),
            Kind::Varbit(None),
            Kind::Varbit(Some(10)),
            Kind::Point,
            Kind::Line,
            Kind::Lseg,
            Kind::Box,
            Kind::Path,
            Kind::Polygon,
            Kind::Circle,
            Kind::TsVector,
            Kind::TsQuery,
            Kind::Oid,
            Kind::PgLsn,
            mood(),
            Kind::Composite {
                name: "pair".into(),
                oid: 0,
                fields: vec![Kind::Int4, Kind::Text, numeric(6, 2), mood()],
            },
        ];
        let libxml =
            "SELECT EXISTS (SELECT FROM pg_config WHERE name = 'CONFIGURE' AND setting LIKE '%libxml%')";
        if self.value(libxml).await {
            kinds.push(Kind::Xml);
        }
        let scalars = kinds.clone();
        kinds.extend(scalars.into_iter().map(|kind| Kind::Array(Box::new(kind))));
        for (name, many, element) in [
            ("int4range", "int4multirange", Kind::Int4),
            ("int8range", "int8multirange", Kind::Int8),
            ("numrange", "nummultirange", Kind::Numeric(None)),
            ("tsrange", "tsmultirange", Kind::Timestamp),
            ("tstzrange", "tstzmultirange", Kind::TimestampTz),
            ("daterange", "datemultirange", Kind::Date),
            // PostgreSQL finds these names itself.
            ("floats", "floats_multirange", Kind::Float8),
            ("words", "words_multirange", Kind::Text),
        ] {
            if self.version >= 14 {
                kinds.push(Kind::Multirange {
                    name: many.into(),
                    oid: 0,
                    element: Box::new(element.clone()),
                });
            }
            kinds.push(Kind::Range { name: name.into(), oid: 0, element: Box::new(element) });
        }
        if self.version >= 15 {
            kinds.push(numeric(5, 8));
            kinds.push(Kind::Numeric(Some(Precision { precision: 5, scale: -3 })));
        }
        kinds
    }
}

pub(crate) fn numeric(precision: u16, scale: i16) -> Kind {
    Kind::Numeric(Some(Precision { precision, scale }))
}

pub(crate) fn mood() -> Kind {
    let labels = ["sad", "it's \"\\\t odd, (very)", "ok"];
    Kind::Enum { name: "mood".into(), labels: labels.map(str::to_owned).to_vec(), oids: Vec::new(), oid: 0 }
}

/// A table with a column for each kind, in the order given.
pub(crate) fn table(name: &str, rows: u64, kinds: &[Kind], values: impl Fn(&Kind) -> Values) -> Table {
    let column = |(position, kind): (usize, &Kind)| {
        Column::new(&format!("{position} {}", kind.sql()), kind.clone(), values(kind))
    };
    Table { name: name.into(), columns: kinds.iter().enumerate().map(column).collect(), rows, seed: 7 }
}
