//! The plan: combinations in the order in which they are measured; refusals of variants that cannot be tried.

use crate::bench::error::BenchError;
use crate::bench::request::{BenchRequest, Site, dump};
use crate::bench::run::bench_server::{Active, Content, dangerous};
use crate::bench::variant::{Choice, Means, Missing, Variant};
use crate::clone::Measured;
use futures_util::future::LocalBoxFuture;

/// One combination that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The variant of the database.
    pub variant: Variant,
    /// Number of clients, with a script of transactions.
    pub clients: Option<usize>,
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.clients {
            Some(clients) => write!(f, "{} clients={clients}", self.variant),
            None => self.variant.fmt(f),
        }
    }
}

/// The trials in their order, known once the templates are made.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// The variants, and those that were left out.
    pub choice: Choice,
    /// All combinations of variants and clients.
    pub cells: Vec<Cell>,
    /// Numbers of the cells in the order in which they run. If a warm-up was asked for, it is the
    /// first round.
    pub rounds: Vec<Vec<usize>>,
    /// Whether the first round is a warm-up.
    pub warm_up: bool,
    /// The time of each way to copy the template.
    pub copying: Option<Measured>,
    /// Bytes of the template.
    pub template_size: u64,
    /// Values that SHOW gives without changes.
    pub normal: Active,
}

impl BenchPlan {
    /// Number of all trials, warm-up included.
    pub fn trials(&self) -> usize {
        self.rounds.iter().flatten().count()
    }
}

/// Refuses variants that cannot be tried on that server, before anything is made.
///
/// # Errors
/// [`BenchError::Missing`], for a variant that was asked for.
pub fn check<'a>(
    site: &'a Site<'a>,
    request: &'a BenchRequest,
) -> LocalBoxFuture<'a, Result<Vec<Missing>, BenchError>> {
    Box::pin(async move {
        let mut missing = Vec::new();
        let mut lacks = |means, why: String| missing.push(Missing { means, why });
        if let Content::Empty = request.content {
            let why = "pgrig creates no tables here, so none can be unlogged: give --from FILE or a database to copy (-d)";
            lacks(Means::Unlogged, why.to_owned());
            lacks(
                Means::Template,
                "there is nothing to copy: give --from FILE or a database (-d)".to_owned(),
            );
        }
        match (&site.tmpfs, &request.content) {
            (Err(why), _) => lacks(Means::Tmpfs, why.clone()),
            (Ok(_), Content::Database(name)) => {
                let why = format!(
                    "a server in memory has no copy of database {name}: to measure it, run {}",
                    dump(&site.place, name)
                );
                lacks(Means::Tmpfs, why);
            }
            (Ok(_), Content::Empty | Content::Script(_)) => {}
        }
        if let (Err(how), false) = (&site.own, request.allow_dangerous) {
            let why = format!(
                "fsync and full_page_writes would be off on a server that is not pgrig's own: during the run, a \
                 crash of the machine may corrupt EVERY database of that cluster beyond repair. Use pgrig's own \
                 server ({how}), or accept the risk with --allow-dangerous-settings"
            );
            lacks(Means::Dangerous, why);
        } else if let Err(error) = dangerous().look(site.target).await {
            lacks(Means::Dangerous, error.to_string());
        }
        choose(request, &missing)?;
        Ok(missing)
    })
}

pub(super) fn choose(request: &BenchRequest, missing: &[Missing]) -> Result<Choice, BenchError> {
    Choice::new(request.variants.as_deref(), missing)
        .map_err(|(variant, missing)| BenchError::Missing { variant, missing })
}
