//! Facts for tests.

use rowgen::Kind;

use crate::facts::{ColumnFacts, ColumnRole, Facts, Statistics, TableFacts};
use crate::file::{Bytes, Column, Model, SAMPLED};
use crate::make::Privacy;

/// A column with statistics.
pub(crate) fn column(name: &str, kind: Kind, role: ColumnRole, statistics: Statistics) -> ColumnFacts {
    ColumnFacts {
        name: name.to_owned(),
        data_type: kind.sql(),
        kind: Some(kind),
        role,
        statistics: Some(statistics),
        ..ColumnFacts::default()
    }
}

/// Facts of one table, `public.t`.
pub(crate) fn facts(rows: u64, columns: Vec<ColumnFacts>) -> Facts {
    let table = TableFacts {
        name: "public.t".to_owned(),
        sql_name: "public.t".to_owned(),
        rows,
        analyzed_rows: rows,
        sampled: SAMPLED,
        bytes: Bytes::default(),
        analyzed: None,
        changed: 0,
        row_security: false,
        denied: Vec::new(),
        columns,
        pairs: Vec::new(),
    };
    Facts {
        server: String::new(),
        captured: String::new(),
        ddl: String::new(),
        locale: None,
        tables: vec![table],
        unseen: Vec::new(),
        elsewhere: Vec::new(),
        aggregates: false,
    }
}

/// The columns of the model of a table with 10,000 rows, after writing and reading it. `keep` has columns
/// that keep their values.
pub(crate) fn modelled(columns: Vec<ColumnFacts>, keep: &[&str]) -> Vec<Column> {
    let keep = keep.iter().map(|name| (*name).to_owned()).collect();
    let model = Model::of(&facts(10_000, columns), &Privacy { k: 20, keep, seed: 1 });
    let mut read = Model::read(&model.write()).unwrap();
    assert_eq!(read, model);
    read.tables.remove(0).columns
}

/// The model of the only column of a table, `t.c`.
pub(crate) fn made(kind: Kind, role: ColumnRole, statistics: Statistics, keep: &[&str]) -> Column {
    modelled(vec![column("c", kind, role, statistics)], keep).remove(0)
}

pub(crate) fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}
