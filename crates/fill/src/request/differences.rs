//! Whether two requests are of the same fill, and the options by which they differ.

use serde_json::Value;

use super::{InitStep, Request, Subject, Triggers};

/// Fields of a request, and the options that set them.
const OPTIONS: [(&str, &str); 24] = [
    ("amount", "the amount (SIZE, --scale or --rows)"),
    ("append", "--append"),
    ("schema", "--schema"),
    ("persistence", "--unlogged"),
    ("fillfactor", "--fillfactor"),
    ("partitions", "--partitions"),
    ("index", "--index"),
    ("tablespace", "--tablespace"),
    ("index_tablespace", "--index-tablespace"),
    ("autovacuum", "--no-autovacuum"),
    ("payload", "--payload"),
    ("method", "--method"),
    ("streams", "--streams"),
    ("format", "--format"),
    ("chunk", "--chunk"),
    ("in_chunks", "limits or probes"),
    ("steps", "the steps"),
    ("name", "--table"),
    ("ddl", "--ddl"),
    ("create_roles", "--create-roles"),
    ("columns", "--column"),
    ("seed", "--seed"),
    ("plain", "--plain"),
    ("triggers", "--triggers"),
];

impl Request {
    /// The same request, of the fill as a whole.
    pub(crate) fn whole(&self) -> Self {
        Self { part: None, place: None, ..self.clone() }
    }

    /// Whether this is the request that began a fill. For tables that existed before, the storage
    /// properties that were taken from them are not compared, because somebody may have changed
    /// them since. Triggers that refuse rows may be off for the rest of them.
    pub(crate) fn is_that_of(&self, begun: &Self) -> bool {
        let mut begun = begun.clone();
        if let (Subject::Table(ours), Subject::Table(theirs)) = (&self.subject, &mut begun.subject)
            && ours.triggers == Triggers::Off
        {
            theirs.triggers = Triggers::Off;
        }
        let own = matches!(self.subject, Subject::Table(_));
        if self.steps.include(InitStep::Create) && !own {
            return self.whole() == begun;
        }
        let Self { persistence, fillfactor, tablespace, .. } = begun.clone();
        Self { persistence, fillfactor, tablespace, ..self.whole() } == begun
    }

    /// The options by which the request differs from that which began a fill, as a phrase; empty if none is known.
    pub(crate) fn differences(&self, begun: &Self) -> String {
        let [ours, theirs] = [self, begun].map(|request| serde_json::to_value(request).expect("plain data"));
        let field = |request: &Value, name: &str| {
            let own = request["subject"]["table"].get(name);
            own.or_else(|| request.get(name)).cloned().unwrap_or_default()
        };
        let differ = |name: &str| field(&ours, name) != field(&theirs, name);
        let names = OPTIONS.iter().filter(|(name, _)| differ(name)).map(|(_, option)| *option);
        let names: Vec<&str> = names.collect();
        if names.is_empty() { String::new() } else { format!(" (different: {})", names.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, InitSteps, OwnTable, Part, RowOrder};
    use super::*;

    fn request(seed: u64) -> Request {
        let subject = Subject::Table(OwnTable {
            name: Some("t".to_owned()),
            ddl: None,
            create_roles: false,
            columns: Vec::new(),
            seed,
            plain: false,
            triggers: Triggers::On,
            together: Vec::new(),
            in_cycle: false,
            order: RowOrder::Any,
        });
        Request { subject, ..Request::new(Amount::Rows(5), InitSteps::whole()) }
    }

    #[test]
    fn different_options_are_named() {
        let begun = request(0);
        let other = Request { amount: Amount::Rows(6), part: Some(Part { number: 2, of: 3 }), ..request(1) };
        assert_eq!(other.differences(&begun), " (different: the amount (SIZE, --scale or --rows), --seed)");
        assert_eq!(begun.differences(&begun), "");
    }

    #[test]
    fn triggers_may_be_off_for_the_rest_of_the_rows() {
        let on = request(0);
        let mut off = on.clone();
        if let Subject::Table(own) = &mut off.subject {
            own.triggers = Triggers::Off;
        }
        assert!(on.is_that_of(&on) && off.is_that_of(&off) && off.is_that_of(&on) && !on.is_that_of(&off));
    }

    #[test]
    fn every_field_has_an_option() {
        let all = serde_json::to_value(request(0)).unwrap();
        let own = all["subject"]["table"].as_object().unwrap();
        let known = |name: &&String| OPTIONS.iter().any(|(field, _)| field == *name);
        let unknown = all.as_object().unwrap().keys().chain(own.keys()).filter(|name| !known(name));
        assert_eq!(unknown.collect::<Vec<_>>(), ["is_scratch", "subject", "in_cycle", "order", "together"]);
    }
}
