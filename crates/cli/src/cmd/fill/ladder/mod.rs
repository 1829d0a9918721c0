//! `pgrig fill --ladder`: every level of article 000 at the same size, compared.

mod text;

use std::collections::BTreeMap;
use std::pin::pin;

use connect::Connection;
use fill::{self, Conduct, Plan, Request, SCRATCH_SCHEMA, clear_scratch};
use measure::{FORMAT_VERSION, Note, Run, Status};
use pgserver::Home;
use serde_json::json;
use server::disturbance::Checkpoints;
use tokio::runtime::Builder;
use tokio::sync::watch;

use server::interruption::{Ended, until_stopped};

use crate::app::json;
use crate::app::failure::{Failure, Unhappy, Usage};
use crate::cmd::fill::{clear_abandoned, disturbances, farewell, on_server, records};
use server::{Survey, settle};

use crate::app::args::{FillArgs, LEVELS};
use crate::app::interrupt::{self, interrupted};
use crate::app::printer::Printer;
use crate::app::runs::{RunFile, identify};
use crate::app::target::Chosen;
use crate::app::version::VERSION;
use crate::cmd::fill::progress::FillProgress;

/// A way to fill, and its flags.
pub(crate) struct Rung {
    /// The level's name, or one of pgrig's own choice.
    pub(crate) name: String,
    /// What it is, in a few words.
    pub(crate) phrase: String,
    /// As given to `pgrig fill`.
    pub(crate) flags: &'static str,
    request: Request,
}

/// Rounds, if nothing is said.
const TRIALS: u16 = 3;

/// pgrig's own choice for what a level makes.
const BEST: [(&str, &str, &str); 2] = [
    ("best of 1", "pgrig's choice for 1", "--logged"),
    ("best of 5", "pgrig's choice for 5", "--unlogged --data-only --fillfactor 10"),
];

/// Fills `size` bytes at every level, again and again.
pub(crate) fn run(size: u64, arguments: &FillArgs, printer: &Printer) -> Result<(), Failure> {
    refuse_flags(arguments)?;
    let trials = arguments.trials.unwrap_or(TRIALS);
    let rungs = rungs(size)?;
    on_server(&arguments.server, &mut Builder::new_multi_thread(), printer, async |home, chosen| {
        let connection = chosen.connect(printer).await?;
        let survey = Survey::for_tables(
            &connection,
            &chosen.data_directory(arguments.data_directory.as_deref())?,
            VERSION,
        )
        .await?;
        clear_abandoned(home, chosen, &connection, &survey, printer).await;
        clear_scratch(&chosen.target).await?;
        let (id, started_at) = identify("fill");
        let mut file = RunFile::new(home.root(), &id, arguments.save.json.as_deref())?;
        let flags: BTreeMap<&str, &str> = rungs.iter().map(|rung| (rung.name.as_str(), rung.flags)).collect();
        let mut run = Run {
            format_version: FORMAT_VERSION,
            id,
            verb: "fill".to_owned(),
            label: arguments.save.label.clone(),
            started_at,
            status: Status::Unfinished,
            request: json!({ "ladder": { "size": size, "trials": trials, "levels": flags } }),
            plan: json!({}),
            environment: survey.environment.clone(),
            trials: Vec::new(),
            notes: text::cautions(size, &survey),
        };
        file.save(&run)?;
        let ladder =
            Ladder { rungs: &rungs, home, chosen, connection: &connection, survey: &survey, printer };
        let climbed = ladder.climb(trials, &mut run, &file).await;
        // Nothing of a ladder is kept, however it ended.
        let cleared = clear_scratch(&chosen.target).await;
        if let Err(error) = &climbed {
            run.status = if interrupt::was_asked() { Status::Interrupted } else { Status::Failed };
            run.notes.push(Note { text: error.to_string() });
        } else {
            run.status = Status::Done;
        }
        file.finish(&run)?;
        climbed?;
        cleared?;
        printer.result(text::table(&rungs, &run.trials, &survey))?;
        printer.say("");
        for note in &run.notes {
            printer.say(format!("note: {}", note.text));
        }
        farewell(chosen, &file, printer);
        Ok(())
    })
}

/// A ladder fills its own tables in its own ways.
fn refuse_flags(arguments: &FillArgs) -> Result<(), Usage> {
    let plain = FillArgs::of_flags("").map_err(|error| Usage(error.to_string()))?;
    let own = arguments.request()?;
    let other = plain.request()?;
    if own == other && arguments.limits() == plain.limits() {
        return Ok(());
    }
    Err(Usage(format!(
        "--ladder goes through the levels' own flags, in its own schema {SCRATCH_SCHEMA}: only --trials, --json and \
         the server's options go with it. For one level with other flags: pgrig fill SIZE --level N …"
    )))
}

fn rungs(size: u64) -> Result<Vec<Rung>, Failure> {
    let levels = LEVELS.iter().map(|(level, flags)| (level.name(), level.phrase(), *flags));
    let best = BEST.iter().map(|(name, phrase, flags)| ((*name).to_owned(), (*phrase).to_owned(), *flags));
    levels
        .chain(best)
        .map(|(name, phrase, flags)| {
            let arguments = FillArgs::of_flags(&format!("{size}B --schema {SCRATCH_SCHEMA} {flags}"))
                .map_err(|error| Usage(error.to_string()))?;
            Ok(Rung { name, phrase, flags, request: arguments.request()? })
        })
        .collect()
}

struct Ladder<'a> {
    rungs: &'a [Rung],
    home: &'a Home,
    chosen: &'a Chosen,
    connection: &'a Connection,
    survey: &'a Survey,
    printer: &'a Printer,
}

impl Ladder<'_> {
    /// Rounds of all rungs, each in another order, so that none is always first.
    async fn climb(&self, rounds: u16, run: &mut Run, file: &RunFile) -> Result<(), Failure> {
        let (stop, stopped) = watch::channel(false);
        let climbing = pin!(async {
            let mut random = fastrand::Rng::with_seed(u64::from(rounds));
            for round in 1..=rounds {
                let mut order: Vec<&Rung> = self.rungs.iter().collect();
                random.shuffle(&mut order);
                for rung in order {
                    self.printer.say(format!("round {round} of {rounds}, {}", rung.name));
                    self.trial(rung, run, stopped.clone()).await?;
                    file.save(run)?;
                }
            }
            Ok(())
        });
        let stop = || {
            stop.send_replace(true);
        };
        match until_stopped(&self.chosen.target, interrupted(self.printer), climbing, stop).await {
            Ended::Done(climbed) | Ended::Stopped(Some(climbed)) => climbed,
            Ended::Stopped(None) => Err(Unhappy::Stopped.into()),
        }
    }

    async fn trial(
        &self,
        rung: &Rung,
        run: &mut Run,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        clear_scratch(&self.chosen.target).await?;
        settle(self.connection, self.survey.environment.server_is_local == Some(true)).await?;
        let plan: Plan = fill::plan(self.survey, self.connection, &rung.request, false).await?;
        let conduct = Conduct {
            sight: fill::sight(self.survey, self.connection, &plan).await?,
            records: Some(records(self.home)),
            ..Conduct::default()
        };
        let before = Checkpoints::so_far(&self.connection.client).await;
        let progress = FillProgress::new(&plan, None, self.printer);
        let interrupt = async {
            // The sender outlives this.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let outcome = Box::pin(fill::run(&self.chosen.target, &plan, conduct, &progress, interrupt)).await?;
        drop(progress);
        let after = Checkpoints::so_far(&self.connection.client).await;
        if let Some(note) = disturbances(before, after, outcome.own_checkpoints) {
            run.notes
                .push(Note { text: format!("trial {}, {}: {}", run.trials.len() + 1, rung.name, note.text) });
        }
        run.plan[&rung.name] = json::value(&plan)?;
        run.trials.push(outcome.trial(&rung.name, &plan, None));
        Ok(())
    }
}
