//! Progress of reading a dump: a bar on a terminal, a line every few seconds elsewhere; nothing if it is quick.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use measure::human::bytes;
use testdb::source::Opened;

use crate::app::bar;
use crate::app::numbers::clock;
use crate::app::printer::{Printer, ProgressStyle};

/// Time before the first drawing, and between two drawings.
const BAR_INTERVAL: Duration = Duration::from_millis(250);
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Reads SQL, and shows the progress.
pub(crate) struct Watched<'a> {
    name: &'static str,
    input: Box<dyn Read + Send>,
    /// Number of bytes of the (perhaps compressed) file that have been read, and its size.
    read: Arc<AtomicU64>,
    size: Option<u64>,
    printer: &'a Printer,
    /// Bytes of SQL read so far.
    length: u64,
    started: Instant,
    last_told: Instant,
    bar: Option<ProgressBar>,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(name: &'static str, opened: Opened, size: Option<u64>, printer: &'a Printer) -> Self {
        let now = Instant::now();
        let Opened { sql: input, read, .. } = opened;
        Self { name, input, read, size, printer, length: 0, started: now, last_told: now, bar: None }
    }

    /// Bytes of SQL that have been read.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    fn tell(&mut self) {
        let style = self.printer.progress();
        let interval = match style {
            ProgressStyle::None => return,
            ProgressStyle::Bar => BAR_INTERVAL,
            ProgressStyle::Lines => LINE_INTERVAL,
        };
        if self.last_told.elapsed() < interval {
            return;
        }
        self.last_told = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let read = self.read.load(Ordering::Relaxed);
        let rate = self.length as f64 / 1e6 / seconds;
        let mut text = format!("{}, {rate:.0} MB/s", bytes(self.length));
        // An archive is read by pg_restore: how far is not known.
        let size = self.size.filter(|size| read > 0 && *size > 0);
        if let Some(size) = size {
            let left = seconds * size.saturating_sub(read) as f64 / read as f64;
            text = format!("{text}, {} left", clock(left));
        }
        if style == ProgressStyle::Bar {
            let bar = self.bar.get_or_insert_with(|| new_bar(self.name, size));
            bar.set_position(read);
            bar.set_message(text);
        } else {
            let percent = size.map_or(String::new(), |size| format!("{} %, ", read * 100 / size));
            self.printer.say(format!("{}: {percent}{text}", self.name));
        }
    }
}

fn new_bar(name: &'static str, size: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr_with_hz(8));
    let before = "{prefix:12} ";
    bar.set_style(if size.is_some() { bar::style(before) } else { bar::style_without_end(before) });
    bar.set_prefix(name);
    bar
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.length += bytes as u64;
        self.tell();
        Ok(bytes)
    }
}

impl Drop for Watched<'_> {
    /// Takes the bar off the screen before a result or an error is printed.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
