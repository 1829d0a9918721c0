//! Runs of pgbench's scripts on real servers, the oldest release and the newest.

mod tps_support;

use workload::tps::{Connecting, End, Length, Outcome, Protocol};

use tps_support::{PROTOCOLS, on_newest, on_servers, request};

/// pgbench's tables agree with each other, and with so many transactions.
const BALANCED: &str = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = sum(delta) \
                        AND (SELECT sum(bbalance) FROM pgbench_branches) = sum(delta) \
                        AND (SELECT sum(tbalance) FROM pgbench_tellers) = sum(delta) FROM pgbench_history";
const HISTORY: &str = "SELECT concat_ws(',', tid, bid, aid, delta) FROM pgbench_history ORDER BY 1";

fn is_complete(outcome: &Outcome) -> bool {
    outcome.end == End::Complete && outcome.lost.is_empty()
}

#[test]
fn every_protocol_makes_the_history_that_pgbench_makes() {
    on_servers(|database| {
        let arguments = ["-c", "5", "-j", "2", "-t", "20", "--random-seed", "42"];
        if !database.pgbench(&arguments) {
            return;
        }
        let expected = database.column(HISTORY);
        assert_eq!(expected.len(), 100);
        for (protocol, connecting) in [
            (Protocol::Simple, Connecting::Once),
            (Protocol::Extended, Connecting::Once),
            (Protocol::Prepared, Connecting::Once),
            (Protocol::Prepared, Connecting::EachTransaction),
        ] {
            let mut request = request("tpcb-like");
            (request.clients, request.jobs) = (5, 2);
            request.length = Length::Transactions(20);
            (request.protocol, request.connecting) = (protocol, connecting);
            let outcome = database.run(request);
            assert!(is_complete(&outcome), "{:?}", outcome.lost);
            assert_eq!(outcome.all.counts.succeeded, 100);
            // The history was emptied before.
            assert_eq!(database.column(HISTORY), expected, "{protocol:?} {connecting:?}");
            let connections = if connecting == Connecting::Once { 5 } else { 100 };
            assert_eq!(outcome.connections, connections);
        }
        assert_eq!(database.value("SELECT count(*) FROM pgbench_history"), "100");
    });
}
