//! The documents of parts travel through the server: part 1 listens, and the others send theirs by NOTIFY, in pieces.

use std::collections::BTreeMap;
use std::time::Duration;

use connect::Target;
use futures_util::future::LocalBoxFuture;
use tokio_postgres::Error;

use crate::error::TpsError;
use crate::request::Part;
use crate::signals::{Sign, Signals};

/// Characters of a piece: NOTIFY takes less than 8,000 bytes (src/backend/commands/async.c), the piece's numbers included.
const PIECE: usize = 7_900;
/// Time between two looks at the pieces that have arrived.
const LOOKS: Duration = Duration::from_millis(100);
/// Looks after a part has left: its last pieces may still be on their way.
const LAST_LOOKS: u32 = 5;

/// A part's session for documents, from before the run until its document has been sent, or all have been received.
pub struct Exchange {
    part: Part,
    channel: String,
    signals: Signals,
}

/// The pieces of a document: their number, and those that have arrived.
#[derive(Debug, Default)]
struct Pieces {
    of: usize,
    arrived: BTreeMap<usize, String>,
}

impl Pieces {
    fn whole(&self) -> Option<String> {
        (self.of > 0 && self.arrived.len() == self.of)
            .then(|| self.arrived.values().map(String::as_str).collect())
    }
}

impl Exchange {
    /// Connects. Part 1 listens from now on.
    ///
    /// # Errors
    /// If the server cannot be asked, is a standby, or a pooler moves sessions.
    pub fn open<'a>(target: &'a Target, part: &'a Part) -> LocalBoxFuture<'a, Result<Self, TpsError>> {
        Box::pin(async move {
            let name = part.exchange();
            let signals = Signals::connect(target, name.clone()).await?;
            let client = &signals.connection.client;
            let row = signals.said(client.query_one(include_str!("sql/exchange.sql"), &[&name])).await?;
            if row.get("is_standby") {
                return Err(TpsError::PartsOnStandby);
            }
            let channel: String = row.get("channel");
            if part.number == 1 {
                signals.said(client.batch_execute(&format!("LISTEN {channel}"))).await?;
            }
            if !signals.said(signals.take(Sign::Present(part.number))).await? {
                return Err(TpsError::PartTaken { number: part.number, of: part.of });
            }
            Ok(Self { part: part.clone(), channel, signals })
        })
    }

    /// Sends this part's document, a text without line breaks, to part 1.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn send<'a>(&'a self, document: &'a str) -> LocalBoxFuture<'a, Result<(), TpsError>> {
        Box::pin(async move {
            for payload in payloads(self.part.number, document) {
                self.signals.said(self.notify(&payload)).await?;
            }
            Ok(())
        })
    }

    async fn notify(&self, payload: &str) -> Result<(), Error> {
        let query = "SELECT pg_notify($1, $2)";
        self.signals.connection.client.query_one(query, &[&self.channel, &payload]).await.map(drop)
    }

    /// Receives the documents of the other parts; none of a part that left without sending its document.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn receive(&self) -> LocalBoxFuture<'_, Result<Vec<String>, TpsError>> {
        Box::pin(async move {
            let mut documents: BTreeMap<usize, Pieces> = BTreeMap::new();
            let mut last_looks = 0;
            loop {
                let signs = self.signals.said(self.signals.signs()).await?;
                for payload in self.signals.connection.take_notifications() {
                    add(&mut documents, &payload);
                }
                let whole = |number: usize| documents.get(&number).and_then(Pieces::whole);
                let mut awaited = (2..=self.part.of).filter(|number| whole(*number).is_none()).peekable();
                let is_complete = awaited.peek().is_none();
                let is_hopeless = !awaited.any(|number| signs.has(Sign::Present(number)));
                last_looks = if is_hopeless { last_looks + 1 } else { 0 };
                if is_complete || last_looks > LAST_LOOKS {
                    return Ok((2..=self.part.of).filter_map(whole).collect());
                }
                tokio::time::sleep(LOOKS).await;
            }
        })
    }
}

/// The pieces of a document: `part piece pieces text`.
fn payloads(part: usize, document: &str) -> Vec<String> {
    let bytes = document.as_bytes();
    let of = bytes.len().div_ceil(PIECE);
    let pieces = bytes.chunks(PIECE).enumerate();
    pieces.map(|(piece, text)| format!("{part} {piece} {of} {}", String::from_utf8_lossy(text))).collect()
}

/// Adds a piece. Another program may send to the channel too: payloads that are no pieces are ignored.
fn add(documents: &mut BTreeMap<usize, Pieces>, payload: &str) {
    let mut words = payload.splitn(4, ' ');
    let mut number = || words.next()?.parse::<usize>().ok();
    let numbers = (number(), number(), number());
    if let ((Some(part), Some(piece), Some(of)), Some(text)) = (numbers, words.next())
        && piece < of
    {
        let pieces = documents.entry(part).or_default();
        pieces.of = of;
        pieces.arrived.insert(piece, text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_survives_its_pieces() {
        let document: String = ('a'..='z').cycle().take(3 * PIECE + 17).collect();
        let mut payloads = payloads(10_000, &document);
        assert!(payloads.len() == 4 && payloads.iter().all(|payload| payload.len() < 8000));
        payloads.reverse();
        let mut documents = BTreeMap::new();
        add(&mut documents, "not one of ours");
        for payload in &payloads {
            assert_eq!(documents.get(&10_000).and_then(Pieces::whole), None);
            add(&mut documents, payload);
        }
        assert_eq!(documents[&10_000].whole(), Some(document));
        assert_eq!(documents.len(), 1);
    }
}
