//! Foreign tables whose rows are the output of a program on the server's machine (file_fdw). Each scan runs it.

/// Words before an option.
const BEFORE: [&str; 4] = ["(", ",", "add", "set"];

/// Whether CREATE or ALTER FOREIGN TABLE, as words in lower case, gives the option `program`. A column may have this name.
pub(crate) fn is_option(words: &[&str]) -> bool {
    let is_text = |word: &str| ["'", "$", "e'", "u&'"].iter().any(|begin| word.starts_with(begin));
    words.windows(3).any(|three| {
        BEFORE.contains(&three[0]) && three[1].trim_matches('"') == "program" && is_text(three[2])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside;

    #[test]
    fn the_option_is_no_column() {
        for (sql, expected) in [
            ("CREATE FOREIGN TABLE f (x text) SERVER s OPTIONS (program 'ls')", true),
            ("CREATE FOREIGN TABLE f () SERVER s OPTIONS (format 'csv', \"program\" $$ls$$)", true),
            ("ALTER FOREIGN TABLE f OPTIONS (DROP filename, ADD program E'ls')", true),
            ("ALTER FOREIGN TABLE f OPTIONS (SET program 'ls')", true),
            ("CREATE FOREIGN TABLE f (program text) SERVER s OPTIONS (filename 'program')", false),
            ("ALTER FOREIGN TABLE f OPTIONS (DROP program)", false),
        ] {
            let words = outside::words(sql);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(is_option(&words), expected, "{sql}");
        }
    }
}
