//! Extensions that the scratch server lacks: it cannot restore a dump that creates them, and may fail to read a restored base backup.

use super::step::Trouble;
use super::{Observer, Run};
use crate::error::{BackupError, extensions, them};
use crate::outcome::Outcome;

/// A part of the server's error if it cannot load the library of a function (PostgreSQL's `dfmgr.c`).
const NO_LIBRARY: &str = "could not access file";

/// Extensions of the database that the scratch server does not have.
#[derive(Clone, Debug)]
pub(crate) struct Lacks {
    pub(crate) names: Vec<String>,
    /// Version of the scratch server.
    pub(crate) version: String,
    pub(crate) major: u16,
}

impl Lacks {
    /// Why no dump can be restored, with the remedy.
    pub(super) fn of_dumps(&self) -> BackupError {
        let Self { names, version, major } = self.clone();
        BackupError::Extensions { names, version, major }
    }

    /// The reason why a restored base backup cannot be read, with the remedy if it lacks a library.
    fn explain(&self, why: String) -> String {
        if !why.contains(NO_LIBRARY) {
            return why;
        }
        let Self { names, version, major } = self;
        format!(
            "{why}; the scratch server (PostgreSQL {version}) does not have the {}: give --bin DIR, the directory of the programs of a PostgreSQL \
             {major} that has {}",
            extensions(names),
            them(names)
        )
    }
}

impl Run<'_> {
    /// Before any trial, names the dumps that the scratch server cannot restore.
    pub(super) fn refuse_dumps(&self, outcome: &mut Outcome, observer: &mut impl Observer) {
        let Some(lacks) = &self.lacks else { return };
        let why = lacks.of_dumps().to_string();
        for way in self.plan.ways.iter().filter(|way| way.is_dump()) {
            observer.failed(way, &why);
            outcome.failed.push((way.clone(), why.clone()));
        }
    }

    /// The trouble of a restored base backup that is read.
    pub(super) fn of_reading(&self, trouble: Trouble) -> Trouble {
        match (trouble, &self.lacks) {
            (Trouble::Way(why), Some(lacks)) => Trouble::Way(lacks.explain(why)),
            (trouble, _) => trouble,
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::assert_says;

    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_gets_the_extension_and_the_remedy() {
        let names = vec!["vector".to_owned()];
        let lacks = Lacks { names, version: "13.23".to_owned(), major: 13 };
        let error = "the restored database cannot be read: could not access file \"$libdir/vector\"";
        assert_says(
            &lacks.explain(error.to_owned()),
            &[error, "does not have the extension vector: give --bin DIR", "a PostgreSQL 13 that has it"],
        );
        let differs = "the restored database differs: table t is missing".to_owned();
        assert_eq!(lacks.explain(differs.clone()), differs);
    }
}
