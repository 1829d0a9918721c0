//! Steps of work for which a person waits.

/// A function that takes the name of each step, a phrase for people, as the step begins.
pub type Steps<'a> = &'a dyn Fn(&str);

/// [`Steps`] that shows nothing.
pub fn unwatched(_: &str) {}
