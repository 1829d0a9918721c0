//! Refuses scripts whose pipelines cannot work, for any values of conditions. pgbench finds that
//! out only during the run.

use super::fault::{Fault, Origin};
use crate::command::{Action, Command};
use crate::error::Problem;

/// Whether a command can be reached outside a pipeline, and within one.
#[derive(Clone, Copy, Default)]
struct Reached {
    outside: bool,
    within: bool,
}

impl Reached {
    fn or(&mut self, other: Self) {
        self.outside |= other.outside;
        self.within |= other.within;
    }
}

/// Follows all paths through the script; jumps only lead forward.
pub(super) fn check(commands: &[Command], places: &[usize]) -> Result<(), Fault> {
    let mut reached = vec![Reached::default(); commands.len() + 1];
    reached[0].outside = true;
    let mut started = 0;
    for (index, Command { action, .. }) in commands.iter().enumerate() {
        let before = reached[index];
        let (after, problem) = match action {
            Action::StartPipeline => {
                started = index;
                (Reached { outside: false, within: before.outside }, Problem::InPipeline)
            }
            Action::SyncPipeline => (Reached { outside: false, ..before }, Problem::NotInPipeline),
            Action::EndPipeline => {
                (Reached { outside: before.within, within: false }, Problem::NotInPipeline)
            }
            Action::Sql(sql) if let Some(receive) = sql.receive() => {
                let name = if receive.every { "aset" } else { "gset" };
                (Reached { within: false, ..before }, Problem::ReceiveInPipeline(name))
            }
            Action::Jump(target) => {
                reached[*target].or(before);
                continue;
            }
            Action::Test { otherwise, .. } => {
                reached[*otherwise].or(before);
                reached[index + 1].or(before);
                continue;
            }
            _ => {
                reached[index + 1].or(before);
                continue;
            }
        };
        let alive = |reached: Reached| reached.outside || reached.within;
        if alive(before) && !alive(after) {
            return Err(Fault::new(problem, Origin::Character(places[index])));
        }
        reached[index + 1].or(after);
    }
    let end = reached[commands.len()];
    if end.within && !end.outside {
        return Err(Fault::new(Problem::PipelineOpen, Origin::Character(places[started])));
    }
    Ok(())
}
