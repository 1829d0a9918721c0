//! Errors and warnings of a table that is filled among others, where `--column` names the table, too.

use super::error::{CatalogError, SampleError};
use super::info::TableInfo;
use server::quote::shell_word;

/// The option of the remedies.
const OPTION: &str = "--column ";

impl CatalogError {
    /// The error for a user who gave these specifications: the name of each column, and the text after `--column`. Those of the columns
    /// of a violated CHECK are to be changed.
    #[must_use]
    pub fn of_given(mut self, options: &[(String, String)]) -> Self {
        if let Self::Sample(error) = &mut self
            && let SampleError::Check { columns, given, .. } = &mut **error
        {
            let of_check = options.iter().filter(|(column, _)| columns.contains(column));
            *given = of_check.map(|(_, option)| option.clone()).collect();
        }
        self
    }

    /// The error for people who fill several tables: in its remedy, options name the table: `--column orders.NAME=SPEC`.
    #[must_use]
    pub fn among_tables(self, info: &TableInfo) -> Self {
        let text = self.to_string();
        let left_out = match &self {
            Self::RowsPresent { table, .. } => {
                let leave_out = format!(": give --exclude-table {}, run TRUNCATE", shell_word(table));
                text.replacen(": run TRUNCATE", &leave_out, 1)
            }
            Self::Spec { column, .. } => {
                text.replacen(&format!("--column {column}:"), &format!("--column {}.{column}:", info.name), 1)
            }
            _ => text.clone(),
        };
        let shown = with_table(&left_out, &info.name, &info.column_names());
        if shown == text { self } else { Self::AmongTables { shown, cause: Box::new(self) } }
    }
}

impl TableInfo {
    /// A warning about the table for people who fill several: in its remedy, options name the table.
    pub fn among_tables(&self, warning: &str) -> String {
        with_table(warning, &self.name, &self.column_names())
    }
}

/// The text with the table before the columns of its options.
fn with_table(text: &str, table: &str, columns: &[&str]) -> String {
    let Some(at) = text.find(OPTION) else { return text.to_owned() };
    let (problem, remedy) = text.split_at(at);
    let named = |quote: &str| format!("{quote}{table}.NAME=");
    let any = remedy.replace("--column NAME=", &named("--column ")).replace("'NAME=", &named("'"));
    let remedy = columns
        .iter()
        .fold(any, |remedy, column| remedy.replace(&format!("'{column}="), &format!("'{table}.{column}=")));
    format!("{problem}{remedy}")
}

#[cfg(test)]
mod tests {
    use super::with_table;

    #[test]
    fn options_name_the_table() {
        for (text, shown) in [
            ("CHECK (k = 'k='). Give --column NAME=SPEC", "CHECK (k = 'k='). Give --column a.NAME=SPEC"),
            ("with --column 'NAME=unique', or drop it", "with --column 'a.NAME=unique', or drop it"),
            ("give --column 'k=SPEC' or 'id=SPEC'", "give --column 'a.k=SPEC' or 'a.id=SPEC'"),
            ("fill a first", "fill a first"),
        ] {
            assert_eq!(with_table(text, "a", &["id", "k"]), shown);
        }
    }
}
