//! A statement that names an object which is not there.

use fill::Skipped;

use super::left_out;
use crate::outcome::StatementOutcome;
use crate::schema::Schema;

/// The remedy of a missing object.
pub(crate) const REMEDY: &str = "add it to the schema, or to the migration before this statement";
/// The same, if the tables are those of a database or a model.
const OF_COPY: &str = "pgrig copies only the tables of the original, and what these use. If the original has this object, give \
                       --schema-file with the output of pg_dump --schema-only";
/// Beginnings of the server's messages on objects of the whole server.
const OF_SERVER: [&str; 2] = ["role ", "tablespace "];

/// Completes the remedies of statements that name missing objects. `skipped` are the statements of the schema that were left out.
pub(crate) fn complete(schema: &Schema, skipped: &[Skipped], statements: &mut [StatementOutcome]) {
    left_out::explain(skipped, &schema.origin, statements);
    if !schema.is_copy() {
        return;
    }
    for failed in statements.iter_mut().filter_map(|one| one.failed.as_mut()) {
        let is_of_server = OF_SERVER.iter().any(|word| failed.message.starts_with(word));
        if failed.remedy.as_deref() == Some(REMEDY) && !is_of_server {
            failed.remedy = Some(OF_COPY.to_owned());
        }
    }
}
