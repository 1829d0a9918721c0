//! What the program says of itself, and of command lines that are wrong: one file each in `cmd/`.

#[test]
fn commands() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
