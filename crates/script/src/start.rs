//! Clients and threads at the start of a run, with the variables and random numbers that pgbench gives them.

use std::ops::Range;
use std::sync::Arc;

use crate::option::Definition;
use crate::random::Random;
use crate::run::Client;
use crate::scripts::Scripts;
use crate::variables::Variables;

/// Initial state of a run's clients.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// `--random-seed`; also the variable `random_seed`.
    pub seed: u64,
    /// Number of clients, at least 1.
    pub clients: usize,
    /// Number of threads, at least 1; no more than clients are used.
    pub threads: usize,
    /// The variable `scale`.
    pub scale: i64,
    /// Index of the process among those that put load on the server together, and their number, at least 1. Each has so
    /// many clients and threads. Clients are numbered over all processes.
    pub part: (usize, usize),
    /// Variables given with -D. They replace preset ones of the same name.
    pub definitions: &'a [Definition],
}

/// One client, one thread, scale 1, seed 0.
impl Default for Start<'_> {
    fn default() -> Self {
        Self { seed: 0, clients: 1, threads: 1, scale: 1, part: (0, 1), definitions: &[] }
    }
}

/// Clients and threads of a run.
#[derive(Clone, Debug)]
pub struct Started {
    /// The clients, by number.
    pub clients: Vec<Client>,
    /// The threads, by number.
    pub threads: Vec<Thread>,
}

/// The state that pgbench keeps for each thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Indexes of this thread's clients in `Started::clients`.
    pub clients: Range<usize>,
    /// Random numbers for [`Scripts::choose`].
    pub choose: Random,
    /// Random numbers for the delays of `--rate`: [`Random::delay`].
    pub throttle: Random,
}

impl Scripts {
    /// Makes clients and threads. Their random numbers are derived from the seed in pgbench's
    /// order, so that with the same numbers of clients and threads each gets the same random
    /// numbers as in pgbench. The clients of several processes get those of the same clients in one process.
    pub fn start(&self, start: &Start<'_>) -> Started {
        let (part, parts) = start.part;
        let mut base = Random::seeded(start.seed);
        let randoms: Vec<Random> = (0..start.clients * parts).map(|_| base.derive()).collect();
        let variables = self.first_variables(start, &mut base);
        let own = randoms.into_iter().enumerate().skip(part * start.clients).take(start.clients);
        let clients = own.map(|(number, random)| {
            let mut variables = variables.clone();
            variables.preset("client_id", i64::try_from(number).unwrap_or(i64::MAX));
            Client::new(variables, random)
        });
        let clients = clients.collect();
        let count = start.threads.min(start.clients);
        let mut given = 0;
        let mut derive = || (base.derive(), base.derive(), base.derive());
        // Those of the parts before.
        for _ in 0..count * part {
            derive();
        }
        let threads = (0..count).map(|number| {
            let (choose, throttle, _sample) = derive();
            let left = count - number;
            let first = given;
            given += (start.clients - given).div_ceil(left);
            Thread { clients: first..given, choose, throttle }
        });
        let threads = threads.collect();
        Started { clients, threads }
    }

    /// Sets the variables that all clients share.
    #[expect(clippy::cast_possible_wrap, reason = "seeds are 64 bits; as variables they are signed")]
    fn first_variables(&self, start: &Start<'_>, base: &mut Random) -> Variables {
        let mut variables = Variables::new(Arc::clone(self.names()));
        for definition in start.definitions {
            if let Some(slot) = self.names().slot(&definition.name) {
                variables.set_text(slot, &definition.text);
            }
        }
        variables.preset("scale", start.scale);
        // The number is drawn only where it is used: the threads' sequences come after it.
        if !start.definitions.iter().any(|definition| definition.name == "default_seed") {
            variables.preset("default_seed", base.next() as i64);
        }
        variables.preset("random_seed", start.seed as i64);
        variables
    }
}
