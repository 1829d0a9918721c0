//! Numbers of different values in tables that get more or fewer rows than those of a model's original.

use rowgen::ColumnSpec;

use super::amounts::{is_name_of, listed};
use super::design::table_and_column;
use super::{PlannedTable, TableState};
use crate::schema::request::SchemaRequest;

/// Mentions in the plans which columns keep their number of different values.
pub(super) fn announce(planned: &mut [PlannedTable], request: &SchemaRequest) {
    for table in planned {
        let name = (table.schema.as_str(), table.name.as_str());
        let original = request.heaps.iter().find(|heap| is_name_of(name, &heap.table));
        if original.is_none_or(|original| original.rows == table.rows) {
            continue;
        }
        if let TableState::ToFill(plan) = &mut table.state {
            plan.reasons.extend(phrase(name, request));
        }
    }
}

/// The columns of a table by how their numbers of different values scale; none if the model states no number. Columns for
/// which the user chose values are not among them.
fn phrase(name: (&str, &str), request: &SchemaRequest) -> Option<String> {
    let chosen: Vec<String> = request
        .columns
        .iter()
        .filter_map(|text| table_and_column(text))
        .filter(|(table, _)| is_name_of(name, table))
        .filter_map(|(_, text)| text.parse::<ColumnSpec>().ok())
        .map(|spec| spec.column)
        .collect();
    let modelled = request.modelled.iter().filter(|modelled| is_name_of(name, &modelled.table));
    let specs = modelled.filter_map(|modelled| modelled.spec.parse::<ColumnSpec>().ok());
    let specs: Vec<ColumnSpec> = specs.filter(|spec| !chosen.contains(&spec.column)).collect();
    let of = |is_so: fn(&ColumnSpec) -> bool| -> Vec<&str> {
        specs.iter().filter(|spec| is_so(spec)).map(|spec| spec.column.as_str()).collect()
    };
    let parts = [
        ("stays the same", of(|spec| spec.spec.distinct().is_some_and(|distinct| distinct > 0.0))),
        ("scales with the rows", of(|spec| spec.spec.distinct().is_some_and(|distinct| distinct < 0.0))),
        ("scales with the referenced rows", of(|spec| spec.spec.keyed().is_some())),
    ];
    let stated = parts.iter().filter(|(_, names)| !names.is_empty());
    let texts: Vec<String> = stated.map(|(how, names)| format!("{how} for {}", listed(names))).collect();
    (!texts.is_empty()).then(|| format!("the number of different values {}", texts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::request::{Modelled, SchemaAmount};

    fn request(specs: &[&str], columns: &[&str]) -> SchemaRequest {
        let modelled = |spec: &&str| Modelled { table: "public.t".to_owned(), spec: (*spec).to_owned() };
        SchemaRequest {
            modelled: specs.iter().map(modelled).collect(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            ..SchemaRequest::of_script(String::new(), SchemaAmount::Rules)
        }
    }

    #[test]
    fn columns_keep_their_number_of_values_or_scale_it() {
        let specs = [
            "kind=repeated(3,0,common(0.5*0.9),cycle(a,b,c))",
            "score=nulls(0.5,statistics(-0.25,0,common(),histogram(1,5,20)))",
            "parent=keys(-1,0,common())",
            "at=greater(since,statistics(9,0,common(),histogram(1,5)),statistics(-1,0,common(),histogram(1,5)))",
        ];
        assert_eq!(
            phrase(("public", "t"), &request(&specs, &[])).unwrap(),
            "the number of different values stays the same for kind; scales with the rows for score, at; \
             scales with the referenced rows for parent"
        );
        let chosen = ["t.kind=uniform(1,9)", "public.t.score=any", "other.parent=any"];
        assert_eq!(
            phrase(("public", "t"), &request(&specs, &chosen)).unwrap(),
            "the number of different values scales with the rows for at; scales with the referenced rows for parent"
        );
        assert_eq!(phrase(("public", "other"), &request(&specs, &[])), None);
    }
}
