//! Code that the tests share.

use measure::{Environment, Machine, Server};

/// The environment of a part of a run: a server on another machine.
pub(crate) fn environment() -> Environment {
    let version = "PostgreSQL 18.6 on x86_64".to_owned();
    Environment {
        pgrig: "0.1.0 (commit 0123456789ab)".to_owned(),
        server: Server { version, version_num: 180_006, block_size: 8192, settings: Vec::new() },
        database: "d".to_owned(),
        role: "r".to_owned(),
        transport: "tcp h:1".to_owned(),
        client: Machine { system: "Linux".to_owned(), cpu: "a CPU".to_owned(), cores: 2, memory: 1 << 30 },
        server_is_local: Some(false),
        data_volume: None,
    }
}
