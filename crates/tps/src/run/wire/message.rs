//! Messages of the server ("54.7 Message Formats"). They borrow the received bytes; rows and columns are read
//! when they are asked for.

use connect::ServerError;

/// Messages that a session's user must know of.
#[derive(Debug)]
pub enum Message<'w> {
    /// Rows with these columns follow, maybe none.
    RowDescription(Columns<'w>),
    /// A row of the result.
    DataRow(Row<'w>),
    /// A statement is complete; with its tag, as in `UPDATE 1`.
    CommandComplete(&'w [u8]),
    /// An empty statement is complete.
    EmptyQuery,
    /// A statement failed. The server skips everything else up to the next Sync, or in the same
    /// Query.
    Error(Box<ServerError>),
    /// All is done up to the Query or Sync that this answers.
    ReadyForQuery(TransactionStatus),
    /// A Parse succeeded.
    ParseComplete,
    /// A Bind succeeded.
    BindComplete,
    /// The described statement returns no rows.
    NoData,
    /// Execute's limit was reached.
    PortalSuspended,
    /// The statement is a COPY: the server waits for data or sends them. A session that only sends
    /// statements cannot continue from here.
    Copy(Copied),
}

/// Direction of a COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// Whether the session is in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Outside of a transaction.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a failed transaction: only its end will be accepted.
    Failed,
}

/// A result's columns.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'w>(&'w [u8]);

/// A result's row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'w>(&'w [u8]);

/// Length of a column's description after its name, bytes.
const AFTER_NAME: usize = 18;

impl<'w> Message<'w> {
    /// Parses a message of any kind, except errors and messages that are skipped.
    #[inline]
    pub(super) fn parse(kind: u8, body: &'w [u8]) -> Result<Self, String> {
        Ok(match kind {
            b'D' => Self::DataRow(Row(counted(kind, body)?)),
            b'C' => Self::CommandComplete(body.strip_suffix(&[0]).unwrap_or(body)),
            b'Z' => Self::ReadyForQuery(TransactionStatus::parse(body)?),
            b'2' => Self::BindComplete,
            b'T' => Self::RowDescription(Columns(counted(kind, body)?)),
            b'1' => Self::ParseComplete,
            b'n' => Self::NoData,
            b'I' => Self::EmptyQuery,
            b's' => Self::PortalSuspended,
            b'G' | b'W' => Self::Copy(Copied::In),
            b'H' => Self::Copy(Copied::Out),
            kind => {
                return Err(format!("the server sent an unexpected message of kind {:?}", char::from(kind)));
            }
        })
    }
}

/// The bytes after the number of columns. They fill the message, so the number is not needed.
fn counted(kind: u8, body: &[u8]) -> Result<&[u8], String> {
    body.get(2..).ok_or_else(|| format!("the server's message of kind {:?} is too short", char::from(kind)))
}

impl TransactionStatus {
    fn parse(body: &[u8]) -> Result<Self, String> {
        match body {
            b"I" => Ok(Self::Idle),
            b"T" => Ok(Self::InTransaction),
            b"E" => Ok(Self::Failed),
            other => Err(format!(
                "the server is ready, but in the unknown state {:?}",
                other.escape_ascii().to_string()
            )),
        }
    }
}

impl<'w> Columns<'w> {
    /// Their names in order, in UTF-8.
    pub fn names(self) -> impl Iterator<Item = &'w [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let name = &rest[..end];
            rest = rest.get(end + 1 + AFTER_NAME..)?;
            Some(name)
        })
    }
}

impl<'w> Row<'w> {
    /// Its values in order, as text in UTF-8; none for NULL.
    pub fn values(self) -> impl Iterator<Item = Option<&'w [u8]>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            // A NULL's length is -1.
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                rest = behind;
                return Some(None);
            };
            let (value, behind) = behind.split_at_checked(length)?;
            rest = behind;
            Some(Some(value))
        })
    }
}

/// A notice by which the server ends the session: 57P02, crash_shutdown.
pub(super) fn farewell(notice: &[u8]) -> Option<Box<ServerError>> {
    let ends = notice.split(|byte| *byte == 0).any(|field| field == b"C57P02");
    ends.then(|| Box::new(ServerError::parse(notice)))
}
