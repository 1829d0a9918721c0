//! `pgrig fill --ladder`: every level of article 000 at the same size, compared.

mod text;

use std::collections::BTreeMap;
use std::pin::pin;

use connect::Connection;
use fill::limits::Limits;
use fill::{self, Conduct, FillError, Plan, Request, SCRATCH_SCHEMA, clear_scratch};
use pgserver::Home;
use serde_json::json;
use server::disturbance::Checkpoints;
use tokio::runtime::Builder;

use server::interruption::{Ended, Stopped, stop, until_stopped};

use crate::app::conduct::{self, Begun, Recording, RunEnd, Shown, disturbances, on_server};
use crate::app::failure::{BadResult, Failure, Usage};
use crate::app::json;
use crate::cmd::fill::{clear_abandoned, records};
use server::{Survey, settle};

use crate::app::interrupt::interrupted;
use crate::app::printer::Printer;
use crate::app::target::Chosen;
use crate::cmd::fill::args::FillArgs;
use crate::cmd::fill::level::LEVELS;
use crate::cmd::fill::progress::FillProgress;

/// A level of the ladder, with its flags.
pub(crate) struct Rung {
    /// The level's name, or that of one of pgrig's own variants.
    pub(crate) name: String,
    /// The level in a few words.
    pub(crate) phrase: String,
    /// The flags for `pgrig fill`.
    pub(crate) flags: &'static str,
    request: Request,
}

impl Rung {
    /// The name for people; documents have `best of 1` for `best like 1`.
    fn shown(&self) -> String {
        self.name.replace("best of", "best like")
    }
}

/// Default number of rounds.
const TRIALS: u16 = 3;

/// pgrig's best way to get the same tables as a level.
const BEST: [(&str, &str, &str); 2] = [
    ("best of 1", "tables of level 1, method chosen by pgrig", "--logged"),
    ("best of 5", "tables of level 5, method chosen by pgrig", "--unlogged --data-only --fillfactor 10"),
];

/// Fills `size` bytes at every level, in several rounds.
pub(crate) fn run(size: u64, arguments: &FillArgs, printer: &Printer) -> Result<(), Failure> {
    refuse_flags(arguments)?;
    let trials = arguments.trials.unwrap_or(TRIALS);
    let schema = arguments.schema.as_deref().unwrap_or(SCRATCH_SCHEMA);
    let rungs = rungs(size, schema)?;
    on_server(&arguments.server, &mut Builder::new_multi_thread(), printer, async |home, chosen| {
        let (connection, survey) =
            conduct::surveyed_for_tables(chosen, arguments.data_directory.as_deref(), printer).await?;
        clear_abandoned(home, chosen, &connection, &survey, printer).await;
        clear_scratch(&chosen.target, schema).await?;
        let flags: BTreeMap<&str, &str> = rungs.iter().map(|rung| (rung.name.as_str(), rung.flags)).collect();
        let begun = Begun {
            verb: "fill",
            save: &arguments.save,
            request: json!({ "ladder": { "size": size, "trials": trials, "levels": flags } }),
            plan: json!({}),
            environment: survey.environment.clone(),
            notes: text::cautions(size, &survey),
        };
        let ladder =
            Ladder { rungs: &rungs, schema, home, chosen, connection: &connection, survey: &survey, printer };
        conduct::recorded(
            begun,
            home,
            chosen,
            printer,
            async |recording| {
                let climbed = ladder.climb(trials, recording).await;
                // Nothing of a ladder is kept, however it ended.
                let cleared = clear_scratch(&chosen.target, schema).await;
                RunEnd::from(climbed.map(|()| cleared))
            },
            async |cleared: Result<(), FillError>, finished| {
                cleared?;
                Ok(Shown::of(vec![text::table(&rungs, &finished.run.trials, &survey)]))
            },
        )
        .await
    })
}

/// Refuses options that contradict the ladder, which fills its own tables in its own ways.
fn refuse_flags(arguments: &FillArgs) -> Result<(), Usage> {
    let plain = FillArgs::of_flags("").map_err(|error| Usage(error.to_string()))?;
    let own = Request { schema: None, ..arguments.request()? };
    let other = plain.request()?;
    if own == other && arguments.limits() == plain.limits() {
        return Ok(());
    }
    let text = "--ladder sets the options of each level: it allows only --schema, --trials, --json and the \
                options of the server. To fill at one level, with any other option, give --level 4 instead of --ladder";
    Err(Usage(text.to_owned()))
}

fn rungs(size: u64, schema: &str) -> Result<Vec<Rung>, Failure> {
    let levels = LEVELS.iter().map(|(level, flags)| (level.name(), level.phrase(), *flags));
    let best = BEST.iter().map(|(name, phrase, flags)| ((*name).to_owned(), (*phrase).to_owned(), *flags));
    levels
        .chain(best)
        .map(|(name, phrase, flags)| {
            let arguments =
                FillArgs::of_flags(&format!("{size}B {flags}")).map_err(|error| Usage(error.to_string()))?;
            let request =
                Request { schema: Some(schema.to_owned()), is_scratch: true, ..arguments.request()? };
            request.check()?;
            Ok(Rung { name, phrase, flags, request })
        })
        .collect()
}

struct Ladder<'a> {
    rungs: &'a [Rung],
    /// Schema of all tables.
    schema: &'a str,
    home: &'a Home,
    chosen: &'a Chosen,
    connection: &'a Connection,
    survey: &'a Survey,
    printer: &'a Printer,
}

impl Ladder<'_> {
    /// Runs the rounds. Each round has all levels in another order, so that none is always first.
    async fn climb(&self, rounds: u16, recording: &mut Recording) -> Result<(), Failure> {
        let (stop, stopped) = stop();
        let climbing = pin!(async {
            let mut random = fastrand::Rng::with_seed(u64::from(rounds));
            for round in 1..=rounds {
                let mut order: Vec<&Rung> = self.rungs.iter().collect();
                random.shuffle(&mut order);
                for rung in order {
                    self.printer.say(format!("round {round} of {rounds}, {}", rung.shown()));
                    self.trial(rung, recording, &stopped).await?;
                    recording.save();
                }
            }
            Ok(())
        });
        match until_stopped(&self.chosen.target, interrupted(self.printer), climbing, || stop.tell()).await {
            Ended::Done(climbed) | Ended::Stopped(Some(climbed)) => climbed,
            Ended::Stopped(None) => Err(BadResult::Stopped.into()),
        }
    }

    async fn trial(&self, rung: &Rung, recording: &mut Recording, stopped: &Stopped) -> Result<(), Failure> {
        clear_scratch(&self.chosen.target, self.schema).await?;
        settle(self.connection, self.survey.environment.server_is_local == Some(true)).await?;
        let plan: Plan = fill::plan(self.survey, self.connection, &rung.request, false).await?;
        let conduct = Conduct {
            volume_monitor: fill::volume_monitor(self.survey, self.connection, &plan, &Limits::default())
                .await?,
            records: Some(records(self.home)),
            ..Conduct::default()
        };
        let before = Checkpoints::so_far(&self.connection.client).await;
        let progress = FillProgress::new(&plan, None, self.printer);
        let interrupt = Box::pin(stopped.told());
        let outcome = fill::run(&self.chosen.target, &plan, conduct, &progress, interrupt).await?;
        drop(progress);
        let after = Checkpoints::so_far(&self.connection.client).await;
        if let Some(note) = disturbances(before, after, outcome.own_checkpoints) {
            let number = recording.run.trials.len() + 1;
            recording.note(format!("trial {number}, {}: {}", rung.shown(), note.text));
        }
        recording.run.plan[&rung.name] = json::value(&plan)?;
        recording.run.trials.push(outcome.trial(&rung.name, &plan, None));
        Ok(())
    }
}
