//! Backups that are damaged in random ways, by a seed. `PGRIG_DAMAGES` is the number of damages of each way for each kind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use backup::check::{CheckError, Outcome, Verdict};
use fastrand::Rng;
use testkit::{Need, require};

use crate::check::checked;
use crate::support::made::{Made, files};

const SEED: u64 = 23;
const DAMAGES: &str = "PGRIG_DAMAGES";
/// Damages of each way, unless the environment says otherwise.
const FEW: usize = 2;
/// Bytes that are swapped.
const BLOCK: u64 = 4096;

/// A way to damage a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// A file is cut at a random place.
    Cut,
    /// A random bit is flipped.
    Flip,
    /// Two blocks of a file change places.
    Order,
    /// A file is missing.
    Missing,
    /// Two files change places.
    Swap,
}

/// A backup to be damaged.
struct Victim<'a> {
    name: &'a str,
    path: &'a Path,
    is_covered: bool,
    /// Files that matter.
    files: Vec<(PathBuf, u64)>,
}

impl Victim<'_> {
    /// A file, each byte with the same probability.
    fn file(&self, rng: &mut Rng) -> (PathBuf, u64) {
        let all: u64 = self.files.iter().map(|(_, size)| size).sum();
        let mut at = rng.u64(..all);
        let found = self.files.iter().find(|(_, size)| {
            let is_here = at < *size;
            at = at.saturating_sub(*size);
            is_here
        });
        found.unwrap().clone()
    }

    fn is_directory(&self) -> bool {
        self.path.is_dir()
    }
}

/// Checks while the damage lasts, and undoes it. Returns nothing if it would change no content.
fn damaged(victim: &Victim<'_>, way: Way, rng: &mut Rng) -> Option<(String, Result<Outcome, CheckError>)> {
    let check = |told: String| (told, checked(victim.path));
    match way {
        Way::Cut => {
            let (path, size) = victim.file(rng);
            // The last lines of SQL are blank.
            let blank = if path.extension().is_some_and(|ending| ending == "sql") { 64 } else { 0 };
            let to = rng.u64(..size - blank);
            let whole = fs::read(&path).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(to).unwrap();
            let found = check(format!("{} cut to {to} of {size}", path.display()));
            fs::write(&path, whole).unwrap();
            Some(found)
        }
        Way::Flip => {
            let (path, size) = victim.file(rng);
            let (at, bit) = (rng.u64(..size), rng.u8(..8));
            // Time, system and window in the compression's own header: no checksum covers them, and no content is in them.
            let is_packed = path.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
            if is_packed && (3..10).contains(&at) {
                return None;
            }
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << bit)], at).unwrap();
            let found = check(format!("{}, byte {at} of {size}, bit {bit}", path.display()));
            file.write_all_at(&byte, at).unwrap();
            Some(found)
        }
        Way::Order => {
            let (path, size) = victim.file(rng);
            if size < 2 * BLOCK {
                return None;
            }
            let one = rng.u64(..=size / 2 - BLOCK);
            let other = rng.u64(size / 2..=size - BLOCK);
            let whole = fs::read(&path).unwrap();
            let mut mixed = whole.clone();
            let at = |place: u64| usize::try_from(place).unwrap()..usize::try_from(place + BLOCK).unwrap();
            mixed[at(one)].copy_from_slice(&whole[at(other)]);
            mixed[at(other)].copy_from_slice(&whole[at(one)]);
            if mixed == whole {
                return None;
            }
            fs::write(&path, mixed).unwrap();
            let found = check(format!("{}, blocks at {one} and {other} of {size}", path.display()));
            fs::write(&path, whole).unwrap();
            Some(found)
        }
        Way::Missing if victim.is_directory() => {
            let (path, _) = rng.choice(&victim.files).unwrap();
            let aside = path.parent().unwrap().parent().unwrap().join("aside");
            fs::rename(path, &aside).unwrap();
            let found = check(format!("{} is missing", path.display()));
            fs::rename(&aside, path).unwrap();
            Some(found)
        }
        Way::Swap if victim.is_directory() => {
            let (one, _) = rng.choice(&victim.files).unwrap();
            let (other, _) = rng.choice(&victim.files).unwrap();
            if fs::read(one).unwrap() == fs::read(other).unwrap() {
                return None;
            }
            let swap = || {
                let aside = victim.path.parent().unwrap().join("aside");
                fs::rename(one, &aside).unwrap();
                fs::rename(other, one).unwrap();
                fs::rename(&aside, other).unwrap();
            };
            swap();
            let found = check(format!("{} and {} change places", one.display(), other.display()));
            swap();
            Some(found)
        }
        Way::Missing | Way::Swap => None,
    }
}

/// Whether the damage must be noticed: a checksum or the structure covers it.
fn must_be_noticed(victim: &Victim<'_>, way: Way, told: &str) -> bool {
    match way {
        // Nothing tells the length of a large object that is not compressed.
        Way::Cut => !(told.contains("/blob_") && told.contains(".dat cut")),
        // Without a manifest, a base backup can be restored.
        Way::Missing => !told.contains("backup_manifest"),
        Way::Flip | Way::Order | Way::Swap => {
            victim.is_covered && !told.contains("pg_wal") && victim.name != "one.tar"
        }
    }
}

/// Files of a backup whose loss matters: no empty ones, no settings that may differ.
fn that_matter(path: &Path) -> Vec<(PathBuf, u64)> {
    if path.is_file() {
        return vec![(path.to_owned(), path.metadata().unwrap().len())];
    }
    let mut all = files(path);
    all.retain(|(path, size)| *size > 0 && !path.ends_with("postgresql.auto.conf"));
    all
}

#[test]
fn damage_that_a_checksum_or_the_structure_covers_is_noticed_and_no_damage_ends_in_whole() {
    if !require(Need::Clients) {
        return;
    }
    let damages = std::env::var(DAMAGES).map_or(FEW, |number| number.parse().unwrap());
    let made = Made::new();
    let mut rng = Rng::with_seed(SEED);
    let mut counts: BTreeMap<(String, Way), [u32; 3]> = BTreeMap::new();
    let mut slowest = 0.0_f64;
    let all = made.all();
    for (name, path, is_covered) in &all {
        let victim = Victim { name, path, is_covered: *is_covered, files: that_matter(path) };
        for way in [Way::Cut, Way::Flip, Way::Order, Way::Missing, Way::Swap] {
            for _ in 0..damages {
                let began = Instant::now();
                let Some((told, outcome)) = damaged(&victim, way, &mut rng) else { continue };
                slowest = slowest.max(began.elapsed().as_secs_f64());
                // A refusal is no verdict.
                let verdict = outcome.as_ref().ok().map(Outcome::verdict);
                assert_ne!(verdict, Some(Verdict::Whole), "{name}, {way:?}, {told}");
                if must_be_noticed(&victim, way, &told) {
                    assert_eq!(verdict, Some(Verdict::Damaged), "{name}, {way:?}, {told}: {outcome:#?}");
                }
                let count = counts.entry(((*name).to_owned(), way)).or_default();
                count[0] += 1;
                count[1] += u32::from(verdict == Some(Verdict::Damaged));
                count[2] += u32::from(must_be_noticed(&victim, way, &told));
            }
        }
        assert_ne!(checked(path).unwrap().verdict(), Verdict::Damaged, "{name} after all of it");
    }
    if std::env::var_os(DAMAGES).is_some() {
        print(&counts, slowest);
    }
}

#[expect(clippy::print_stdout, reason = "the record of just bench-damage")]
fn print(counts: &BTreeMap<(String, Way), [u32; 3]>, slowest: f64) {
    println!("backup            damage    cases  covered  noticed");
    for ((name, way), [cases, noticed, covered]) in counts {
        println!("{name:<17} {:<8} {cases:>6} {covered:>8} {noticed:>8}", format!("{way:?}"));
    }
    println!("slowest case: {slowest:.2} s");
}
