//! The parts of a script, which a thread reads a few ahead of the server.

use std::thread;

use bytes::Bytes;
use dump::{Piece, Reader, Summary, Unlogger};
use tokio::sync::{mpsc, oneshot};

use super::error::LoadError;
use crate::source::Source;

/// Parts that are read ahead; each takes as much as the reader's buffer or its statement.
const AHEAD: usize = 8;
/// Commands of psql that pgrig ignores: they protect psql from commands within a dump's data, and
/// pgrig never reads data as commands (pg_dump's documentation, --restrict-key).
const HARMLESS: [&str; 2] = ["\\restrict", "\\unrestrict"];

/// The next action.
pub(super) enum Step {
    /// A statement by itself.
    Statement(Text),
    /// COPY … FROM stdin: its data follow.
    Copy(Text),
    /// Some of its data.
    Data(Bytes),
    /// End of the data.
    End,
    /// The last part of a script that was made unlogged: the summary of changes.
    Unlogged(Summary),
}

/// A statement and where it stands.
pub(super) struct Text {
    /// The statement with its `;`.
    pub(super) sql: String,
    /// The line of the script on which it begins, from 1.
    pub(super) line: u64,
}

impl Text {
    fn new(bytes: Vec<u8>, line: u64) -> Result<Self, LoadError> {
        let sql = String::from_utf8(bytes).map_err(|_| LoadError::NotUtf8 { line })?;
        Ok(Self { sql, line })
    }

    /// Its beginning, on one line.
    pub(super) fn excerpt(&self) -> String {
        const LONGEST: usize = 120;
        let mut words = self.sql.split_whitespace();
        let mut excerpt = words.next().unwrap_or_default().to_owned();
        for word in words {
            if excerpt.chars().count() > LONGEST {
                break;
            }
            excerpt = excerpt + " " + word;
        }
        match excerpt.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &excerpt[..end]),
            None => excerpt,
        }
    }

    /// Whether it sets a setting.
    pub(super) fn is_set(&self) -> bool {
        self.sql.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("set"))
    }
}

/// The parts, in order.
pub(super) struct Parts {
    arriving: mpsc::Receiver<Result<Step, LoadError>>,
}

impl Parts {
    /// Starts to read the source in a thread of its own.
    pub(super) fn read(source: Source, unlogger: Option<Unlogger>) -> Result<Self, LoadError> {
        let (sender, arriving) = mpsc::channel(AHEAD);
        thread::Builder::new()
            .name("script".to_owned())
            .spawn(move || {
                if let Err(error) = send_all(&source, unlogger, &sender) {
                    // Without a receiver nobody wants to know.
                    let _ = sender.blocking_send(Err(error));
                }
            })
            .map_err(LoadError::Thread)?;
        Ok(Self { arriving })
    }

    /// The next one; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Step>, LoadError> {
        self.arriving.recv().await.transpose()
    }
}

/// Runs blocking work on a thread of its own, and waits for it.
pub(super) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    let (sender, done) = oneshot::channel();
    let thread = thread::Builder::new().name("survey".to_owned()).spawn(move || {
        // Without a receiver nobody wants to know.
        let _ = sender.send(work());
    });
    thread.map_err(LoadError::Thread)?;
    done.await.expect("the thread sends unless it panics")
}

/// Sends all parts, until the end or until the receiver is gone.
fn send_all(
    source: &Source,
    mut unlogger: Option<Unlogger>,
    sender: &mpsc::Sender<Result<Step, LoadError>>,
) -> Result<(), LoadError> {
    // Opening may take its time too: it starts pg_restore.
    let mut reader = Reader::new(source.open()?);
    // The piece after a statement shows whether the statement is a COPY.
    let mut held = None;
    while let Some(piece) = reader.next()? {
        let insert_at = unlogger.as_mut().map(|unlogger| unlogger.look(piece)).transpose()?.flatten();
        let after = match piece {
            Piece::CopyData(bytes) => Some(Step::Data(Bytes::copy_from_slice(bytes))),
            Piece::CopyEnd(_) => Some(Step::End),
            Piece::Between(_) | Piece::Statement(_) | Piece::Meta(_) => None,
        };
        let is_copy = after.is_some();
        let before = held.take().map(|text| if is_copy { Step::Copy(text) } else { Step::Statement(text) });
        for part in before.into_iter().chain(after) {
            if sender.blocking_send(Ok(part)).is_err() {
                return Ok(());
            }
        }
        match piece {
            Piece::Statement(bytes) => {
                let bytes = match insert_at {
                    None => bytes.to_vec(),
                    Some(at) => [&bytes[..at], dump::UNLOGGED, &bytes[at..]].concat(),
                };
                held = Some(Text::new(bytes, reader.line())?);
            }
            Piece::Meta(bytes) => {
                let command = String::from_utf8_lossy(bytes).into_owned();
                refuse_command(&command, reader.line())?;
            }
            Piece::Between(_) | Piece::CopyData(_) | Piece::CopyEnd(_) => {}
        }
    }
    let summary = unlogger.map(Unlogger::finish).transpose()?;
    for part in held.map(Step::Statement).into_iter().chain(summary.map(Step::Unlogged)) {
        if sender.blocking_send(Ok(part)).is_err() {
            break;
        }
    }
    Ok(())
}

fn refuse_command(text: &str, line: u64) -> Result<(), LoadError> {
    let command = text.split_whitespace().next().unwrap_or("\\").to_owned();
    if HARMLESS.contains(&command.as_str()) { Ok(()) } else { Err(LoadError::Command { command, line }) }
}
