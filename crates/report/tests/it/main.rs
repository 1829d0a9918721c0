//! Pages of documents of real runs, one of each kind.

mod backup;
mod backup_load;
mod colours;
mod coordinates;
mod ddl;
mod page;
mod pictures;
mod plots;
mod private;
mod rowless;
mod several_runs;

use report::Document;

/// Real runs, without blanks.
pub(crate) const DOCUMENTS: [(&str, &str); 14] = [
    ("alternatives", include_str!("../documents/alternatives.json")),
    ("backup", include_str!("../documents/backup.json")),
    ("blockio", include_str!("../documents/blockio.json")),
    ("compat", include_str!("../documents/compat.json")),
    ("ddl", include_str!("../documents/ddl.json")),
    ("fill", include_str!("../documents/fill.json")),
    ("ladder", include_str!("../documents/ladder.json")),
    ("matrix", include_str!("../documents/matrix.json")),
    ("micro", include_str!("../documents/micro.json")),
    ("model", include_str!("../documents/model.json")),
    ("schema", include_str!("../documents/schema.json")),
    ("testdb", include_str!("../documents/testdb.json")),
    ("tps", include_str!("../documents/tps.json")),
    ("waits", include_str!("../documents/waits.json")),
];

pub(crate) fn document(name: &str) -> Document {
    let (_, text) = DOCUMENTS.iter().find(|(known, _)| *known == name).unwrap();
    Document::read((*text).to_owned()).unwrap()
}

/// The same with another run.
pub(crate) fn changed(name: &str, change: impl FnOnce(&mut measure::Run)) -> Document {
    let mut run = document(name).run;
    change(&mut run);
    Document::read(run.document().unwrap()).unwrap()
}
