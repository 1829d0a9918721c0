//! The keeper: the book's decisions, carried out. One loop owns the book; whatever takes time is a task that tells
//! the loop what came of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::api::{Refusal, Which};
use super::book::{Action, Answer, Book, Fact, Rules, Ticket};
use super::error::LendError;
use super::fingerprint::Hashes;
use super::hands::Hands;
use super::http::{Door, Hall};
use super::name::{KeeperId, Meaning, meaning};
use super::owner::Owner;
use super::tag::{State, Tag};
use super::time::Time;
use connect::Target;

/// What a keeper is started with.
#[derive(Clone)]
pub struct Opening {
    /// The server; any database of it.
    pub target: Target,
    /// Which keeper this is. No other process may be the same one: its databases would be taken from it.
    pub keeper: KeeperId,
    /// How it works.
    pub rules: Rules,
    /// Whether the server ends with the keeper.
    pub owns_server: bool,
    /// Where it listens for others, to be told; none: it works in the background.
    pub serves: Option<String>,
    /// What a request means that names nothing, and all that requests over TCP may name.
    pub offers: Vec<Offer>,
    /// Where news go: one line each.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// What databases can be made from, as the first of them is told to `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A script or dump, by its absolute path; whether its tables become unlogged.
    File(std::path::PathBuf, bool),
    /// A database of the server.
    Database(String),
}

/// How a keeper ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its work was done, or it was told to end: nothing is lent any more.
    Done,
    /// Another keeper takes its place, and all that is lent.
    Retired,
}

/// What the loop is told.
pub(super) enum Event {
    Fact(Fact),
    /// A request, to be answered.
    Ask(Ticket, Fact, oneshot::Sender<Result<Answer, Refusal>>),
    /// Somebody wants to look something up.
    Look(Box<dyn FnOnce(&Book) + Send>),
    /// Another keeper wants to take over.
    Retire(oneshot::Sender<Result<(), Refusal>>),
}

/// A keeper that knows what is there, and does not listen yet.
pub struct Keeper {
    opening: Arc<Opening>,
    hands: Arc<Hands>,
    version: String,
    book: Book,
    first: Vec<Action>,
}

/// The loop's way to what goes on.
struct Work {
    opening: Arc<Opening>,
    hands: Arc<Hands>,
    events: mpsc::UnboundedSender<Event>,
    asked: HashMap<Ticket, oneshot::Sender<Result<Answer, Refusal>>>,
    /// To stop the making of templates.
    stops: HashMap<String, oneshot::Sender<()>>,
}

impl Keeper {
    /// Connects to the server, and finds out what earlier keepers left there.
    ///
    /// # Errors
    /// [`LendError`], if databases cannot be lent there.
    pub async fn open(opening: Opening) -> Result<Self, LendError> {
        let (hands, ground) = Hands::connect(&opening.target, &opening.keeper).await?;
        let now = Time::now();
        let mut book = Book::new(
            opening.keeper.clone(),
            ground.epoch,
            opening.rules.clone(),
            ground.strategies,
            fastrand::Rng::new(),
            now,
        );
        let first = book.adopt(hands.find().await?, Owner::may_be_alive, now);
        Ok(Self { opening: Arc::new(opening), hands: Arc::new(hands), version: ground.version, book, first })
    }

    /// What SHOW says of durability.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn settings(&self) -> Result<Vec<(String, String)>, LendError> {
        Ok(self.hands.settings().await?)
    }

    /// Answers requests until nothing is left to do, until `stop`, or until another keeper takes over.
    ///
    /// # Errors
    /// If the server goes.
    pub async fn run(self, doors: Vec<Door>, stop: impl Future<Output = ()>) -> Result<Ended, LendError> {
        let Self { opening, hands, version, mut book, first } = self;
        let (events, mut coming) = mpsc::unbounded_channel();
        let hall = Hall::new(Office {
            opening: Arc::clone(&opening),
            hands: Arc::clone(&hands),
            version,
            hashes: Arc::default(),
            events: events.clone(),
            tickets: AtomicU64::new(1),
        });
        for door in doors {
            hall.open(door);
        }
        let (asked, stops) = (HashMap::new(), HashMap::new());
        let mut work = Work { opening, hands: Arc::clone(&hands), events, asked, stops };
        let mut finished = work.all(first);
        let mut stop = std::pin::pin!(stop);
        let mut stopped = false;
        let mut lost = std::pin::pin!(hands.lost());
        while !finished {
            let passed = book.next().map(|next| next.since(Time::now()));
            let fact = tokio::select! {
                Some(event) = coming.recv() => match event {
                    Event::Fact(fact) => fact,
                    Event::Ask(ticket, fact, answer) => {
                        work.asked.insert(ticket, answer);
                        fact
                    }
                    Event::Look(look) => {
                        look(&book);
                        continue;
                    }
                    Event::Retire(answer) => match work.may_retire(&book) {
                        Ok(()) => {
                            let _ = answer.send(Ok(()));
                            hall.close().await;
                            return Ok(Ended::Retired);
                        }
                        Err(refusal) => {
                            let _ = answer.send(Err(refusal));
                            continue;
                        }
                    },
                },
                () = sleep(passed) => Fact::Passed,
                () = &mut stop, if !stopped => {
                    stopped = true;
                    Fact::End
                }
                error = &mut lost => return Err(LendError::ServerGone(error)),
            };
            finished = work.all(book.learn(fact, Time::now()));
        }
        hall.close().await;
        Ok(Ended::Done)
    }
}

/// A little later than that, for a clock that is behind by a fraction of a millisecond; for ever, if there is no time.
async fn sleep(length: Option<Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length + Duration::from_millis(1)).await,
        None => std::future::pending().await,
    }
}

impl Work {
    /// Carries out actions; whether the keeper's work is done.
    fn all(&mut self, actions: Vec<Action>) -> bool {
        let mut finished = false;
        for action in actions {
            finished |= self.begin(action);
        }
        finished
    }

    fn begin(&mut self, action: Action) -> bool {
        let hands = Arc::clone(&self.hands);
        match action {
            Action::Make { template, recipe, tag } => {
                let (stop, stopped) = oneshot::channel();
                self.stops.insert(template.clone(), stop);
                self.spawn(async move {
                    let made = Box::pin(hands.make(&template, &recipe, tag, stopped)).await;
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
                let copied = hands.copy(&template, &name, strategy, &tag).await;
                Some(Fact::Copied { template, name, strategy, copied })
            }),
            Action::Mark { name, tag, change } => self.spawn(async move {
                let marked = hands.mark(&name, &tag).await;
                Some(Fact::Marked { name, change, marked })
            }),
            Action::Touch { name, tag } => {
                let log = Arc::clone(&self.opening.log);
                self.spawn(async move {
                    if let Err(error) = hands.touch(&name, &tag).await {
                        log(&format!("cannot write down that {name} is in use: {error}"));
                    }
                    None
                });
            }
            Action::Drop { name } => {
                let log = Arc::clone(&self.opening.log);
                self.spawn(async move {
                    let dropped = hands.drop_database(&name).await;
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

    /// All that is known stands in the server, so that another keeper can go on with it at any time.
    fn may_retire(&self, book: &Book) -> Result<(), Refusal> {
        if let Some(serves) = &self.opening.serves {
            let error =
                format!("pgrig testdb serve runs already, process {}, at {serves}", std::process::id());
            return Err(Refusal::new(409, error, "use that one, or end it"));
        }
        let counts = book.counts();
        if self.opening.owns_server && counts.lent > 0 {
            let (lent, pid) = (counts.lent, std::process::id());
            let error =
                format!("{lent} databases are lent by keeper process {pid}, whose server would end with it");
            return Err(Refusal::new(
                409,
                error,
                "end their owners, drop them (pgrig testdb list, drop), or start the server for itself: pgrig server \
                 start",
            ));
        }
        Ok(())
    }
}

/// What requests are handled with.
pub(super) struct Office {
    pub(super) opening: Arc<Opening>,
    pub(super) hands: Arc<Hands>,
    pub(super) version: String,
    pub(super) hashes: Arc<Hashes>,
    events: mpsc::UnboundedSender<Event>,
    tickets: AtomicU64,
}

/// A question to the loop whose answer somebody waits for: the client is still there.
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

impl Office {
    /// Asks the loop something that it answers when it is done. Dropped before that, the question is forgotten.
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

    /// Looks something up in the book.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Book) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        let look = Box::new(move |book: &Book| {
            let _ = tell.send(look(book));
        });
        let _ = self.events.send(Event::Look(look));
        told.await.map_err(|_| Refusal::ending())
    }

    /// Makes room for another keeper.
    pub(super) async fn retire(&self) -> Result<(), Refusal> {
        let (answer, answered) = oneshot::channel();
        let _ = self.events.send(Event::Retire(answer));
        answered.await.unwrap_or_else(|_| Err(Refusal::ending()))
    }

    /// A database of pgrig's that is not in the book: another keeper made it.
    pub(super) async fn stray(&self, name: &str) -> Result<bool, Refusal> {
        let found = self.hands.find().await.map_err(Refusal::failed)?;
        Ok(found.iter().any(|found| found.name == name && found.tag.is_some()))
    }

    /// Drops many.
    pub(super) async fn drop_many(&self, which: Which) -> Result<Answer, Refusal> {
        match which {
            Which::Templates => self.ask(|ticket| Fact::DropTemplates { ticket }).await,
            Which::Orphans => {
                let names = self.strays(|tag, lives| !lives && !is_kept(tag)).await?;
                self.ask(|ticket| Fact::DropStrays { ticket, names }).await
            }
            Which::All => {
                if let Some(serves) = &self.opening.serves {
                    let error =
                        format!("pgrig testdb serve runs, process {}, at {serves}", std::process::id());
                    return Err(Refusal::new(409, error, "end it first"));
                }
                let strays = self.strays(|_, _| true).await?;
                self.ask(|ticket| Fact::DropAll { ticket, strays }).await
            }
        }
    }

    /// What is not in the book: what other keepers made, if the condition holds for it and whether its keeper lives, and
    /// what nobody will finish any more.
    async fn strays(&self, condition: impl Fn(&Tag, bool) -> bool) -> Result<Vec<String>, Refusal> {
        // Who had anything in hand then still lives, or will not finish it.
        let found = self.hands.find().await.map_err(Refusal::failed)?;
        let lives = self.hands.living().await.map_err(Refusal::failed)?;
        let own = &self.opening.keeper;
        let strays = found.into_iter().filter(|found| match (meaning(&found.name), &found.tag) {
            (Some(Meaning::Making(keeper)), _) if keeper == *own => !self.hands.is_making(&found.name),
            (Some(Meaning::Making(keeper)), _) => !lives(&keeper),
            (_, Some(tag)) => tag.keeper != *own && condition(tag, lives(&tag.keeper)),
            (_, None) => false,
        });
        Ok(strays.map(|found| found.name).collect())
    }
}

/// Promised to stay until it is dropped by name, also when its keeper has ended for want of work.
fn is_kept(tag: &Tag) -> bool {
    matches!(&tag.state, State::Lent(terms) if terms.kept)
}
