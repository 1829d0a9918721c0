//! Whether a server has connections for all clients.

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio_postgres::error::SqlState;

use crate::error::TpsError;
use crate::plan::value;
use crate::request::{Connecting, Request};
use crate::run::{CONNECTING_AT_ONCE, make_room_for_files};
use connect::{Connection, Target};

/// Connections beside the clients': pgrig's own, which watch the server.
const OTHER_SESSIONS: i64 = 2;

/// Refuses more clients than the server has connections for, before anything is changed.
///
/// By max_connections and the sessions of now they may be too many. A pooler before the server may take them
/// nevertheless, so pgrig then tries.
///
/// # Errors
/// [`TpsError::Clients`], or if the server cannot be asked.
pub fn refuse_too_many<'a>(
    target: &'a Target,
    connection: &'a Connection,
    request: &'a Request,
) -> LocalBoxFuture<'a, Result<(), TpsError>> {
    Box::pin(async move {
        let clients = request.clients;
        let max_connections: i64 =
            value(connection, "SELECT current_setting('max_connections')::bigint", &[]).await?;
        let taken: i64 = value(connection, include_str!("sql/connections_taken.sql"), &[]).await?;
        let of_part = i64::from(request.part.is_some());
        let most = (max_connections - taken - OTHER_SESSIONS - of_part).max(1);
        let is_short = request.connecting == Connecting::EachTransaction;
        if is_short || i64::try_from(clients).is_ok_and(|clients| clients <= most) {
            return Ok(());
        }
        make_room_for_files(request)?;
        let connect = async |_| target.connect_raw().await;
        let all = stream::iter(0..clients).map(connect).buffered(CONNECTING_AT_ONCE).try_collect::<Vec<_>>();
        match all.await {
            Err(error) if error.sqlstate() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                Err(TpsError::Clients { clients, max_connections, most })
            }
            tried => Ok(tried.map(drop)?),
        }
    })
}
