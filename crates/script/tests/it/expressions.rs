//! Expressions that nobody thought of, compared with pgbench: accepted or refused alike, and the same values.

use std::fmt::Write;

use crate::support::{File, debugged, pgbench, pgbench_on_server};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use script::{Definition, EvaluationError, ScriptError, Scripts, Source, Start, Value};

const VARIABLES: [&str; 4] = ["-D", "a=3", "-D", "b=-1.5"];

/// Expressions with few parentheses, so that precedence matters.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => (0_i64..10).prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        2 => (-20_i32..20).prop_map(|tenths| format!("{:.1}", f64::from(tenths) / 10.0)),
        1 => any::<i16>().prop_map(|number| format!("{:e}", f64::from(number) * 1e-3)),
        2 => Just("true".to_owned()),
        2 => Just("FALSE".to_owned()),
        1 => Just("null".to_owned()),
        2 => Just(":a".to_owned()),
        1 => Just(":b".to_owned()),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let operators = [
            "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "=", "<>", "!=", "&", "|", "#", "<<", ">>", "and", "or",
        ];
        let tests =
            ["is null", "is not null", "isnull", "notnull", "is true", "is not true", "is false", "is not false"];
        let calls = ["abs", "int", "double", "sqrt", "ln", "exp", "debug", "hash"];
        let pairs = ["least", "greatest", "mod", "pow", "hash_fnv1a", "permute"];
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators.to_vec()), inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            2 => (prop::sample::select(vec!["-", "+", "~", "not"]), inner.clone())
                .prop_map(|(operator, operand)| format!("{operator} {operand}")),
            1 => (inner.clone(), prop::sample::select(tests.to_vec()))
                .prop_map(|(operand, test)| format!("{operand} {test}")),
            2 => inner.clone().prop_map(|operand| format!("({operand})")),
            1 => (prop::sample::select(calls.to_vec()), inner.clone())
                .prop_map(|(name, argument)| format!("{name}({argument})")),
            1 => (prop::sample::select(pairs.to_vec()), pair)
                .prop_map(|(name, (first, second))| format!("{name}({first}, {second})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(when, then, otherwise)| format!("case when {when} then {then} else {otherwise} end")),
        ]
    })
}

fn parse(expression: &str) -> Result<Scripts, ScriptError> {
    Scripts::parse(&[Source::file("x.sql", format!("\\set x {expression}\n"), 1)])
}

fn evaluate(scripts: &Scripts) -> Result<Value, EvaluationError> {
    let definitions = [VARIABLES[1], VARIABLES[3]].map(|option| Definition::parse(option).unwrap());
    let start = Start { seed: 42, definitions: &definitions, ..Start::default() };
    let mut client = scripts.start(&start).clients.remove(0);
    scripts[0].proceed(0, &mut client).map_err(|failure| failure.error)?;
    client.variables.value(scripts.names().slot("x").unwrap())
}

/// `abs()` of a boolean is undefined in pgbench: it reads its bits as a number.
fn is_undefined(error: &EvaluationError) -> bool {
    matches!(error, EvaluationError::Coercion { from: "boolean", to: "double" })
}

#[test]
fn random_ones() {
    let mut runner = TestRunner::deterministic();
    let strategy = expression();
    let (mut values, mut failing, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    while values.len() < 1000 {
        let expression = strategy.new_tree(&mut runner).unwrap().current();
        match parse(&expression).map(|scripts| evaluate(&scripts)) {
            Ok(Ok(value)) => values.push((expression, value)),
            Ok(Err(error)) if is_undefined(&error) => {}
            Ok(Err(error)) => failing.push((expression, error.to_string())),
            Err(_) => refused.push(expression),
        }
    }
    assert!(failing.len() > 40 && refused.len() > 20, "{} {}", failing.len(), refused.len());
    assert_values(&values);
    for (expression, error) in &failing[..40] {
        let file = File::of(&format!("\\set x {expression}\n"));
        let Some(theirs) = pgbench_on_server(&[&["-t", "1", "-f", &file.path()], &VARIABLES[..]].concat())
        else {
            return;
        };
        assert!(
            theirs.said.contains(&format!("pgbench: error: {error}\n")),
            "{expression}: {error}, {theirs:?}"
        );
    }
    for expression in &refused[..20] {
        let file = File::of(&format!("\\set x {expression}\n"));
        let Some(theirs) = pgbench(&["-h", "/nowhere", "-f", &file.path()]) else { return };
        assert!(theirs.said.contains(" in command \"set\"\n"), "{expression}: {theirs:?}");
    }
}

/// pgbench has the same values for all of these.
fn assert_values(values: &[(String, Value)]) {
    let mut script = String::new();
    for (expression, _) in values {
        // The marker before each result distinguishes it from output of debug() within the expression.
        writeln!(script, "\\set x {expression}\n\\set m debug(987654321)\n\\set x debug(:x)").unwrap();
    }
    let options = [&["--random-seed=42"], &VARIABLES[..]].concat();
    let Some(theirs) = debugged(&script, &options) else { return };
    let theirs: Vec<&String> =
        theirs.windows(2).filter(|pair| pair[0] == "int 987654321").map(|pair| &pair[1]).collect();
    let ours: Vec<String> = values.iter().map(|(_, value)| value.described().to_string()).collect();
    assert_eq!(ours.len(), theirs.len());
    for (((expression, _), ours), theirs) in values.iter().zip(&ours).zip(theirs) {
        assert_eq!(ours, theirs, "{expression}");
    }
}
