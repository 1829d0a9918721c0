//! The text that `pgrig` prints without a verb.

/// Questions and the commands that answer them, and the first command to try.
const QUESTIONS: &str = "\
pgrig: a test rig for PostgreSQL

Question                                 Command
How do I fill my own schema?             pgrig fill 500GB --ddl app.sql
How do I get test data like my own?      pgrig model capture -d mydb -o m.toml
How many rows do pgbench's tables have?  pgrig size 73GB
How fast is my storage for PostgreSQL?   pgrig blockio 64GB -d mydb
How many transactions per second?        pgrig tps -c 8 -T 60 -d mydb
What does durability cost?               pgrig tps --matrix durability
Which of two expressions is cheaper?     pgrig micro 'EXPR' 'EXPR'
What does my migration lock or rewrite?  pgrig ddl migration.sql -d mydb
What do backups and restores cost?       pgrig backup rehearse -d mydb
Is this backup whole?                    pgrig backup check mydb.dump
What makes my tests faster?              pgrig testdb bench -- pytest
How does each test get a new database?   eval \"$(pgrig testdb new)\"
Did my change make my queries slower?    pgrig ab 'pgrig tps …' 'pgrig tps …'
How do I see a run, or share it?         pgrig report latest
What have I measured so far?             pgrig runs list

Try first:
  pgrig doctor          shows what works on this machine and with your server
  pgrig fill 100MB      fills pgrig's own PostgreSQL, unless PGHOST etc. is set
  pgrig COMMAND --help  lists options and examples (or -?; -h names the host)
";

/// The text, without the commands that this build does not have.
pub(crate) fn questions() -> String {
    let is_known = |line: &&str| cfg!(feature = "serve") || !line.contains("pgrig testdb new");
    QUESTIONS.split_inclusive('\n').filter(is_known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_of_80_columns_wraps_no_line() {
        for line in QUESTIONS.lines() {
            assert!(line.chars().count() < 80, "{line}");
        }
    }
}
