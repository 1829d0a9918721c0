//! Other sessions on the server, whose WAL counts as that of the statements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ddl::Amount;
use testkit::{RELEASES, Server, block_on};

use crate::support::{SHOP, Warned, measured_by, request, server};

/// Writes rows in a database of its own until it is over.
fn write(server: &Server, is_over: &AtomicBool) {
    block_on(async {
        let beside = server.connect("beside").await;
        while !is_over.load(Ordering::Relaxed) {
            beside.client.batch_execute("INSERT INTO w SELECT generate_series(1, 200)").await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        beside.close().await;
    });
}

#[test]
fn the_work_of_other_sessions_is_told() {
    for release in RELEASES {
        let server = server(release);
        server.sql("CREATE DATABASE beside");
        block_on(async {
            let beside = server.connect("beside").await;
            beside.client.batch_execute("CREATE TABLE w (n int)").await.unwrap();
            beside.close().await;
        });
        // Sessions report their counters about once a second.
        let request = request(SHOP, "SELECT pg_sleep(3); ALTER TABLE orders ADD a int", Amount::Rows(100));
        let told = |is_busy: bool| {
            let is_over = AtomicBool::new(false);
            let (measured, warned) = std::thread::scope(|scope| {
                if is_busy {
                    scope.spawn(|| write(&server, &is_over));
                }
                let mut warned = Warned::default();
                let measured = measured_by(&server, &request, &mut warned);
                is_over.store(true, Ordering::Relaxed);
                (measured, warned)
            });
            assert!(measured.is_ok(), "{release}: {measured:?}");
            warned.0.join("\n")
        };
        let quiet = told(false);
        assert!(!quiet.contains("other sessions"), "{release}: {quiet}");
        let busy = told(true);
        assert!(
            busy.contains("other sessions wrote in other databases of the server (beside: "),
            "{release}: {busy}"
        );
    }
}
