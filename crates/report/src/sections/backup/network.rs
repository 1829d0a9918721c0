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
    for way in ways {
        let counted = |name: &str| values(run, way, name).last().copied();
        let (received, sent) = (counted("network-received"), counted("network-sent"));
        let both = received.zip(sent).map(|(received, sent)| received + sent);
        let [received, sent, both] = [received, sent, both].map(shown);
        table.add([way.clone(), received, sent, both]);
    }
    let text = "Of one more backup in each way, which was not timed: the bytes of all its connections, as they are on the network.";
    Some(Section {
        text: vec![text.to_owned()],
        first: Some(("Bytes between server and client programs".to_owned(), table)),
        ..Section::new("Network", Vec::new())
    })
}

fn shown(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "not counted".to_owned(), |bytes| Quantity::Bytes.text(bytes))
}
