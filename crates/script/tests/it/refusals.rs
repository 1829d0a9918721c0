//! Texts that are not scripts, compared with pgbench: both refuse the same texts, in the same words, at the same
//! place.

use crate::support::{File, pgbench};
use script::{Scripts, Source};

/// pgbench's error for a script; "" if it accepts the script. Then it fails to connect, since there is no server.
fn theirs(file: &File) -> Option<String> {
    let ran = pgbench(&["-h", "/nowhere", "-f", &file.path()])?;
    assert!(!ran.succeeded, "{}", ran.said);
    let said = ran.said.strip_prefix("pgbench: error: ").expect("an error");
    Some(if said.starts_with("connection to server") { String::new() } else { said.trim_end().to_owned() })
}

fn ours(file: &File, text: &str) -> String {
    match Scripts::parse(&[Source::file(file.path(), text, 1)]) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Says the same as pgbench: all of it where pgbench shows a line and a caret, else the first line.
#[track_caller]
fn assert_refused(text: &str) {
    let file = File::of(text);
    let ours = ours(&file, text);
    assert!(!ours.is_empty(), "accepted: {text}");
    let Some(theirs) = theirs(&file) else { return };
    if theirs.contains("error found here") {
        assert_eq!(ours, theirs, "{text}");
    } else {
        assert_eq!(ours.lines().next(), theirs.lines().next(), "{text}\n{theirs}");
    }
}

#[test]
fn expressions() {
    for expression in [
        "",
        "1 +",
        "1 2",
        "(1",
        "1)",
        "foo",
        "foo(1)",
        "abs",
        "abs()",
        "abs(1, 2)",
        "abs(1",
        "abs 1",
        "least()",
        "GREATEST()",
        "hash()",
        "hash(1, 2, 3)",
        "permute(1)",
        "permute(1, 2, 3, 4)",
        "random(1)",
        "pi(1)",
        "random_zipfian(1, 2)",
        "mod(1)",
        "1 < 2 < 3",
        "1 = 2 <> 3",
        "not 1 = 2 = 3",
        "is null",
        "1 is 2",
        "1 is",
        "1 is not",
        "not",
        "case end",
        "case when 1 end",
        "case when 1 then 2",
        "case 1 when 1 then 2 end",
        "case when 1 then 2 else end",
        "100000000000000000000",
        "9223372036854775808",
        "1 - 9223372036854775808",
        "09223372036854775808",
        "1.0E309",
        ".1E310",
        "1e-400",
        "1 ; 2",
        "1 $ 2",
        "'",
        "1 & & 2",
        "* 2",
        "1 ! 2",
        "least(1, )",
        "1e",
        "1.5.5",
        "1 and",
        ":",
        ": x",
        "null(1)",
        "1 == 2",
        "1 || 2",
        "2 ^ 2",
        "abs(1) + unknown(2) * 3",
        "-",
    ] {
        assert_refused(&format!("\\set x {expression}\nSELECT 1;\n"));
        assert_refused(&format!("SELECT 1;\n\n\\if 1\n\\elif {expression}\n\\endif\n"));
    }
}

#[test]
fn arguments() {
    for line in [
        "\\set",
        "\\setshell",
        "\\setshell x",
        "\\shell",
        "\\sleep",
        "\\sleep abc",
        "\\sleep 1 2 3",
        "\\sleep 1 h",
        "\\sleep 1h",
        "\\sleep 1h s",
        "\\sleep 5-3",
        "\\sleep :x min",
        "\\foo",
        "\\SET",
        "\\ unknown 1",
        "\\startpipeline x",
        "\\endpipeline x",
        "\\else x",
        "\\endif x",
        "\\gset a b",
        "\\aset a b c",
        "\\if",
        "\\elif",
        "\\q",
    ] {
        assert_refused(&format!("{line}\nSELECT 1;\n"));
    }
}

/// pgbench says where in its own count of commands; here it is said in which line.
#[test]
fn conditions() {
    for (text, line, problem) in [
        ("\\if 1\n", 1, "\\if without matching \\endif"),
        ("\\if 1\n\\if 2\n\\endif\n", 1, "\\if without matching \\endif"),
        ("SELECT 1;\n\\elif 1\n", 2, "\\elif without matching \\if"),
        ("SELECT 1;\n\\else\n", 2, "\\else without matching \\if"),
        ("\\if 1\n\\endif\n\\endif\n", 3, "\\endif without matching \\if"),
        ("\\if 1\n\\else\n\\elif 0\n\\endif\n", 3, "\\elif after \\else"),
        ("\\if 1\n\\elif 0\n\\else\n\n\\else\n\\endif\n", 5, "\\else after \\else"),
    ] {
        let file = File::of(text);
        let ours = ours(&file, text);
        assert!(ours.starts_with(&format!("{}:{line}: {problem}\n\\", file.path())), "{ours}");
        let Some(theirs) = theirs(&file) else { return };
        assert!(theirs.ends_with(problem), "{theirs}");
    }
}

#[test]
fn nothing_to_receive() {
    for (text, line) in [("\\gset\n", 1), ("\\set x 1\n\\gset\n", 2), ("SELECT 1 \\gset\n\\gset\n", 2)] {
        let file = File::of(text);
        let ours = ours(&file, text);
        let expected = format!("{}:{line}: \\gset must follow an SQL command", file.path());
        assert_eq!(ours.lines().next(), Some(expected.as_str()));
        let Some(theirs) = theirs(&file) else { return };
        assert!(theirs.starts_with(&expected), "{theirs}");
    }
}

#[test]
fn nothing_at_all() {
    for text in ["", " \n-- nothing\n", "\\\n"] {
        let file = File::of(text);
        let ours = ours(&file, text);
        let remedy = ": write an SQL command into it";
        assert_eq!(ours, format!("empty command list for script \"{}\"{remedy}", file.path()));
        let Some(theirs) = theirs(&file) else { return };
        assert_eq!(ours.strip_suffix(remedy), Some(theirs.as_str()));
    }
}

/// Found here before the run; pgbench finds it in the middle of one, or never.
#[test]
fn what_pgbench_finds_later() {
    for (text, expected) in [
        (
            "\\set 1x 5",
            "x:1: invalid variable name (1x) in command \"set\"\n\\set 1x 5\n     ^ error found here",
        ),
        (
            "\\setshell a-b echo 5",
            "x:1: invalid variable name (a-b) in command \"setshell\"\n\
                                   \\setshell a-b echo 5\n          ^ error found here",
        ),
        (
            "SELECT 1 \\gset 2_",
            "x:1: invalid variable name (2_) in command \"gset\"\n\
                                SELECT 1 \\gset 2_\n               ^ error found here",
        ),
        (
            "\\sleep -",
            "x:1: invalid sleep time, must be an integer (-) in command \"sleep\"\n\
                       \\sleep -\n       ^ error found here",
        ),
        (
            "SELECT 1;\nSELECT 'a;\n\n",
            "x:2: unterminated quoted string\nSELECT 'a;\n       ^ error found here",
        ),
        ("SELECT \"a;", "x:1: unterminated quoted identifier\nSELECT \"a;\n       ^ error found here"),
        ("SELECT E'a\\';", "x:1: unterminated quoted string\nSELECT E'a\\';\n       ^ error found here"),
        ("SELECT /* /* */ 1;", "x:1: unterminated comment\nSELECT /* /* */ 1;\n       ^ error found here"),
        (
            "SELECT $a$ $b$;",
            "x:1: unterminated dollar-quoted string\nSELECT $a$ $b$;\n       ^ error found here",
        ),
        ("SELECT abs((1);", "x:1: unterminated parenthesis\nSELECT abs((1);\n          ^ error found here"),
        (
            "SELECT (1 \\set x 5\n);",
            "x:1: unterminated parenthesis\nSELECT (1 \\set x 5\n       ^ error found here",
        ),
        (
            "\\startpipeline\n\\startpipeline",
            "x:2: already in pipeline mode\n\\startpipeline\n^ error found here",
        ),
        (
            "\\startpipeline\nSELECT 1;",
            "x:1: end of script reached with pipeline open\n\
                                        \\startpipeline\n^ error found here",
        ),
        ("SELECT 1;\n\\endpipeline", "x:2: not in pipeline mode\n\\endpipeline\n^ error found here"),
        (
            "\\startpipeline\nSELECT 1 \\gset\n\\endpipeline",
            "x:2: \\gset is not allowed in pipeline mode\n\
                                                            SELECT 1 \\gset\n^ error found here",
        ),
        (
            "\\if 1\n\\startpipeline\n\\else\n\\startpipeline\n\\endif\n\\startpipeline",
            "x:6: already in pipeline mode\n\\startpipeline\n^ error found here",
        ),
        (
            "\t\\set x \\\n  1 +\tfoo(1)\n",
            "x:2: unexpected function name (foo) in command \"set\"\n  1 +\tfoo(1)\n     \t  ^ error found here",
        ),
    ] {
        let error = Scripts::parse(&[Source::file("x", text, 1)]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_accepted() {
    for text in [
        "SELECT 1",
        ";",
        "/* nothing */",
        "\\ set x 1\n",
        "\\SET x 1\n",
        "\\set x least(,1)\n",
        "\\set x 1 \\\n + \\\r\n 2\n",
        "\\sleep\\\n1\n",
        "\\sleep 1ms\n",
        "\\sleep 1\n",
        "\\sleep -5 US\n",
        "\\sleep :x\n",
        "\\sleep :x ms\n",
        "\\sleep +1s\n",
        "\\setshell x echo :y ::z\n",
        "\\shell true\n",
        "SELECT 1 \\gset\n",
        "SELECT 1; \\gset a_\n",
        "SELECT 1 \\; SELECT 2 \\aset\n",
        "\\set größe 1\n",
        "\\if 1\n\\if 2\n\\elif 3\n\\else\n\\endif\n\\else\n\\endif\n",
        "\\startpipeline\nSELECT 1;\n\\syncpipeline\n\\endpipeline\n",
        "\\if :x\n\\startpipeline\n\\endif\nSELECT 1;\n\\if :x\n\\endpipeline\n\\endif\n",
        "\\set x 1\r\nSELECT 1;\r\n",
        "\\set x +-~not :y\n",
    ] {
        let file = File::of(text);
        assert_eq!(ours(&file, text), "", "{text}");
        // Before 16 pgbench had no \syncpipeline.
        if !text.contains("syncpipeline") {
            let Some(theirs) = theirs(&file) else { return };
            assert_eq!(theirs, "", "{text}");
        }
    }
}

/// pgbench counts bytes, so that its caret is too far to the right.
#[test]
fn carets_count_characters() {
    let error = Scripts::parse(&[Source::file("x", "\\set größe größe(1)", 1)]).unwrap_err();
    assert_eq!((error.line, error.column), (1, Some(16)));
    let shown = "\\set größe größe(1)\n               ^ error found here";
    assert!(error.to_string().ends_with(shown), "{error}");
}

/// As deep as it goes, with little stack.
#[test]
fn long_expressions() {
    let nested = |depth: usize| format!("\\set x {}1{}\n", "(".repeat(depth), ")".repeat(depth));
    let sum = |length: usize| format!("\\set x 1{}\n", " + 1".repeat(length));
    let calls = |depth: usize| format!("\\set x {}1{}\n", "abs(".repeat(depth), ")".repeat(depth));
    for (longest, longer) in [(nested(99), nested(100)), (sum(500), sum(501)), (calls(99), calls(100))] {
        let scripts = Scripts::parse(&[Source::file("x", longest, 1)]).unwrap();
        let mut client = scripts.start(&script::Start::default()).clients.remove(0);
        assert_eq!(scripts[0].proceed(0, &mut client), Ok(None));
        let message = Scripts::parse(&[Source::file("x", longer, 1)]).unwrap_err().to_string();
        assert!(message.contains("maximum is 500 operations in 100 levels"), "{message}");
    }
}
