//! A job: a thread that carries out the work of some clients.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::time::Instant;

use script::Random;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

use crate::observer::Debugged;
use crate::outcome::LostClient;
use crate::request::Connecting;
use crate::run::client::{Client, Lost, Need};
use crate::run::clock::Clock;
use crate::run::pace::{Schedule, Timetable};
use crate::run::session::Session;
use crate::run::tally::Tally;
use crate::run::waiter::{Until, Waiter};
use crate::run::{JobMessage, Moved, Run};
use server::fault;

/// State that a job's clients share.
pub(crate) struct Common<'r> {
    pub(crate) run: &'r Run,
    pub(crate) timetable: Timetable,
    /// Random numbers for [`script::Scripts::choose`].
    pub(crate) choose: Random,
    /// The schedule; none without a rate.
    schedule: Option<Schedule>,
    waiter: Waiter,
    tell: mpsc::Sender<JobMessage>,
    /// Runtime to connect in, if clients connect during the run.
    runtime: Option<Runtime>,
    job: usize,
}

/// Input of a job.
pub(crate) struct Start {
    /// Number of the job.
    pub(crate) job: usize,
    /// Random numbers: for script choices, and for the schedule.
    pub(crate) randoms: [Random; 2],
    /// Its clients: number, memory, and the connection if there is one already.
    pub(crate) clients: Vec<(usize, script::Client, Option<Session>)>,
    /// Sender of messages. The run ends when all jobs have dropped theirs.
    pub(crate) tell: mpsc::Sender<JobMessage>,
}

impl<'r> Common<'r> {
    fn new(run: &'r Run, timetable: Timetable, start: &Start) -> io::Result<Self> {
        let [choose, throttle] = start.randoms;
        let rate = run.plan.request.rate;
        let schedule = rate.map(|rate| Schedule::new(rate, run.tallies.len(), throttle, &timetable));
        let (waiter, tell) = (Waiter::new(&run.stop_signal)?, start.tell.clone());
        let runtime = match run.plan.request.connecting {
            Connecting::Once => None,
            Connecting::EachTransaction => Some(Builder::new_current_thread().enable_all().build()?),
        };
        Ok(Self { run, timetable, choose, schedule, waiter, tell, runtime, job: start.job })
    }

    pub(crate) fn tally(&self) -> &'r Tally {
        &self.run.tallies[self.job]
    }

    /// Start of the next transaction; none without a rate.
    pub(crate) fn next_start(&mut self, clock: &mut Clock) -> Option<Instant> {
        self.schedule.as_mut().map(|schedule| schedule.next(clock.now()))
    }

    /// Counts transactions that are too late as skipped if they are so many that it would take long to draw their times. With -t, which
    /// counts them, none.
    pub(crate) fn skip_late(&mut self, clock: &mut Clock, is_over: bool, script: usize) {
        let patience = self.run.plan.request.patience(is_over);
        let too_late = patience.and_then(|patience| clock.now().checked_sub(patience));
        let until = self.timetable.end().zip(too_late).map(|(end, too_late)| end.min(too_late));
        if let (Some(schedule), Some(until)) = (&mut self.schedule, until) {
            let skipped = schedule.skip_to(until);
            self.tally().skipped(script, skipped);
        }
    }

    /// Connects a client to a target. The job's other clients have to wait, as in pgbench.
    pub(crate) fn connect(&self, client: usize, target: usize) -> Result<Session, Lost> {
        let Some(runtime) = &self.runtime else {
            return Err(Lost::by_machine("there is no connection"));
        };
        let began = Instant::now();
        let connection = runtime.block_on(async {
            tokio::select! {
                connection = self.run.targets.get(target).connect_raw() => Ok(connection?),
                () = self.run.stop_signal.wait() => Err(Lost::by_machine("interrupted")),
            }
        });
        let session = Session::new(connection?, self.run);
        self.enlist(client, &session)?;
        self.run.connecting_took(began.elapsed());
        Ok(session)
    }

    /// Registers this client's session: the waiter watches it for data, and the run can end its
    /// work.
    pub(crate) fn enlist(&self, client: usize, session: &Session) -> io::Result<()> {
        self.waiter.add(client, &session.wire)?;
        self.run.register(client, session.abort_handle()?);
        Ok(())
    }

    pub(crate) fn tell_lost(&self, lost: LostClient) {
        self.tell(JobMessage::Lost(lost));
    }

    pub(crate) fn tell_moved(&self, moved: Moved) {
        self.tell(JobMessage::Moved(moved));
    }

    /// Reports the argument of `debug()`.
    pub(crate) fn tell_debugged(&self, client: usize, at: (usize, usize), memory: &mut script::Client) {
        for value in memory.debugged() {
            self.tell(JobMessage::Debugged(Debugged { client, at, value: value.described().to_string() }));
        }
    }

    fn tell(&self, message: JobMessage) {
        // The receiver is gone if the run was given up.
        let _ = self.tell.blocking_send(message);
    }

    /// Makes the waiter watch for room in the socket for the unsent rest.
    pub(crate) fn watch_for_room(&self, client: usize, session: &mut Session) -> io::Result<()> {
        let is_full = session.wire.has_unsent();
        if is_full != session.is_full {
            self.waiter.watch_for_room(client, &session.wire, is_full)?;
            session.is_full = is_full;
        }
        Ok(())
    }
}

/// The clients, and the event that each waits for.
struct Queue {
    places: Vec<ScheduledClient>,
    /// Number of the job's first client.
    first: usize,
    /// Clients whose turn it is; each occurs once.
    turns: VecDeque<usize>,
    /// Clients that wait for a time. A client may have continued before that time.
    times: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Number of clients that have not ended.
    left: usize,
}

struct ScheduledClient {
    client: Client,
    need: Need,
    has_turn: bool,
    /// Whether its socket has something to read.
    is_readable: bool,
}

/// Carries out a job. Returns when its last transaction ended.
pub(crate) fn work(run: &Run, timetable: Timetable, start: Start) -> io::Result<Instant> {
    let mut common = Common::new(run, timetable, &start)?;
    let mut queue = Queue::new(&common, start.clients)?;
    let mut is_stopping = false;
    while queue.left > 0 {
        fault::point("tps");
        if run.stop_signal.is_raised() && !is_stopping {
            is_stopping = true;
            queue.stop(&common);
        }
        queue.take_turns(&mut common);
        queue.wait(&mut common)?;
    }
    Ok(Instant::now())
}

impl ScheduledClient {
    fn give_turn(&mut self, index: usize, turns: &mut VecDeque<usize>) {
        if !self.has_turn && self.need != Need::Nothing {
            self.has_turn = true;
            turns.push_back(index);
        }
    }
}

impl Queue {
    fn new(common: &Common<'_>, clients: Vec<(usize, script::Client, Option<Session>)>) -> io::Result<Self> {
        let first = clients.first().map_or(0, |(number, ..)| *number);
        let mut made = Vec::with_capacity(clients.len());
        for (number, memory, session) in clients {
            if let Some(session) = &session {
                common.enlist(number, session)?;
            }
            let client = Client::new(number, memory, session, common);
            made.push(ScheduledClient { client, need: Need::Turn, has_turn: true, is_readable: false });
        }
        let left = made.len();
        let turns = (0..left).collect();
        Ok(Self { places: made, first, turns, times: BinaryHeap::new(), left })
    }

    /// Lets every client whose turn it is continue once.
    fn take_turns(&mut self, common: &mut Common<'_>) {
        for _ in 0..self.turns.len() {
            let Some(index) = self.turns.pop_front() else { return };
            let place = &mut self.places[index];
            place.has_turn = false;
            let is_readable = std::mem::take(&mut place.is_readable);
            let before = std::mem::replace(&mut place.need, place.client.advance(common, is_readable));
            match place.need {
                // The waiter tells.
                Need::Answer => {}
                Need::Time(_) if place.need == before => {}
                Need::Time(time) => self.times.push(Reverse((time, index))),
                Need::Turn => place.give_turn(index, &mut self.turns),
                Need::Nothing => self.left -= 1,
            }
        }
    }

    /// Waits until a client's turn comes.
    fn wait(&mut self, common: &mut Common<'_>) -> io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        let until = match self.times.peek() {
            _ if !self.turns.is_empty() => Until::Now,
            Some(Reverse((time, _))) => Until::Then(*time),
            None => Until::Something,
        };
        let Self { turns, first, places, .. } = self;
        common.waiter.wait(until, |client| {
            let index = client - *first;
            places[index].is_readable = true;
            places[index].give_turn(index, turns);
        })?;
        self.wake();
        Ok(())
    }

    /// Gives a turn to clients whose time has come.
    fn wake(&mut self) {
        if self.times.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(Reverse((time, index))) = self.times.peek()
            && *time <= now
        {
            let place = &mut self.places[*index];
            if place.need == Need::Time(*time) {
                place.give_turn(*index, &mut self.turns);
            }
            self.times.pop();
        }
    }

    /// Ends all clients, except those that wait for the server.
    fn stop(&mut self, common: &Common<'_>) {
        self.turns.clear();
        self.times.clear();
        self.left = 0;
        for place in &mut self.places {
            place.has_turn = false;
            place.need = place.client.stop(common);
            self.left += usize::from(place.need == Need::Answer);
        }
    }
}
