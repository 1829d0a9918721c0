//! Bytes between server and client programs.

use measure::Run;

use crate::document::values;
use crate::plot::Table;
use crate::quantity::Quantity;
use crate::sections::Section;

/// The bytes of one more backup of each way; none if they were not to be counted.
pub(super) fn network(run: &Run, ways: &[String]) -> Option<Section> {
    if run.plan["network"] != true {
        return None;
    }
    let mut table = Table::new(&["way", "from the server", "to the server", "both"]);
    let mut has_partial = false;
    for way in ways {
        let counted = |name: &str| values(run, way, name).last().copied();
        let (received, sent) = (counted("network-received"), counted("network-sent"));
        let both = received.zip(sent).map(|(received, sent)| received + sent);
        let [received, sent, mut both] = [received, sent, both].map(shown);
        if is_partial(run, way) {
            has_partial = true;
            both += " (other path)";
        }
        table.add([way.clone(), received, sent, both]);
    }
    let text = "Of one more backup in each way, which was not timed: the bytes of all its connections, as they are on the network.";
    let other = "Other path: most of the backup did not pass these connections, for example because the tool reads the server's files.";
    let text = [Some(text), has_partial.then_some(other)].into_iter().flatten().map(ToOwned::to_owned);
    Some(Section {
        text: text.collect(),
        first: Some(("Bytes between server and client programs".to_owned(), table)),
        ..Section::new("Network", Vec::new())
    })
}

/// Whether most of a backup came by another path than its connections.
fn is_partial(run: &Run, way: &str) -> bool {
    let of_way = run.trials.iter().filter(|trial| trial.config == way);
    of_way.flat_map(|trial| &trial.events).any(|event| event.what["network"]["is_partial"] == true)
}

fn shown(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "not counted".to_owned(), |bytes| Quantity::Bytes.text(bytes))
}
