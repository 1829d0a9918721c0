//! The steps of filling.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A step of filling; pgbench's `--init-steps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitStep {
    /// Existing tables go.
    Drop,
    /// New ones are created.
    Create,
    /// Rows are generated and loaded.
    Generate,
    /// Pages all-visible, statistics fresh.
    Vacuum,
    /// Primary keys (or the requested index) are built.
    PrimaryKeys,
    /// Foreign keys are added.
    ForeignKeys,
    /// Keys, indexes and foreign keys of a user's new table are made after its rows. No request names it.
    KeysAndIndexes,
}

impl InitStep {
    /// Its name in tables and run documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Create => "create",
            Self::Generate => "generate",
            Self::Vacuum => "vacuum",
            Self::PrimaryKeys => "primary-keys",
            Self::ForeignKeys => "foreign-keys",
            Self::KeysAndIndexes => "keys-and-indexes",
        }
    }

    /// pgbench's letter. `G`, generate in the server, is a [`MethodChoice`](super::MethodChoice) here.
    fn letter(self) -> Option<char> {
        match self {
            Self::Drop => Some('d'),
            Self::Create => Some('t'),
            Self::Generate => Some('g'),
            Self::Vacuum => Some('v'),
            Self::PrimaryKeys => Some('p'),
            Self::ForeignKeys => Some('f'),
            Self::KeysAndIndexes => None,
        }
    }

    fn from_letter(letter: char) -> Option<Self> {
        let all =
            [Self::Drop, Self::Create, Self::Generate, Self::Vacuum, Self::PrimaryKeys, Self::ForeignKeys];
        all.into_iter().find(|step| step.letter() == Some(letter))
    }
}

/// Steps in the order in which they are done, each at most once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InitSteps(Vec<InitStep>);

impl InitSteps {
    /// The steps `t` and `g`: rows only.
    pub fn data_only() -> Self {
        Self(vec![InitStep::Create, InitStep::Generate])
    }

    /// The steps `t`, `g`, `v` and `p`.
    pub fn whole() -> Self {
        Self(vec![InitStep::Create, InitStep::Generate, InitStep::Vacuum, InitStep::PrimaryKeys])
    }

    /// The steps with `step` as the first one, if it is not among them yet.
    #[must_use]
    pub fn first(mut self, step: InitStep) -> Self {
        if !self.include(step) {
            self.0.insert(0, step);
        }
        self
    }

    /// The steps with `step` as the last one, if it is not among them yet.
    #[must_use]
    pub fn then(mut self, step: InitStep) -> Self {
        if !self.include(step) {
            self.0.push(step);
        }
        self
    }

    /// The steps without `step`.
    #[must_use]
    pub fn without(mut self, step: InitStep) -> Self {
        self.0.retain(|present| *present != step);
        self
    }

    /// With primary keys built before rows are generated, if they are built at all.
    #[must_use]
    pub fn keys_first(self) -> Self {
        if !self.include(InitStep::PrimaryKeys) {
            return self;
        }
        let mut steps = self.without(InitStep::PrimaryKeys);
        let generate = steps.0.iter().position(|step| *step == InitStep::Generate).unwrap_or(0);
        steps.0.insert(generate, InitStep::PrimaryKeys);
        steps
    }

    /// Whether `step` is done.
    pub fn include(&self, step: InitStep) -> bool {
        self.0.contains(&step)
    }

    /// Whether both are done, `earlier` before `later`.
    pub(crate) fn order(&self, earlier: InitStep, later: InitStep) -> bool {
        let position = |wanted| self.0.iter().position(|step| *step == wanted);
        position(earlier).zip(position(later)).is_some_and(|(earlier, later)| earlier < later)
    }

    /// The steps in their order.
    pub fn iter(&self) -> impl Iterator<Item = InitStep> + '_ {
        self.0.iter().copied()
    }

    /// As pgbench writes them, e.g. `dtgvp`.
    pub fn letters(&self) -> String {
        self.0.iter().filter_map(|step| step.letter()).collect()
    }
}

/// Steps as pgbench's letters say them, and whether rows are generated in the server (`G`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letters {
    /// The steps, in the order of the letters.
    pub steps: InitSteps,
    /// Whether the letter `G` was among them.
    pub server_side: bool,
}

impl FromStr for Letters {
    type Err = String;

    /// Reads pgbench's letters. Blanks are allowed, as pgbench allows them.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut letters = Self { steps: InitSteps(Vec::new()), server_side: false };
        for letter in text.chars().filter(|letter| *letter != ' ') {
            let step = if letter == 'G' { Some(InitStep::Generate) } else { InitStep::from_letter(letter) };
            let Some(step) = step else {
                return Err(format!(
                    "\"{letter}\" is not a step: d drops, t creates tables, g generates rows (G in the server), v \
                     vacuums, p builds primary keys, f adds foreign keys"
                ));
            };
            if letters.steps.include(step) {
                return Err(format!("\"{letter}\" is given twice: each step is done once"));
            }
            letters.server_side |= letter == 'G';
            letters.steps.0.push(step);
        }
        if letters.steps.0.is_empty() {
            return Err("no step: give some of dtgGvpf".to_owned());
        }
        Ok(letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_pgbench() {
        let letters: Letters = "dtGvpf".parse().unwrap();
        assert!(letters.server_side);
        assert_eq!(letters.steps.letters(), "dtgvpf");
        assert_eq!(InitSteps::whole().first(InitStep::Drop).letters(), "dtgvp");
        for (text, said) in [("dtx", "\"x\" is not a step"), ("dtgG", "given twice"), (" ", "no step")] {
            let error = text.parse::<Letters>().unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn keys_can_come_before_rows() {
        assert_eq!(InitSteps::whole().first(InitStep::Drop).keys_first().letters(), "dtpgv");
        assert_eq!(InitSteps::data_only().keys_first().letters(), "tg");
    }
}
