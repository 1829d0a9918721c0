//! No picture: pgrig was built without the feature `live`, so a run shows lines.

use std::io;

use crate::cmd::tps::live::history::History;

/// There is none.
pub(crate) enum Screen {}

impl Screen {
    pub(crate) fn open() -> Option<Self> {
        None
    }

    pub(crate) fn draw(&mut self, _: &History) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn tell(&mut self, _: &str) -> io::Result<()> {
        match *self {}
    }
}
