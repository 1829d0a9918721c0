//! Values, compared with pgbench's own: the same script, the same seed.

use crate::support::{debugged, pgbench_on_server};
use script::{Action, Client, Definition, Scripts, Source, Start};

/// The output of the clients' `debug()` for one script of meta commands.
fn ours(text: &str, start: &Start<'_>) -> Vec<String> {
    let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut started = scripts.start(start);
    started.clients.iter_mut().flat_map(|client| said(&scripts, client)).collect()
}

fn said(scripts: &Scripts, client: &mut Client) -> Vec<String> {
    let left = scripts[0]
        .proceed(0, client)
        .unwrap_or_else(|failure| panic!("{failure}: {}", scripts[0].commands()[failure.command].text()));
    assert_eq!(left, None, "only meta commands");
    client.debugged().map(|value| value.described().to_string()).collect()
}

fn debugging(expressions: &[&str]) -> String {
    let lines: Vec<String> =
        expressions.iter().map(|expression| format!("\\set x debug({expression})\n")).collect();
    lines.concat()
}

fn assert_same(expressions: &[&str], seed: u64) {
    let script = debugging(expressions);
    let Some(theirs) = debugged(&script, &[&format!("--random-seed={seed}")]) else {
        return;
    };
    let ours = ours(&script, &Start { seed, ..Start::default() });
    for ((expression, theirs), ours) in expressions.iter().zip(&theirs).zip(&ours) {
        assert_eq!(ours, theirs, "{expression}");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn operators() {
    assert_same(
        &[
            "1 + 2 * 3 - 4 / 3 % 2",
            "-7 / 2",
            "-7 % 3",
            "7 % -3",
            "7.5 / 2",
            "1 / 2.0",
            "-9223372036854775808",
            "- 5 - -5",
            "9223372036854775807 - 1",
            "2 - 3 - 4",
            "2 * 3 + 4 * 5",
            "+ 5",
            "-2.5",
            "-0.0",
            "0.0 * -1",
            "1 | 6 & 3 # 8",
            "~5",
            "~1 + 2",
            "~ 1 | 2",
            "- ~ 1 + 2",
            "1 << 2 + 3",
            "1 << 64",
            "1 << -1",
            "-8 >> 1",
            "5 >> 65",
            "7 # 2 << 1",
            "1.5 + 1 << 2",
            "3 & 2.6",
            "1 < 2",
            "2 > 3",
            "3 > 3",
            "3 >= 3",
            "3 < 3",
            "3 <= 3",
            "3.5 > 3.5",
            "3.5 <= 3.5",
            "2 >= 2.0",
            "1 <> 1.5",
            "1 != 1",
            "1 = 1.0",
            "not 1 = 2",
            "not not true",
            "not true or true",
            "true or false and false",
            "true and null",
            "null and false",
            "false and null",
            "null or true",
            "false or null",
            "not null",
            "null is null",
            "1 is null",
            "1 isnull",
            "1 notnull",
            "null isnull isnull",
            "true is not false",
            "1 is true",
            "1 = 1 is true",
            "not 1 is null",
            "null + 1",
            "null = null",
            "9007199254740993 = 9007199254740992.0",
            "1e3",
            ".5e-3",
            "5.",
            "1.5E+2",
            "1e15",
            "123456789012345678",
            "1e-5",
            "1.0 / 0",
            "-1.0 / 0",
            "0.0 / 0",
            "1",
        ],
        1,
    );
}

#[test]
fn functions() {
    assert_same(
        &[
            "abs(-17)",
            "abs(-1.5)",
            "ABS(null)",
            "abs(-9223372036854775808)",
            "debug(debug(5.432))",
            "debug(true)",
            "double(5432)",
            "exp(1.0)",
            "exp(1)",
            "exp(1000)",
            "greatest(5, 4, 3, 2)",
            "greatest(5, 4.5)",
            "greatest(1)",
            "greatest(1, null)",
            "least(5, 4, 3, 2.1)",
            "least(-1, 1)",
            "least(, 7)",
            "least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
            "least(9007199254740993, 1e300)",
            "greatest(ln(-1), 1)",
            "greatest(1, ln(-1))",
            "least(ln(-1), 1)",
            "int(5.4 + 3.8)",
            "int(2.5)",
            "int(3.5)",
            "int(-2.5)",
            "int(9.2e18)",
            "ln(2.718281828459045)",
            "ln(0)",
            "ln(-1)",
            "mod(54, 32)",
            "mod(-9223372036854775808, -1)",
            "mod(7.6, 3)",
            "pi()",
            "pow(2.0, 10)",
            "power(2, 0.5)",
            "pow(0, -1)",
            "pow(-8, 1.0 / 3)",
            "sqrt(2)",
            "sqrt(-1)",
            "hash(10)",
            "hash(10, 5432)",
            "hash_murmur2(10, -1)",
            "hash_fnv1a(10, 5432)",
            "hash_fnv1a(-1)",
            "hash(10.6, 3)",
            "hash(null)",
            "permute(0, 4)",
            "permute(0, 4, 5432)",
            "permute(123456789, 1000003, 7)",
            "permute(-1, 10, 2)",
            "permute(5, 1, 2)",
            "permute(1, 2, 3)",
            "permute(2, 3, 3)",
            "permute(9223372036854775807, 9223372036854775807, -9)",
            "permute(-9223372036854775808, 4611686018427387905, 11)",
            "permute(null, 4)",
            "case when 1 = 2 then 1 when null then 2 when 0.0 then 3 when 2 then 4 else 5 end",
            "case when false then 1 end",
            "case when true then 1 / 1 else 1 / 0 end",
            "false and 1 / 0 = 1",
            "true or 1 / 0 = 1",
            "case when 1 then case when 0 then 1 else 2 end end",
            ":scale * 10",
            ":client_id",
            ":random_seed",
            ":default_seed",
        ],
        9_876_543_210,
    );
}

/// Whichever way the distributions go: small and large ranges, parameters at their limits.
const RANDOM: [&str; 24] = [
    "random(1, 5)",
    "random(0, 0)",
    "random(-100, 100)",
    "random(1, 9223372036854775807)",
    "random(-4611686018427387904, 4611686018427387902)",
    "random(1, 100000 * :scale)",
    "random(1.4, 9.6)",
    "random_exponential(1, 10, 2.5)",
    "random_exponential(-1000000, 1000000, 0.001)",
    "random_exponential(1, 9223372036854775807, 1e-300)",
    "random_exponential(1, 100, 700)",
    "random_gaussian(1, 10, 2)",
    "random_gaussian(1, 10, 2.5)",
    "random_gaussian(-1000000, 1000000, 100.0)",
    "random_gaussian(1, 1, 5)",
    "random_zipfian(1, 10, 1.5)",
    "random_zipfian(1, 1000000, 1.001)",
    "random_zipfian(1, 1000000, 2.5)",
    "random_zipfian(5, 5, 1.5)",
    "random_zipfian(1, 2, 1000)",
    "random_zipfian(-9223372036854775807, -1, 1.2)",
    "random(1, 10) > random(2, 2000)",
    "random(1, 10) >= random(2, 2000) or random(1, 2) = 1",
    "hash(random(1, 1000000))",
];

#[test]
fn random_numbers_of_many_seeds() {
    let expressions: Vec<&str> = RANDOM.into_iter().cycle().take(RANDOM.len() * 20).collect();
    for seed in [0, 1, 2, 42, 1_234_567_890_123, u64::MAX] {
        assert_same(&expressions, seed);
    }
}

#[test]
fn every_client_has_its_own_numbers() {
    let script =
        debugging(&["random(1, 1000000)", ":client_id", ":default_seed", ":scale", ":own", ":own + 1"]);
    let options = ["-c", "5", "--random-seed=77", "-s", "3", "-D", "own= 007", "-D", "default_seed=11"];
    for options in [&options[..], &options[..7]] {
        let Some(mut theirs) = debugged(&script, options) else { return };
        let definitions: Vec<Definition> = options
            .windows(2)
            .filter(|pair| pair[0] == "-D")
            .map(|pair| Definition::parse(pair[1]).unwrap())
            .collect();
        let start = Start { seed: 77, clients: 5, scale: 3, definitions: &definitions, ..Start::default() };
        let mut ours = ours(&script, &start);
        // Clients say it in any order; with several threads also in the middle of what another says.
        theirs.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, theirs);
    }
}

/// By two threads, with a client each. pgbench's log tells which script a transaction was.
#[test]
fn scripts_are_chosen_alike() {
    let texts = ["\\set x 1\n", "\\set x random(1, 2)\n", "\\set x 3\n"];
    let files: Vec<crate::support::File> = texts.into_iter().map(crate::support::File::of).collect();
    let weights = [2, 0, 5];
    let named = files.iter().zip(weights).map(|(file, weight)| format!("-f{}@{weight}", file.path()));
    let named: Vec<String> = named.collect();
    let logs = tempfile::tempdir().unwrap();
    let prefix = format!("--log-prefix={}/log", logs.path().display());
    let options = ["-c", "2", "-j", "2", "-t", "50", "-l", &prefix, "--random-seed=5"];
    let Some(ran) = pgbench_on_server(&[&options[..], &[&named[0], &named[1], &named[2]]].concat()) else {
        return;
    };
    assert!(ran.succeeded, "{}", ran.said);
    let log =
        |file: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(file.unwrap().path()).unwrap();
    let mut logs: Vec<String> = std::fs::read_dir(logs.path()).unwrap().map(log).collect();
    // Lines begin with the client's number.
    logs.sort_unstable();

    let sources = texts.into_iter().zip(weights).map(|(text, weight)| Source::file("x.sql", text, weight));
    let scripts = Scripts::parse(&sources.collect::<Vec<_>>()).unwrap();
    assert_eq!((scripts.total_weight(), logs.len()), (7, 2));
    let started = scripts.start(&Start { seed: 5, clients: 2, threads: 2, ..Start::default() });
    for (mut thread, log) in started.threads.into_iter().zip(logs) {
        let theirs: Vec<&str> = log.lines().map(|line| line.split(' ').nth(3).unwrap()).collect();
        let ours: Vec<String> =
            theirs.iter().map(|_| scripts.choose(&mut thread.choose).to_string()).collect();
        assert_eq!((ours.len(), ours), (50, theirs.into_iter().map(str::to_owned).collect()));
    }
}

#[test]
fn threads_share_the_clients() {
    let scripts = Scripts::parse(&[Source::builtin("select").unwrap()]).unwrap();
    let ranges = |clients, threads| {
        let started = scripts.start(&Start { clients, threads, ..Start::default() });
        started.threads.into_iter().map(|thread| thread.clients).collect::<Vec<_>>()
    };
    assert_eq!(ranges(7, 3), [0..3, 3..5, 5..7]);
    assert_eq!(ranges(2, 4), [0..1, 1..2]);
}

/// Expressions that cannot be evaluated: the message is the one of pgbench.
#[test]
fn values_that_are_none() {
    for expression in [
        "1 / 0",
        "5 % 0",
        "-9223372036854775808 / -1",
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "-(-9223372036854775808)",
        "9223372036854775807 * 2",
        "int(1e19)",
        "int(-1e300)",
        "int(ln(-1))",
        ":nothing",
        ":1x",
        "true + 1",
        "1 + true",
        "1.5 * false",
        "true = true",
        "not 1",
        "1 and true",
        "1 < 2 is true = true",
        "2 * not 1 = 2 is null",
        "1 < not false is null",
        "true and 5",
        "1 or true",
        "true < 2",
        "sqrt(true)",
        "int(true)",
        "1.5 | true",
        "random(2, 1)",
        "random(-9223372036854775808, 9223372036854775807)",
        "random(0, 9223372036854775807)",
        "random(true, 2)",
        "random_gaussian(1, 2, 1.9)",
        "random_zipfian(1, 2, 1)",
        "random_zipfian(1, 2, 1001)",
        "random_exponential(1, 2, 0)",
        "random_exponential(1, 2, -1.5)",
        "permute(0, 0)",
        "permute(0, -5, 1)",
        "greatest(1, true)",
        "least(1.5, false)",
        "pow(true, 1)",
        "hash(true)",
        ":blue",
        ":great",
        ":none + 1",
    ] {
        let text = format!("\\set x {expression}\n");
        let file = crate::support::File::of(&text);
        let options = ["-t", "1", "-D", "blue=1blue", "-D", "great=99999999999999999999", "-f", &file.path()];
        let Some(theirs) = pgbench_on_server(&options) else { return };
        assert!(!theirs.succeeded, "{expression}");

        let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap();
        let definitions = [&options[3], &options[5]].map(|option| Definition::parse(option).unwrap());
        let mut started = scripts.start(&Start { definitions: &definitions, ..Start::default() });
        let error = scripts[0].proceed(0, &mut started.clients[0]).unwrap_err().to_string();
        let said = theirs.said.lines().any(|line| line.strip_prefix("pgbench: error: ") == Some(&error));
        assert!(said, "{expression}: {error}\n{}", theirs.said);
    }
}

#[test]
fn conditions_lead_the_same_way() {
    let script = "\\set r random(1, 4)\n\
        \\if :r = 1\n\\set x debug(1)\n\\if 1.5\n\\set x debug(11)\n\\else\n\\set x debug(12)\n\\endif\n\
        \\elif :r = 2\n\\set x debug(2)\n\\if null\n\\set x debug(21)\n\\elif 0\n\\set x debug(22)\n\\endif\n\
        \\elif :r = 3\n\\set x debug(3)\n\
        \\else\n\\if false\n\\set x debug(40)\n\\if true\n\\endif\n\\else\n\\set x debug(41)\n\\endif\n\\endif\n\
        \\if :r < 3\n\\endif\n\\set x debug(99)\n";
    for seed in 0..16_u64 {
        let Some(theirs) = debugged(script, &[&format!("--random-seed={seed}")]) else {
            return;
        };
        assert_eq!(ours(script, &Start { seed, ..Start::default() }), theirs, "seed {seed}");
    }
}

#[test]
fn only_what_needs_a_server_is_left() {
    let text = "\\set a 1\nSELECT :a \\gset\n\\if :a\n\\sleep 5 ms\n\\else\nSELECT 2;\n\\endif\n";
    let scripts = Scripts::parse(&[Source::file("x.sql", text, 1)]).unwrap();
    let (script, mut client) = (&scripts[0], scripts.start(&Start::default()).clients.remove(0));
    let first = script.proceed(0, &mut client).unwrap().unwrap();
    assert!(matches!(script.commands()[first].action(), Action::Sql(_)));
    let second = script.proceed(first + 1, &mut client).unwrap().unwrap();
    assert!(matches!(script.commands()[second].action(), Action::Sleep(_)));
    assert_eq!(script.commands()[second].line(), 4);
    assert_eq!(script.proceed(second + 1, &mut client).unwrap(), None);
}
