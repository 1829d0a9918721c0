//! Steps of work for which a person waits.

/// Is told of each step as it begins: a phrase for people.
pub type Steps<'a> = &'a dyn Fn(&str);

/// For work that nobody watches.
pub fn unwatched(_: &str) {}
