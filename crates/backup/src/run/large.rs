//! Large objects: their number, and a hash of their content.

use connect::ConnectError;
use measure::human::counted;
use server::Session;

/// All large objects of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LargeObjects {
    /// Their number.
    pub(crate) count: u64,
    /// A sum of hashes, in which neither the order nor unwritten zeros matter; none if the role may not read their content.
    pub(crate) hash: Option<String>,
}

impl LargeObjects {
    /// Counts them, and reads all of them, if the role may. The session has the settings of `session.sql`.
    pub(crate) async fn read(session: &Session) -> Result<Self, ConnectError> {
        let row = session.row(include_str!("../sql/large_objects.sql"), &[]).await?;
        let count = u64::try_from(row.get::<_, i64>("objects")).unwrap_or_default();
        let hash = if row.get("readable") {
            Some(session.row(include_str!("../sql/large_object_pages.sql"), &[]).await?.get("hash"))
        } else {
            None
        };
        Ok(Self { count, hash })
    }

    /// The difference of restored ones from these.
    pub(super) fn difference(&self, restored: &Self) -> Option<String> {
        if self.count != restored.count {
            return Some(format!(
                "it has {} instead of {}",
                counted(restored.count, "large object"),
                self.count
            ));
        }
        let hashes = self.hash.as_ref().zip(restored.hash.as_ref());
        hashes.is_some_and(|(own, others)| own != others).then(|| {
            format!("it has {}, as the original, but with other content", counted(self.count, "large object"))
        })
    }

    /// Tells if their content was not compared.
    pub(super) fn note(&self) -> Option<String> {
        (self.count > 0 && self.hash.is_none()).then(|| {
            "pgrig compared only the number of large objects, not their content, which the role may not read: connect as a superuser, or \
             run GRANT SELECT ON pg_largeobject"
                .to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_contents_differ() {
        let of = |count, hash: Option<&str>| LargeObjects { count, hash: hash.map(ToOwned::to_owned) };
        let original = of(3, Some("7"));
        assert_eq!(original.difference(&of(3, Some("7"))), None);
        assert_eq!(original.difference(&of(1, None)).unwrap(), "it has 1 large object instead of 3");
        let other = original.difference(&of(3, Some("8"))).unwrap();
        assert_eq!(other, "it has 3 large objects, as the original, but with other content");
        let hidden = of(3, None);
        assert_eq!(hidden.difference(&of(3, Some("8"))), None);
        assert!(hidden.note().is_some() && original.note().is_none() && of(0, None).note().is_none());
    }
}
