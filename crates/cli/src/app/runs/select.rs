//! Words of the command line that name runs, as documented in `docs/src/verbs/runs.md`.
//!
//! In this order: a word with a slash is a file, unless there is none and a label is called so; `latest`, `latest~1`,
//! `latest:tps~1` count saved runs from the newest; an existing file; the id of a saved run; a label, perhaps with
//! wildcards; the beginning of an id.

use std::cell::OnceCell;
use std::path::Path;

use glob::Pattern;
use measure::Status;

use crate::app::failure::{Failure, Usage};
use crate::app::plain::plain;
use crate::app::printer::Printer;
use crate::app::runs::documents::{Document, in_file};
use crate::app::runs::head::is_id;
use crate::app::runs::store::{Saved, Store};

const LATEST: &str = "latest";
/// Commands that save runs.
pub(crate) const VERBS: [&str; 8] = ["fill", "model", "blockio", "micro", "tps", "ddl", "backup", "testdb"];
/// Words that name runs, for the help of each verb that takes them.
pub(crate) const RUN: &str = "RUN names one or more runs. pgrig takes the first of these that fits:\n  \
    latest          the newest saved run; latest~1 is the one before it\n  \
    latest:tps      the newest run of tps; latest:tps~1 is the one before it\n  \
    ./a.json        a file: a word with a slash, or the name of an existing file.\n                  \
    A file may contain several runs, and may be a report\n  \
    before, bef*    all saved runs with this label; *, ? and [...] are wildcards\n  \
    20261124T0838   the id of a saved run, or a prefix that only one id has";
/// Most candidates of an ambiguous word that are listed; further ones are only counted.
const MOST_LISTED: usize = 10;

/// The runs that a label stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// Complete runs: others cannot be compared.
    Complete,
    /// All runs, complete or not.
    All,
}

/// Finds runs by words; reads the saved runs at most once.
pub(crate) struct Selection<'p> {
    store: Store,
    saved: OnceCell<Vec<Saved>>,
    printer: &'p Printer,
    labelled: Labelled,
}

impl<'p> Selection<'p> {
    /// Of the home's saved runs.
    ///
    /// # Errors
    /// If there is no home.
    pub(crate) fn new(labelled: Labelled, printer: &'p Printer) -> Result<Self, Failure> {
        Ok(Self { store: Store::locate()?, saved: OnceCell::new(), printer, labelled })
    }

    /// The documents that the words name, each once, in the order of the words; those of a label in the order of their
    /// start.
    ///
    /// # Errors
    /// If a word names no run or is ambiguous, or a document cannot be read.
    pub(crate) fn documents(&self, words: &[String]) -> Result<Vec<Document>, Failure> {
        let mut found: Vec<Document> = Vec::new();
        for word in words {
            for document in self.named(word)? {
                match found.iter().find(|known| known.run.id == document.run.id) {
                    Some(known) if known.text.trim() != document.text.trim() => {
                        let id = &known.run.id;
                        let text = format!(
                            "there are two different documents of run {}: give only one of the files",
                            plain(id)
                        );
                        return Err(Usage(text).into());
                    }
                    // Two words may name the same run.
                    Some(_) => {}
                    None => found.push(document),
                }
            }
        }
        Ok(found)
    }

    /// The one document that the word names.
    ///
    /// # Errors
    /// The same, and if the word names several.
    pub(crate) fn document(&self, word: &str) -> Result<Document, Failure> {
        let mut found = self.documents(&[word.to_owned()])?;
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(|document| document.run.id.as_str()).collect();
            let text =
                format!("{} matches {} runs: give the id of one\n{}", plain(word), ids.len(), listed(&ids));
            return Err(Usage(text).into());
        }
        found.pop().ok_or_else(|| {
            Usage(format!("{} names no run: pgrig runs list shows the runs", plain(word))).into()
        })
    }

    /// The saved runs that the words name, each once. Words do not name files.
    ///
    /// # Errors
    /// If a word names no run or is ambiguous, or the saved runs cannot be listed.
    pub(crate) fn saved(&self, words: &[String]) -> Result<Vec<&Saved>, Failure> {
        let mut found: Vec<&Saved> = Vec::new();
        for word in words {
            if word.contains('/') && !self.is_label(word)? {
                let text = format!(
                    "{} is a file, and this command works on saved runs only: give latest, an id, or a label",
                    plain(word)
                );
                return Err(Usage(text).into());
            }
            for saved in self.of_store(word, false)? {
                if found.iter().all(|known| known.head.id != saved.head.id) {
                    found.push(saved);
                }
            }
        }
        Ok(found)
    }

    /// Whether a saved run has this label.
    ///
    /// # Errors
    /// If the saved runs cannot be listed.
    pub(crate) fn has_label(&self, label: &str) -> Result<bool, Failure> {
        Ok(self.all()?.iter().any(|saved| saved.head.label.as_deref() == Some(label)))
    }

    /// Whether the word names saved runs by their label.
    fn is_label(&self, word: &str) -> Result<bool, Failure> {
        Ok(labelled(word, self.all()?).is_ok_and(|found| !found.is_empty()))
    }

    /// Number of saved runs without a label: no wildcard names them.
    ///
    /// # Errors
    /// If the saved runs cannot be listed.
    pub(crate) fn unlabelled(&self) -> Result<usize, Failure> {
        Ok(self.all()?.iter().filter(|saved| saved.head.label.is_none()).count())
    }

    fn named(&self, word: &str) -> Result<Vec<Document>, Failure> {
        if is_file(word) && (Path::new(word).exists() || !self.is_label(word)?) {
            return in_file(Path::new(word));
        }
        let path = self.store.path(word);
        if is_id(word) && path.is_file() {
            return in_file(&path);
        }
        let mut found = Vec::new();
        for saved in self.of_store(word, true)? {
            found.extend(in_file(&saved.path)?);
        }
        Ok(found)
    }

    fn all(&self) -> Result<&[Saved], Failure> {
        if let Some(saved) = self.saved.get() {
            return Ok(saved);
        }
        let saved = self.store.all(self.printer)?;
        Ok(self.saved.get_or_init(|| saved))
    }

    /// The saved runs that a word names. `takes_files` is whether it may also be a file.
    fn of_store(&self, word: &str, takes_files: bool) -> Result<Vec<&Saved>, Failure> {
        let all = self.all()?;
        if word.is_empty() {
            return Err(Usage("a run has an empty name: give a file, an id, or a label".to_owned()).into());
        }
        if let Some(latest) = Latest::parse(word).map_err(Usage)? {
            let found = latest.of(all)?;
            if found.is_in_the_future() {
                let start = plain(&found.head.started_at).into_owned();
                self.printer.warn(format!(
                    "the start of {word} ({start}) is in the future: the clock was set back after that run, so another run may \
                     be newer"
                ));
            }
            return Ok(vec![found]);
        }
        if let Some(found) = all.iter().find(|saved| saved.head.id == word) {
            return Ok(vec![found]);
        }
        let shown = plain(word);
        let mut labelled = labelled(word, all)?;
        if !labelled.is_empty() {
            // In the order in which they began.
            labelled.reverse();
            return self.of_label(&shown, labelled);
        }
        let begun: Vec<&Saved> = all.iter().filter(|saved| saved.head.id.starts_with(word)).collect();
        match begun.as_slice() {
            [] => Err(Usage(format!(
                "\"{shown}\" names no run: no saved run has this id or label (pgrig runs list shows the runs){}",
                match Path::new(word) {
                    path if takes_files && path.is_dir() => ", and the directory of this name is not a file",
                    path if path.exists() => ", and this command takes no file",
                    _ if takes_files => ", and there is no such file",
                    _ => "",
                }
            ))
            .into()),
            [_] => Ok(begun),
            begun => {
                let ids: Vec<&str> = begun.iter().map(|saved| saved.head.id.as_str()).collect();
                Err(Usage(format!(
                    "{} ids begin with {shown}: give more characters of the id\n{}",
                    ids.len(),
                    listed(&ids)
                ))
                .into())
            }
        }
    }

    /// The runs of a label that count.
    fn of_label<'s>(&self, word: &str, labelled: Vec<&'s Saved>) -> Result<Vec<&'s Saved>, Failure> {
        if self.labelled == Labelled::All {
            return Ok(labelled);
        }
        let (complete, others): (Vec<_>, Vec<_>) =
            labelled.into_iter().partition(|saved| saved.head.status == Status::Done);
        let count = others.len();
        if complete.is_empty() {
            return Err(
                Usage(format!("no run with label {word} is complete: repeat one, or give its id")).into()
            );
        }
        if count > 0 {
            let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
            self.printer.say(format!(
                "note: {count} of the runs with label {word} {are} not complete: pgrig leaves {them} out"
            ));
        }
        Ok(complete)
    }
}

/// Whether a word is a file: it has a slash, or there is one. A directory is none, unless it has a slash.
pub(crate) fn is_file(word: &str) -> bool {
    word.contains('/') || !is_reserved(word) && Path::new(word).metadata().is_ok_and(|found| !found.is_dir())
}

/// Whether a word counts from the newest run, so that no label may be called so.
pub(crate) fn is_reserved(word: &str) -> bool {
    word.strip_prefix(LATEST).is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', ':']))
}

/// The saved runs whose label fits.
fn labelled<'s>(word: &str, all: &'s [Saved]) -> Result<Vec<&'s Saved>, Usage> {
    let pattern =
        Pattern::new(word).map_err(|error| Usage(format!("{} is not a pattern: {error}", plain(word))))?;
    let fits = |saved: &&Saved| saved.head.label.as_deref().is_some_and(|label| pattern.matches(label));
    Ok(all.iter().filter(fits).collect())
}

fn listed(ids: &[&str]) -> String {
    let mut lines: Vec<String> = ids.iter().take(MOST_LISTED).map(|id| format!("  {}", plain(id))).collect();
    if ids.len() > MOST_LISTED {
        lines.push(format!("  and {} more", ids.len() - MOST_LISTED));
    }
    lines.join("\n")
}

/// `latest`, `latest~1`, `latest:tps`, `latest:tps~1`.
#[derive(Debug, PartialEq, Eq)]
struct Latest<'w> {
    word: &'w str,
    verb: Option<&'w str>,
    before: usize,
}

impl<'w> Latest<'w> {
    fn parse(word: &'w str) -> Result<Option<Self>, String> {
        if !is_reserved(word) {
            return Ok(None);
        }
        let (name, before) = match word.split_once('~') {
            None => (word, 0),
            Some((name, number)) => match number.parse() {
                Ok(before) if number.bytes().all(|byte| byte.is_ascii_digit()) => (name, before),
                _ => {
                    return Err(format!(
                        "{} does not name a run: give latest~N with a number, for example latest~1",
                        plain(word)
                    ));
                }
            },
        };
        let verb = name.strip_prefix(LATEST).and_then(|rest| rest.strip_prefix(':'));
        Ok(Some(Self { word, verb, before }))
    }

    fn of<'s>(&self, all: &'s [Saved]) -> Result<&'s Saved, Usage> {
        let is_asked = |saved: &&Saved| self.verb.is_none_or(|verb| saved.head.verb == verb);
        all.iter().filter(is_asked).nth(self.before).ok_or_else(|| {
            let count = all.iter().filter(is_asked).count();
            if let Some(verb) = self.verb.filter(|verb| !VERBS.contains(verb)) {
                let (word, verb) = (plain(self.word), plain(verb));
                let known = VERBS.join(", ");
                return Usage(format!(
                    "there is no run {word}, because {verb} saves no runs: give one of {known}"
                ));
            }
            let of_verb = self.verb.map_or_else(String::new, |verb| format!(" of {}", plain(verb)));
            let runs = match count {
                0 => format!("there is no saved run{of_verb}"),
                1 => format!("there is 1 saved run{of_verb}"),
                _ => format!("there are {count} saved runs{of_verb}"),
            };
            Usage(format!("no run {}: {runs}", plain(self.word)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_counts_and_may_name_a_verb() {
        let parsed = |word| Latest::parse(word).map(|found| found.map(|one| (one.verb, one.before)));
        assert_eq!(parsed("latest"), Ok(Some((None, 0))));
        assert_eq!(parsed("latest~12"), Ok(Some((None, 12))));
        assert_eq!(parsed("latest:tps"), Ok(Some((Some("tps"), 0))));
        assert_eq!(parsed("latest:tps~1"), Ok(Some((Some("tps"), 1))));
        for label in ["latest-a", "latestly", "the latest", "latest*"] {
            assert_eq!(parsed(label), Ok(None), "{label}");
        }
        for word in
            ["latest~", "latest~x", "latest~-1", "latest~+1", "latest~1~1", "latest~99999999999999999999"]
        {
            assert!(parsed(word).is_err(), "{word}");
        }
    }
}
