//! The contents of a database's comment. It contains everything that a keeper knows of the
//! database, so that the next keeper knows it too.

use serde::{Deserialize, Serialize};

use super::name::KeeperId;
use super::owner::Owner;
use super::time::Time;

/// To be increased when an older pgrig would misread the tag.
const FORMAT: u32 = 1;

/// The comment of a database of pgrig's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tag {
    #[serde(rename = "pgrig testdb")]
    format: u32,
    pub(super) keeper: KeeperId,
    /// The template's database: its own name, if it is one.
    pub(super) template: String,
    pub(super) created: Time,
    /// The epoch in which it was made: it changes with every crash of the server, see
    /// [`super::executor::ServerInfo`].
    pub(super) epoch: String,
    #[serde(flatten)]
    pub(super) state: Purpose,
}

/// Purpose of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum Purpose {
    /// A template, to be copied.
    Template(Content),
    /// A copy that has not been lent yet.
    Spare,
    /// A copy that is lent.
    Lent(Terms),
}

/// Content of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// Its source, as text for people.
    pub(super) source: String,
    /// Whether there are unlogged tables in it: a crash of the server would empty them.
    pub(super) unlogged: bool,
    /// Time of the last request, to within [`super::state::TOUCH`].
    pub(super) used: Time,
}

/// How long a database is lent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    /// It is dropped when this process exits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
    /// It is dropped at this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Time>,
    /// The database stays until it is dropped by name; owner and time do not count.
    #[serde(default)]
    pub(super) kept: bool,
}

impl Tag {
    pub(super) fn new(keeper: &KeeperId, template: &str, epoch: &str, created: Time, state: Purpose) -> Self {
        let (keeper, template, epoch) = (keeper.clone(), template.to_owned(), epoch.to_owned());
        Self { format: FORMAT, keeper, template, created, epoch, state }
    }

    /// None if the comment is not pgrig's, or was written by a later pgrig in a format that this
    /// one does not know.
    pub(super) fn read(comment: &str) -> Option<Self> {
        serde_json::from_str(comment).ok().filter(|tag: &Self| tag.format == FORMAT)
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).expect("plain fields")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_are_written() {
        let keeper = KeeperId::of(&["one"]);
        let owner = Some(Owner { pid: 7, start: 9, machine: "m".to_owned() });
        let terms = Terms { owner, until: Some(Time::now()), kept: true };
        let content = Content { source: "a.sql".to_owned(), unlogged: true, used: Time::now() };
        for state in [
            Purpose::Spare,
            Purpose::Lent(terms),
            Purpose::Lent(Terms::default()),
            Purpose::Template(content),
        ] {
            let tag = Tag::new(&keeper, "t", "e", Time::now(), state);
            assert_eq!(Tag::read(&tag.write()), Some(tag));
        }
    }

    #[test]
    fn other_comments_are_none() {
        for comment in ["", "my database", "{}", "{\"pgrig testdb\": 1}"] {
            assert_eq!(Tag::read(comment), None, "{comment}");
        }
        let tag = Tag::new(&KeeperId::of(&[]), "t", "e", Time::now(), Purpose::Spare).write();
        assert_eq!(Tag::read(&tag.replace("testdb\":1", "testdb\":2")), None, "of a later pgrig");
    }
}
