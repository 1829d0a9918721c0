//! The files that a command line names: an output that is also an input, or two outputs in one file, are refused before
//! any work.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::app::failure::Usage;

/// Standard input as a file: it may be one that an output names, too.
const STDIN: &str = "/dev/stdin";

/// The files of a command line.
#[derive(Debug, Default)]
pub(crate) struct Files {
    read: Vec<Named>,
    /// Directories of which each file is read.
    directories: Vec<Named>,
    written: Vec<Named>,
}

/// A file, and the option that names it; empty for an argument.
#[derive(Debug)]
struct Named {
    option: &'static str,
    path: PathBuf,
}

/// The identity of a file. Devices and pipes have none: one of them can be input and output.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode.
    Existing(u64, u64),
    /// The path of a file that does not exist.
    New(PathBuf),
}

impl Files {
    /// Adds inputs; - is standard input.
    pub(crate) fn reads<P: AsRef<Path>>(
        mut self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.read.extend(paths.into_iter().map(|path| Named::new(option, path.as_ref())));
        self
    }

    /// Adds directories of which each file is an input.
    pub(crate) fn reads_within<P: AsRef<Path>>(
        mut self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.directories.extend(paths.into_iter().map(|path| Named::new(option, path.as_ref())));
        self
    }

    /// Adds outputs; - is standard output.
    pub(crate) fn writes<P: AsRef<Path>>(
        mut self,
        option: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let named = paths.into_iter().map(|path| Named::new(option, path.as_ref()));
        self.written.extend(named.filter(|named| !named.is_standard()));
        self
    }

    /// Refuses an output that is also an input, and two outputs in one file.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn refuse_overlaps(&self) -> Result<(), Usage> {
        for (at, written) in self.written.iter().enumerate() {
            if let Some(read) = self.directories.iter().find(|read| written.is_within(read)) {
                return Err(Usage(format!(
                    "{} is in the directory {}, which pgrig reads: give a file in another directory",
                    written.shown(),
                    read.shown()
                )));
            }
            let Some(identity) = written.identity() else { continue };
            let is_it = |other: &&Named| other.identity().is_some_and(|other| other == identity);
            let is_there = matches!(identity, Identity::Existing(..));
            if let Some(read) = self.read.iter().filter(|_| is_there).find(is_it) {
                return Err(Usage(format!(
                    "{} would overwrite {}, which pgrig reads: give the name of another file",
                    written.shown(),
                    read.shown()
                )));
            }
            if let Some(other) = self.written[..at].iter().find(is_it) {
                return Err(Usage(format!(
                    "{} and {} are the same file: give two names",
                    other.shown(),
                    written.shown()
                )));
            }
        }
        Ok(())
    }
}

impl Named {
    fn new(option: &'static str, path: &Path) -> Self {
        Self { option, path: path.to_owned() }
    }

    /// Whether it is standard input or output.
    fn is_standard(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The option and the path, as the user gives them.
    fn shown(&self) -> String {
        let name = self.path.display();
        match self.option {
            _ if self.is_standard() => "standard input".to_owned(),
            "" => name.to_string(),
            option => format!("{option} {name}"),
        }
    }

    fn identity(&self) -> Option<Identity> {
        let path = if self.is_standard() { Path::new(STDIN) } else { self.path.as_path() };
        match path.metadata() {
            Ok(found) => found.is_file().then(|| Identity::Existing(found.dev(), found.ino())),
            Err(_) => Some(Identity::New(directory(path)?.join(path.file_name()?))),
        }
    }

    /// Whether it lies below a directory, or would.
    fn is_within(&self, other: &Self) -> bool {
        let (true, Ok(outer)) = (other.path.is_dir(), other.path.canonicalize()) else { return false };
        let is_special = self.path.metadata().is_ok_and(|found| !found.is_file());
        !is_special && directory(&self.path).is_some_and(|inner| inner.starts_with(outer))
    }
}

/// The directory of a file, without links; none if it does not exist.
fn directory(file: &Path) -> Option<PathBuf> {
    let real = file.canonicalize().ok();
    let parent = real.as_deref().unwrap_or(file).parent()?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    parent.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(files: &Files) -> Option<String> {
        files.refuse_overlaps().err().map(|error| error.0)
    }

    #[test]
    fn a_file_is_known_under_all_its_names() {
        let place = tempfile::tempdir().unwrap();
        let named = |name: &str| place.path().join(name);
        fs::write(named("s.sql"), "").unwrap();
        fs::write(named("other"), "").unwrap();
        fs::hard_link(named("s.sql"), named("hard")).unwrap();
        symlink(named("s.sql"), named("soft")).unwrap();
        for name in ["s.sql", "hard", "soft", "../s.sql"] {
            let path = match name.strip_prefix("../") {
                Some(name) => place.path().join("..").join(place.path().file_name().unwrap()).join(name),
                None => named(name),
            };
            let files = Files::default().reads("--ddl", [named("s.sql")]).writes("--json", [&path]);
            let told = refused(&files).unwrap();
            assert!(told.starts_with(&format!("--json {} would overwrite --ddl ", path.display())), "{told}");
        }
        for name in ["other", "new"] {
            let files = Files::default().reads("--ddl", [named("s.sql")]).writes("--json", [named(name)]);
            assert_eq!(refused(&files), None);
        }
        // A name that no file has is not read: it may be that of a built-in script.
        assert_eq!(
            refused(&Files::default().reads("--tps", [named("x")]).writes("--json", [named("x")])),
            None
        );
    }

    #[test]
    fn two_outputs_need_two_files() {
        let place = tempfile::tempdir().unwrap();
        let new = place.path().join("new");
        let both =
            |one: &Path, two: &Path| Files::default().writes("--json", [one]).writes("--report", [two]);
        let told = refused(&both(&new, &place.path().join("./new"))).unwrap();
        assert!(told.contains(" are the same file: give two names"), "{told}");
        assert_eq!(refused(&both(&new, &place.path().join("newer"))), None);
        assert_eq!(refused(&both(Path::new("/dev/null"), Path::new("/dev/null"))), None);
        assert_eq!(refused(&both(Path::new("-"), Path::new("-"))), None);
    }

    #[test]
    fn nothing_is_written_into_a_directory_that_is_read() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("base")).unwrap();
        for (name, is_refused) in [("base/new", true), ("new", false), ("base2", false)] {
            let output = place.path().join(name);
            let files =
                Files::default().reads_within("", [place.path().join("base")]).writes("--json", [output]);
            assert_eq!(refused(&files).is_some(), is_refused, "{name}");
        }
    }
}
