//! The means to speed up databases for tests, and combinations of them.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// One means, ordered by the damage that a crash can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Means {
    /// Each database is a copy of a template, made in the fastest way: costs nothing.
    Template,
    /// Tables are unlogged: a crash of the server empties them.
    Unlogged,
    /// The server's data are in memory: they end with the machine, all of that server's.
    Tmpfs,
    /// fsync, full_page_writes and synchronous_commit are off: a crash of the machine may cost the whole cluster.
    Dangerous,
}

impl Means {
    /// All means, in the order in which people name them.
    const ALL: [Self; 4] = [Self::Unlogged, Self::Dangerous, Self::Template, Self::Tmpfs];

    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Unlogged => "unlogged",
            Self::Tmpfs => "tmpfs",
            Self::Dangerous => "dangerous",
        }
    }

    /// The bit of a means. More costly means have higher bits, so that sets of means are ordered by
    /// their cost.
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of means, ordered by the damage that a crash can do at worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variant(u8);

impl Variant {
    /// The variant without any means, as people usually have it.
    pub const NORMAL: Self = Self(0);

    /// The variant of these means.
    pub fn of(means: &[Means]) -> Self {
        Self(means.iter().fold(0, |bits, means| bits | means.bit()))
    }

    /// The default variants: each means, and a common combination.
    pub fn defaults() -> Vec<Self> {
        use Means::{Dangerous, Template, Tmpfs, Unlogged};
        let sets: [&[Means]; 6] = [
            &[Unlogged],
            &[Dangerous],
            &[Unlogged, Dangerous],
            &[Template],
            &[Tmpfs],
            &[Dangerous, Template, Tmpfs],
        ];
        sets.into_iter().map(Self::of).collect()
    }

    /// Whether it contains this means.
    pub fn has(self, means: Means) -> bool {
        self.0 & means.bit() != 0
    }

    /// The variant without one of its means.
    #[must_use]
    pub fn without(self, means: Means) -> Self {
        Self(self.0 & !means.bit())
    }

    /// Its means, as people name them.
    pub fn means(self) -> impl Iterator<Item = Means> {
        Means::ALL.into_iter().filter(move |means| self.has(*means))
    }
}

/// `normal`, `unlogged+dangerous`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.means().map(Means::name).collect();
        f.pad(&if names.is_empty() { "normal".to_owned() } else { names.join("+") })
    }
}

impl Serialize for Variant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "normal" {
            return Ok(Self::NORMAL);
        }
        let mut variant = Self::NORMAL;
        for name in text.split('+') {
            let found = Means::ALL.into_iter().find(|means| means.name() == name.trim());
            let means = found.ok_or_else(|| {
                format!("{name:?} is not a variant: give unlogged, dangerous, template or tmpfs, or several joined with +")
            })?;
            if variant.has(means) {
                return Err(format!("{name} is given twice"));
            }
            variant.0 |= means.bit();
        }
        Ok(variant)
    }
}

/// A means that cannot be used here, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The means that cannot be used.
    pub means: Means,
    /// The reason, as a clause.
    pub why: String,
}

/// Variants to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The variants, normal first; all different.
    pub variants: Vec<Variant>,
    /// The defaults that were left out, with reasons.
    pub left_out: Vec<(Variant, String)>,
}

impl Choice {
    /// The variants that were asked for, all of which must be possible; or the defaults that are
    /// possible.
    ///
    /// # Errors
    /// The variant that was asked for and cannot be tried, and the means that is missing.
    pub fn new(asked: Option<&[Variant]>, missing: &[Missing]) -> Result<Self, (Variant, Missing)> {
        let hindrance = |variant: Variant| missing.iter().find(|missing| variant.has(missing.means));
        let mut choice = Self { variants: vec![Variant::NORMAL], left_out: Vec::new() };
        if let Some(asked) = asked {
            for variant in asked {
                if let Some(missing) = hindrance(*variant) {
                    return Err((*variant, missing.clone()));
                }
                choice.add(*variant);
            }
            return Ok(choice);
        }
        for variant in Variant::defaults() {
            match hindrance(variant) {
                None => choice.add(variant),
                // Of what people end with, the rest is still worth a trial.
                Some(_) if variant.means().count() > 2 => {
                    let possible = missing.iter().fold(variant, |left, missing| left.without(missing.means));
                    if possible.means().count() > 1 {
                        choice.add(possible);
                    }
                }
                Some(missing) => choice.left_out.push((variant, missing.why.clone())),
            }
        }
        Ok(choice)
    }

    /// Whether one of the variants contains this means.
    pub fn has(&self, means: Means) -> bool {
        self.variants.iter().any(|variant| variant.has(means))
    }

    fn add(&mut self, variant: Variant) {
        if !self.variants.contains(&variant) {
            self.variants.push(variant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(names: &[&str]) -> Vec<Variant> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn names(choice: &Choice) -> Vec<String> {
        choice.variants.iter().map(ToString::to_string).collect()
    }

    fn missing(means: Means) -> Missing {
        Missing { means, why: format!("no {}", means.name()) }
    }

    #[test]
    fn names_are_read_in_any_order() {
        for name in ["normal", "unlogged", "unlogged+dangerous", "dangerous+template+tmpfs"] {
            assert_eq!(name.parse::<Variant>().unwrap().to_string(), name);
        }
        assert_eq!(variants(&["tmpfs+dangerous+template"]), variants(&["dangerous+template+tmpfs"]));
        assert!("safe".parse::<Variant>().unwrap_err().contains("give unlogged, dangerous"));
        assert!("tmpfs+tmpfs".parse::<Variant>().unwrap_err().contains("twice"));
        assert!("normal+tmpfs".parse::<Variant>().is_err());
    }

    #[test]
    fn the_order_is_what_a_crash_may_cost() {
        let ordered = variants(&[
            "normal",
            "template",
            "unlogged",
            "unlogged+template",
            "tmpfs",
            "dangerous",
            "dangerous+template",
            "unlogged+dangerous",
            "dangerous+tmpfs",
        ]);
        assert!(ordered.is_sorted(), "{ordered:?}");
    }

    #[test]
    fn all_defaults_are_tried_where_nothing_is_missing() {
        let choice = Choice::new(None, &[]).unwrap();
        let all = [
            "normal",
            "unlogged",
            "dangerous",
            "unlogged+dangerous",
            "template",
            "tmpfs",
            "dangerous+template+tmpfs",
        ];
        assert_eq!(names(&choice), all);
        assert_eq!(choice.left_out, []);
    }

    #[test]
    fn what_is_missing_is_left_out_of_the_defaults_and_told() {
        let choice = Choice::new(None, &[missing(Means::Tmpfs)]).unwrap();
        let kept =
            ["normal", "unlogged", "dangerous", "unlogged+dangerous", "template", "dangerous+template"];
        assert_eq!(names(&choice), kept);
        assert_eq!(choice.left_out, [(Variant::of(&[Means::Tmpfs]), "no tmpfs".to_owned())]);
        let empty = Choice::new(None, &[missing(Means::Unlogged), missing(Means::Template)]).unwrap();
        assert_eq!(names(&empty), ["normal", "dangerous", "tmpfs", "dangerous+tmpfs"]);
        let told: Vec<String> = empty.left_out.iter().map(|(variant, _)| variant.to_string()).collect();
        assert_eq!(told, ["unlogged", "unlogged+dangerous", "template"]);
    }

    #[test]
    fn what_was_asked_for_must_be_possible() {
        let asked = variants(&["template", "normal", "template"]);
        assert_eq!(names(&Choice::new(Some(&asked), &[]).unwrap()), ["normal", "template"]);
        let asked = variants(&["template", "dangerous+tmpfs"]);
        let (variant, why) = Choice::new(Some(&asked), &[missing(Means::Tmpfs)]).unwrap_err();
        assert_eq!((variant.to_string().as_str(), why.why.as_str()), ("dangerous+tmpfs", "no tmpfs"));
        Choice::new(Some(&variants(&["template"])), &[missing(Means::Tmpfs)]).unwrap();
    }
}
