//! Whether a table has room for another row, as far as the catalogs tell without its rows.

use super::defaults::has_values_left;
use super::info::{ColumnInfo, KeyInfo, TableInfo};
use super::mentioned::columns_in;

impl TableInfo {
    /// Whether its keys or its sequences may leave no room for another row, whatever rows other tables get. Otherwise, no description of a
    /// row fails for that reason.
    pub fn may_be_full(&self) -> bool {
        let is_alone = self.foreign_keys.iter().all(|key| key.to_itself);
        let has_room = || {
            self.keys.iter().all(|key| self.has_sequence(key))
                && !self.columns.iter().any(|column| has_values_left(column) == Some(false))
        };
        self.keys.iter().any(|key| self.may_be_constant(key)) || is_alone && !has_room()
    }

    /// Whether the key may be the same in each row.
    fn may_be_constant(&self, key: &KeyInfo) -> bool {
        let all = self.column_names();
        let is_generated = |name: &str| self.column(name).is_some_and(ColumnInfo::is_generated);
        key.elements.iter().flat_map(|element| element.columns_in(&all)).all(is_generated)
    }

    /// Whether a column of the key has values left in a sequence of its own, and no condition restricts them.
    fn has_sequence(&self, key: &KeyInfo) -> bool {
        let bounds = self.partition_condition();
        let is_restricted = |column: &ColumnInfo| {
            let checks = self.checks.iter().map(|check| check.expression.as_str());
            let mut conditions = checks.chain(bounds.as_deref());
            !column.data_type.domain_checks().is_empty()
                || conditions.any(|condition| !columns_in(condition, &[column.name.as_str()]).is_empty())
        };
        let mut columns = key.columns().filter_map(|name| self.column(name));
        !key.exclusion
            && columns.any(|column| has_values_left(column) == Some(true) && !is_restricted(column))
    }
}
