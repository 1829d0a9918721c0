//! Listeners that are no PostgreSQL.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A listener on a free port of 127.0.0.1 whose connections are answered by `answer`, one at a time, until
/// the test process ends. Returns the port.
pub(crate) fn listen(answer: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer));
    port
}

/// Reads something, says `text`, and hangs up only when the other side does.
pub(crate) fn speaks(text: &'static str) -> u16 {
    listen(move |mut stream| {
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

/// Accepts and never says a word.
pub(crate) fn silent() -> u16 {
    listen(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    })
}

/// A port on which nobody listens.
pub(crate) fn dead_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
