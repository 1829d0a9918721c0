//! Adopts the databases of an earlier keeper, or drops them.

use std::collections::BTreeSet;

use super::template::{Stage, Template};
use super::{Action, KeeperState, Lent};
use crate::lend::name::{Meaning, meaning};
use crate::lend::owner::Owner;
use crate::lend::tag::{Purpose, Tag};
use crate::lend::time::Time;

/// A database that has a name of pgrig's and belongs to the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundDatabase {
    pub(crate) name: String,
    /// Its comment, if pgrig can read it.
    pub(crate) tag: Option<Tag>,
    /// Whether an earlier DROP of it was interrupted: it can only be dropped again.
    pub(crate) half_dropped: bool,
}

impl KeeperState {
    /// Takes over all databases that this keeper, or an earlier one with the same id, has made.
    /// Drops unfinished ones, those lent to processes that are gone or whose time is over, and
    /// those whose tables or tag a crash of the server may have lost.
    pub(in crate::lend) fn adopt(
        &mut self,
        found: Vec<FoundDatabase>,
        is_alive: impl Fn(&Owner) -> bool,
        now: Time,
    ) -> Vec<Action> {
        let making = |name: &str| meaning(name) == Some(Meaning::Making(self.keeper.clone()));
        let (half_made, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| making(&found.name));
        for half in half_made {
            self.drops.add(half.name);
        }
        let mut own = Vec::new();
        for FoundDatabase { name, tag, half_dropped } in found {
            match tag.filter(|tag| tag.keeper == self.keeper) {
                Some(_) if half_dropped => self.drops.add(name),
                Some(tag) => own.push((name, tag)),
                None => {}
            }
        }
        let (templates, others): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|(_, tag)| matches!(tag.state, Purpose::Template(_)));
        for (name, tag) in templates {
            self.adopt_template(name, tag);
        }
        let known: BTreeSet<String> = self.templates.keys().cloned().collect();
        for (name, tag) in others {
            let survived = tag.epoch == self.epoch;
            match tag.state {
                Purpose::Spare if survived && known.contains(&tag.template) => {
                    if let Some(template) = self.templates.get_mut(&tag.template) {
                        template.spares.push_back(name);
                    }
                }
                Purpose::Lent(terms)
                    if terms.kept
                        || terms.until.is_none_or(|until| until > now)
                            && terms.owner.as_ref().is_none_or(&is_alive) =>
                {
                    self.watch(&terms);
                    self.lent.insert(name, Lent { template: tag.template, since: tag.created, terms });
                }
                _ => self.drops.add(name),
            }
        }
        self.go_on(now)
    }

    fn adopt_template(&mut self, name: String, tag: Tag) {
        let survived = tag.epoch == self.epoch;
        let Purpose::Template(content) = tag.state else { return };
        if content.unlogged && !survived {
            return self.drops.add(name);
        }
        let template = Template {
            stage: Stage::Ready,
            source: content.source,
            unlogged: content.unlogged,
            touched: content.used,
            ..Template::new(&self.strategies, content.used)
        };
        self.templates.insert(name, Template { created: tag.created, ..template });
    }
}
