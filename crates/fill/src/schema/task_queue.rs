//! The tasks of a schema fill, and which of them may begin.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::plan::SchemaPlan;

/// Unit of work of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Fills the tables at these places, with their keys and indexes: one table, or a cycle that one transaction loads.
    Tables {
        /// From 0.
        places: Vec<usize>,
    },
    /// Makes a postponed foreign key.
    ForeignKey {
        /// Place of its table.
        place: usize,
        /// Index of the foreign key among those of the table.
        number: usize,
        /// Place of the table that it refers to, if that is one of those to fill.
        referenced: Option<usize>,
    },
}

impl Task {
    /// Places of the tables that no other task may work on meanwhile: for a foreign key both its
    /// tables, because the server locks both.
    fn tables(&self) -> impl Iterator<Item = usize> {
        let places = match self {
            Self::Tables { places } => places.clone(),
            Self::ForeignKey { place, referenced, .. } => [*place].into_iter().chain(*referenced).collect(),
        };
        places.into_iter()
    }

    /// Whether everything that it needs is finished, and its tables are free.
    fn may_begin(&self, state: &TaskState) -> bool {
        match self {
            Self::Tables { .. } => true,
            Self::ForeignKey { .. } => {
                self.tables().all(|table| state.filled.contains(&table) && !state.used.contains(&table))
            }
        }
    }
}

/// Tasks that no lane has begun, and tables in work.
pub(super) struct TaskQueue {
    state: Mutex<TaskState>,
    changed: Notify,
}

#[derive(Default)]
struct TaskState {
    waiting: Vec<Task>,
    /// Tables that are worked on.
    used: HashSet<usize>,
    filled: HashSet<usize>,
    has_failed: bool,
}

impl TaskQueue {
    /// The tables in their order (if filled side by side, the largest ones first), then the foreign
    /// keys.
    pub(super) fn of(plan: &SchemaPlan) -> Self {
        let place_of = |(schema, name): &(String, String)| {
            plan.tables.iter().position(|table| table.schema == *schema && table.name == *name)
        };
        let mut places: Vec<usize> = (0..plan.tables.len()).collect();
        if plan.lanes() > 1 {
            places.sort_by_key(|place| std::cmp::Reverse(plan.tables[*place].predicted));
        }
        // The one whose rows end when all tables have their size.
        places.sort_by_key(|place| plan.tables[*place].recorded.until.is_some());
        let (to_fill, filled): (Vec<usize>, Vec<usize>) =
            places.into_iter().partition(|place| plan.tables[*place].plan().is_some());
        let cycle = |place: usize| plan.tables[place].recorded.cycle.as_ref().map(|cycle| cycle.number);
        let mut groups: Vec<Vec<usize>> = Vec::with_capacity(to_fill.len());
        for place in to_fill {
            match groups.last_mut().filter(|group| cycle(place).is_some() && cycle(group[0]) == cycle(place))
            {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        let mut waiting: Vec<Task> = groups.into_iter().map(|places| Task::Tables { places }).collect();
        for (place, table) in plan.tables.iter().enumerate() {
            let keys = table.recorded.postponed.foreign_keys.iter().enumerate();
            waiting.extend(keys.map(|(number, key)| Task::ForeignKey {
                place,
                number,
                referenced: place_of(&key.referenced),
            }));
        }
        let filled = filled.into_iter().collect();
        Self {
            state: Mutex::new(TaskState { waiting, filled, ..TaskState::default() }),
            changed: Notify::new(),
        }
    }

    /// The next task, once one may begin; none if no more do.
    pub(super) async fn next(&self) -> Option<Task> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.lock();
                if state.has_failed || state.waiting.is_empty() {
                    return None;
                }
                if let Some(at) = state.waiting.iter().position(|task| task.may_begin(&state)) {
                    let task = state.waiting.remove(at);
                    state.used.extend(task.tables());
                    return Some(task);
                }
            }
            changed.await;
        }
    }

    /// Takes note that a task has ended; `well` says whether it succeeded.
    pub(super) fn end(&self, task: &Task, well: bool) {
        let mut state = self.lock();
        for table in task.tables() {
            state.used.remove(&table);
        }
        if let (Task::Tables { places }, true) = (task, well) {
            state.filled.extend(places);
        }
        state.has_failed |= !well;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Resolves once a task has failed.
    pub(super) async fn failed(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.lock().has_failed {
                return;
            }
            changed.await;
        }
    }

    /// Whether all tasks have been done.
    pub(super) fn is_done(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && !state.has_failed
    }

    /// Number of tables that are filled.
    pub(super) fn filled(&self) -> usize {
        self.lock().filled.len()
    }

    fn lock(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().expect("nobody panics holding this")
    }
}
