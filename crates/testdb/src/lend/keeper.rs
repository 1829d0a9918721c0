//! The keeper: carries out the decisions of the state machine. One loop owns the state; everything
//! that takes time is a task, which reports its result to the loop.

use futures_util::future::BoxFuture;
use futures_util::future::LocalBoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::api::{Refusal, Which};
use super::error::LendError;
use super::executor::Executor;
use super::fingerprint::Hashes;
use super::http::{Endpoint, HttpServer};
use super::name::{KeeperId, Meaning, meaning};
use super::owner::Owner;
use super::state::{Action, Answer, Fact, KeeperState, Rules, Ticket};
use super::tag::{Purpose, Tag};
use super::time::Time;
use connect::Target;

/// The configuration of a keeper.
#[derive(Clone)]
pub struct KeeperConfig {
    /// The server; any database of it.
    pub target: Target,
    /// The keeper's id. No other process may have the same one: it would take over its databases.
    pub keeper: KeeperId,
    /// Rules for its databases.
    pub rules: Rules,
    /// Whether the server ends with the keeper.
    pub owns_server: bool,
    /// Its addresses, to be shown; none if it runs in the background.
    pub serves: Option<String>,
    /// The source of a request that names none, and the only sources for requests over TCP.
    pub offers: Vec<Offer>,
    /// Receives one line for each piece of news.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Sources of databases, from the options of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A script or dump, by its absolute path; whether its tables become unlogged.
    File(std::path::PathBuf, bool),
    /// A database of the server.
    Database(String),
}

/// The reason why a keeper's loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its work was done, or it received a request to end: nothing is lent any more.
    Done,
    /// Another keeper takes its place, and all that is lent.
    Retired,
}

/// Message to the keeper's loop.
pub(super) enum Event {
    Fact(Fact),
    /// A request, to be answered.
    Ask(Ticket, Fact, oneshot::Sender<Result<Answer, Refusal>>),
    /// A closure that reads the state.
    Inspect(Box<dyn FnOnce(&KeeperState) + Send>),
    /// Another keeper wants to take over.
    Retire(oneshot::Sender<Result<(), Refusal>>),
}

/// A keeper that has found existing databases, and does not listen yet.
pub struct Keeper {
    config: Arc<KeeperConfig>,
    executor: Arc<Executor>,
    version: String,
    state: KeeperState,
    first: Vec<Action>,
}

/// The tasks that the loop has started.
struct Work {
    config: Arc<KeeperConfig>,
    executor: Arc<Executor>,
    events: mpsc::UnboundedSender<Event>,
    asked: HashMap<Ticket, oneshot::Sender<Result<Answer, Refusal>>>,
    /// Senders that stop the making of templates, by template.
    stops: HashMap<String, oneshot::Sender<()>>,
}

impl Keeper {
    /// Connects to the server, and finds the databases that earlier keepers left there.
    ///
    /// # Errors
    /// [`LendError`], if databases cannot be lent there.
    pub fn open(config: KeeperConfig) -> BoxFuture<'static, Result<Self, LendError>> {
        Box::pin(async move {
            let (executor, server) = Executor::connect(&config.target, &config.keeper).await?;
            let now = Time::now();
            let mut state = KeeperState::new(
                config.keeper.clone(),
                server.epoch,
                config.rules.clone(),
                server.strategies,
                fastrand::Rng::new(),
                now,
            );
            let first = state.adopt(executor.find().await?, Owner::may_be_alive, now);
            Ok(Self {
                config: Arc::new(config),
                executor: Arc::new(executor),
                version: server.version,
                state,
                first,
            })
        })
    }

    /// Durability settings, by SHOW.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn settings(&self) -> Result<Vec<(String, String)>, LendError> {
        Ok(self.executor.settings().await?)
    }

    /// Answers requests until no work is left, until `stop` resolves, or until another keeper takes
    /// over.
    ///
    /// # Errors
    /// If the server ends.
    pub fn run(
        self,
        endpoints: Vec<Endpoint>,
        stop: LocalBoxFuture<'_, ()>,
    ) -> LocalBoxFuture<'_, Result<Ended, LendError>> {
        Box::pin(async move {
            let Self { config, executor, version, mut state, first } = self;
            let (events, mut coming) = mpsc::unbounded_channel();
            let server = HttpServer::new(KeeperHandle {
                config: Arc::clone(&config),
                executor: Arc::clone(&executor),
                version,
                hashes: Arc::default(),
                events: events.clone(),
                tickets: AtomicU64::new(1),
            });
            for endpoint in endpoints {
                server.open(endpoint);
            }
            let (asked, stops) = (HashMap::new(), HashMap::new());
            let mut work = Work { config, executor: Arc::clone(&executor), events, asked, stops };
            let mut finished = work.all(first);
            let mut stop = std::pin::pin!(stop);
            let mut stopped = false;
            let mut lost = std::pin::pin!(executor.lost());
            while !finished {
                let passed = state.next().map(|next| next.since(Time::now()));
                let fact = tokio::select! {
                    Some(event) = coming.recv() => match event {
                        Event::Fact(fact) => fact,
                        Event::Ask(ticket, fact, answer) => {
                            work.asked.insert(ticket, answer);
                            fact
                        }
                        Event::Inspect(inspect) => {
                            inspect(&state);
                            continue;
                        }
                        Event::Retire(answer) => match work.may_retire(&state) {
                            Ok(()) => {
                                let _ = answer.send(Ok(()));
                                server.close().await;
                                return Ok(Ended::Retired);
                            }
                            Err(refusal) => {
                                let _ = answer.send(Err(refusal));
                                continue;
                            }
                        },
                    },
                    () = sleep(passed) => Fact::TimePassed,
                    () = &mut stop, if !stopped => {
                        stopped = true;
                        Fact::Shutdown
                    }
                    error = &mut lost => return Err(LendError::ServerGone(error)),
                };
                finished = work.all(state.learn(fact, Time::now()));
            }
            server.close().await;
            Ok(Ended::Done)
        })
    }
}

/// Sleeps a little longer than this, for a clock that is a fraction of a millisecond behind;
/// without a length, for ever.
async fn sleep(length: Option<Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length + Duration::from_millis(1)).await,
        None => std::future::pending().await,
    }
}

impl Work {
    /// Carries out actions. Returns whether the keeper's work is done.
    fn all(&mut self, actions: Vec<Action>) -> bool {
        let mut finished = false;
        for action in actions {
            finished |= self.begin(action);
        }
        finished
    }

    fn begin(&mut self, action: Action) -> bool {
        let executor = Arc::clone(&self.executor);
        match action {
            Action::Make { template, recipe, tag } => {
                let (stop, stopped) = oneshot::channel();
                self.stops.insert(template.clone(), stop);
                self.spawn(async move {
                    let made = Box::pin(executor.make(&template, &recipe, tag, stopped)).await;
                    Some(Fact::Made { template, made })
                });
            }
            Action::Stop { template } => {
                if let Some(stop) = self.stops.remove(&template) {
                    // It may have been made meanwhile.
                    let _ = stop.send(());
                }
            }
            Action::Copy { template, name, strategy, tag } => self.spawn(async move {
                let copied = executor.copy(&template, &name, strategy, &tag).await;
                Some(Fact::Copied { template, name, strategy, copied })
            }),
            Action::Mark { name, tag, change } => self.spawn(async move {
                let marked = executor.mark(&name, &tag).await;
                Some(Fact::Marked { name, change, marked })
            }),
            Action::Touch { name, tag } => {
                let log = Arc::clone(&self.config.log);
                self.spawn(async move {
                    if let Err(error) = executor.touch(&name, &tag).await {
                        log(&format!("cannot record that {name} is in use: {error}"));
                    }
                    None
                });
            }
            Action::Drop { name } => {
                let log = Arc::clone(&self.config.log);
                self.spawn(async move {
                    let dropped = executor.drop_database(&name).await;
                    if let Err(refusal) = &dropped {
                        log(&refusal.to_string());
                    }
                    Some(Fact::Dropped { name, dropped })
                });
            }
            Action::Watch(owner) => self.spawn(async move {
                // Without a descriptor to watch it by, it is looked at now and then.
                if owner.exit().await.is_err() {
                    while owner.is_alive() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
                Some(Fact::OwnerGone(owner))
            }),
            Action::Answer { ticket, answer } => self.answer(ticket, answer),
            Action::Finish => return true,
        }
        false
    }

    fn spawn(&self, work: impl Future<Output = Option<Fact>> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            if let Some(fact) = work.await {
                // Nobody listens any more when the keeper has ended.
                let _ = events.send(Event::Fact(fact));
            }
        });
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, Refusal>) {
        let Some(asked) = self.asked.remove(&ticket) else { return };
        if let Err(Ok(Answer::Lent { name, .. })) = asked.send(answer) {
            let _ = self.events.send(Event::Fact(Fact::Unclaimed { name }));
        }
    }

    /// Whether another keeper can take over: everything that this one knows must be stored in the
    /// server.
    fn may_retire(&self, state: &KeeperState) -> Result<(), Refusal> {
        if let Some(serves) = &self.config.serves {
            let error =
                format!("pgrig testdb serve is running (process {}), at {serves}", std::process::id());
            return Err(Refusal::new(409, error, "use that one, or end it"));
        }
        let counts = state.counts();
        if self.config.owns_server && counts.lent > 0 {
            let (lent, pid) = (counts.lent, std::process::id());
            let databases = if lent == 1 { "database" } else { "databases" };
            let error = format!(
                "keeper process {pid} has lent {lent} {databases}, and its server would stop with it"
            );
            return Err(Refusal::new(
                409,
                error,
                "end the processes that own them, run pgrig testdb drop, or start the server with pgrig server start",
            ));
        }
        Ok(())
    }
}

/// Access of a request's handler to the keeper: its loop, its executor, its configuration.
pub(super) struct KeeperHandle {
    pub(super) config: Arc<KeeperConfig>,
    pub(super) executor: Arc<Executor>,
    pub(super) version: String,
    pub(super) hashes: Arc<Hashes>,
    events: mpsc::UnboundedSender<Event>,
    tickets: AtomicU64,
}

/// A request to the loop whose client still waits for the answer.
struct Question<'o> {
    events: &'o mpsc::UnboundedSender<Event>,
    ticket: Ticket,
    is_answered: bool,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // The keeper may have ended.
            let _ = self.events.send(Event::Fact(Fact::Forgotten { ticket: self.ticket }));
        }
    }
}

impl KeeperHandle {
    /// Sends a request to the loop and waits for the answer. If this future is dropped, the request
    /// is forgotten.
    pub(super) async fn ask(
        &self,
        fact: impl FnOnce(Ticket) -> Fact + Send + 'static,
    ) -> Result<Answer, Refusal> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let _ = self.events.send(Event::Ask(ticket, fact(ticket), answer));
        let mut question = Question { events: &self.events, ticket, is_answered: false };
        let answer = answered.await;
        question.is_answered = true;
        answer.unwrap_or_else(|_| Err(Refusal::ending()))
    }

    /// Reads the state.
    pub(super) async fn inspect<T: Send + 'static>(
        &self,
        inspect: impl FnOnce(&KeeperState) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        let inspect = Box::new(move |state: &KeeperState| {
            let _ = tell.send(inspect(state));
        });
        let _ = self.events.send(Event::Inspect(inspect));
        told.await.map_err(|_| Refusal::ending())
    }

    /// Ends this keeper, so that another one can take its place.
    pub(super) async fn retire(&self) -> Result<(), Refusal> {
        let (answer, answered) = oneshot::channel();
        let _ = self.events.send(Event::Retire(answer));
        answered.await.unwrap_or_else(|_| Err(Refusal::ending()))
    }

    /// Whether this is a database of pgrig's that is not in the state, because another keeper made
    /// it.
    pub(super) async fn is_foreign(&self, name: &str) -> Result<bool, Refusal> {
        let found = self.executor.find().await.map_err(Refusal::failed)?;
        Ok(found.iter().any(|found| found.name == name && found.tag.is_some()))
    }

    /// Drops the databases that `which` names.
    pub(super) async fn drop_many(&self, which: Which) -> Result<Answer, Refusal> {
        match which {
            Which::Templates => self.ask(|ticket| Fact::DropTemplates { ticket }).await,
            Which::Orphans => {
                let names = self.foreign(|tag, lives| !lives && !is_kept(tag)).await?;
                self.ask(|ticket| Fact::DropForeign { ticket, names }).await
            }
            Which::All => {
                if let Some(serves) = &self.config.serves {
                    let error = format!(
                        "pgrig testdb serve is running (process {}), at {serves}",
                        std::process::id()
                    );
                    return Err(Refusal::new(409, error, "end it first"));
                }
                let foreign = self.foreign(|_, _| true).await?;
                self.ask(|ticket| Fact::DropAll { ticket, foreign }).await
            }
        }
    }

    /// Databases that are not in the state: those of other keepers for which `condition` holds (it
    /// gets the tag, and whether that keeper lives), and unfinished ones that no keeper will
    /// finish.
    async fn foreign(&self, condition: impl Fn(&Tag, bool) -> bool) -> Result<Vec<String>, Refusal> {
        // The databases are looked up before the keepers: a keeper that had an unfinished database by then still
        // lives, or will not finish it.
        let found = self.executor.find().await.map_err(Refusal::failed)?;
        let lives = self.executor.live_keepers().await.map_err(Refusal::failed)?;
        let own = &self.config.keeper;
        let foreign = found.into_iter().filter(|found| match (meaning(&found.name), &found.tag) {
            (Some(Meaning::Making(keeper)), _) if keeper == *own => !self.executor.is_making(&found.name),
            (Some(Meaning::Making(keeper)), _) => !lives(&keeper),
            (_, Some(tag)) => tag.keeper != *own && condition(tag, lives(&tag.keeper)),
            (_, None) => false,
        });
        Ok(foreign.map(|found| found.name).collect())
    }
}

/// Whether the database stays until it is dropped by name, even after its keeper has ended.
fn is_kept(tag: &Tag) -> bool {
    matches!(&tag.state, Purpose::Lent(terms) if terms.kept)
}
