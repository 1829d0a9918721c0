//! The scripts of a run. They are parsed together, because a client's variables live on from one
//! script to the next.

use std::ops::Index;
use std::sync::Arc;

use crate::command::Script;
use crate::error::ScriptError;
use crate::parse;
use crate::random::Random;
use crate::source::Source;
use crate::variables::Names;

/// The scripts of a run; each transaction carries out one of them.
#[derive(Clone, Debug)]
pub struct Scripts {
    list: Vec<Script>,
    names: Arc<Names>,
    total_weight: u64,
}

impl Scripts {
    /// Parses all scripts.
    ///
    /// # Errors
    ///
    /// The first error in one of the scripts.
    pub fn parse(sources: &[Source]) -> Result<Self, ScriptError> {
        let mut names = Names::default();
        let scripts = sources.iter().map(|source| parse::script(source, &mut names));
        let list = scripts.collect::<Result<Vec<_>, _>>()?;
        let total_weight = list.iter().map(|script| u64::from(script.weight)).sum();
        Ok(Self { list, names: Arc::new(names), total_weight })
    }

    /// The names of all variables in them.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The scripts, in the order given.
    pub fn iter(&self) -> std::slice::Iter<'_, Script> {
        self.list.iter()
    }

    /// Number of scripts.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The sum of all weights. If it is 0, no script can be chosen.
    pub fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// Chooses the script of a transaction by weight, as pgbench does; returns its index. A single
    /// script is chosen without a random number.
    ///
    /// # Panics
    ///
    /// If there are several scripts and all weights are 0.
    pub fn choose(&self, random: &mut Random) -> usize {
        if self.list.len() == 1 {
            return 0;
        }
        let last = self.total_weight.checked_sub(1).expect("a script must have a weight");
        let mut left = random.up_to(last);
        for (index, script) in self.list.iter().enumerate() {
            match left.checked_sub(u64::from(script.weight)) {
                Some(less) => left = less,
                None => return index,
            }
        }
        unreachable!("a number below the sum of all weights")
    }
}

impl Index<usize> for Scripts {
    type Output = Script;

    fn index(&self, index: usize) -> &Script {
        &self.list[index]
    }
}

impl<'a> IntoIterator for &'a Scripts {
    type Item = &'a Script;
    type IntoIter = std::slice::Iter<'a, Script>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
