//! Whatever the text, it is a script or it is said what is wrong with it.

use proptest::prelude::*;
use script::{Action, Scripts, Source, Start};

/// Texts of what scripts are made of, in any order.
fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "SELECT ",
        ":x",
        "::",
        ":",
        ";",
        "\\;",
        "\n",
        "\r\n",
        " ",
        "\t",
        "'",
        "''",
        "E'",
        "\\'",
        "\"",
        "$$",
        "$a$",
        "$1",
        "/*",
        "*/",
        "--",
        "(",
        ")",
        "1",
        "1.5",
        "e9",
        "größe",
        "\\",
        "\\\n",
        "\\set ",
        "x ",
        "\\if ",
        "\\elif ",
        "\\else",
        "\\endif",
        "\\gset ",
        "\\aset",
        "\\sleep ",
        "ms",
        "\\shell ",
        "\\setshell ",
        "\\startpipeline",
        "\\endpipeline",
        "+",
        "-",
        "<",
        "not ",
        "is null ",
        "case when ",
        "then ",
        "end",
        "abs(",
        "least(",
        ",",
        "random(1, 9)",
        "CREATE FUNCTION f() BEGIN ",
        "END",
        "\u{0}",
        "🐘",
    ];
    let piece =
        prop_oneof![9 => prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 1 => ".{0,3}"];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn is_read(text in text()) {
        match Scripts::parse(&[Source::file("any", text.as_str(), 1)]) {
            Ok(scripts) => check_accepted(&scripts, &text)?,
            Err(error) => {
                let shown = error.to_string();
                if error.line > 0 {
                    let line = text.split('\n').nth(error.line - 1).expect("it has so many lines");
                    prop_assert_eq!(line.trim_end_matches('\r'), &*error.text);
                    let begin = format!("any:{}: {}", error.line, error.problem);
                    prop_assert!(shown.starts_with(&begin), "{}", shown);
                }
                if let Some(column) = error.column {
                    prop_assert!(column <= error.text.chars().count() + 1);
                }
            }
        }
    }

    /// Statements are what is between semicolons, if nothing hides those.
    #[test]
    fn is_split(statements in prop::collection::vec("[a-z ,=*+0-9]{0,9}[a-z]", 1..9)) {
        let text: String = statements.iter().flat_map(|statement| [statement.as_str(), " ; "]).collect();
        let scripts = Scripts::parse(&[Source::file("any", text, 1)]).unwrap();
        let expected: Vec<String> =
            statements.iter().map(|statement| format!("{} ;", statement.trim_start())).collect();
        let texts: Vec<&str> = scripts[0].commands().iter().map(script::Command::text).collect();
        prop_assert_eq!(texts, expected);
    }
}

/// It can be carried out to its end: jumps lead forward, and texts of statements are whole.
fn check_accepted(scripts: &Scripts, text: &str) -> Result<(), TestCaseError> {
    let (script, mut client) = (&scripts[0], scripts.start(&Start::default()).clients.remove(0));
    prop_assert!(!script.commands().is_empty());
    let mut at = 0;
    while let Ok(Some(command)) = script.proceed(at, &mut client) {
        prop_assert!(command >= at);
        at = command + 1;
        let Action::Sql(sql) = script.commands()[command].action() else { continue };
        prop_assert_eq!(
            sql.parameterised().matches('$').count(),
            sql.text().matches('$').count() + sql.parameters().len()
        );
        // Only \; is changed.
        for line in sql.text().split([';', ':']) {
            prop_assert!(text.contains(line), "{}", line);
        }
    }
    for command in script.commands() {
        if let Action::Jump(target) | Action::Test { otherwise: target, .. } = command.action() {
            prop_assert!(*target <= script.commands().len());
        }
    }
    Ok(())
}
