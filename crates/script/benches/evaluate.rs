//! Time that a client spends on its script before it sends anything.

use criterion::{Criterion, criterion_group, criterion_main};
use script::{Action, Client, Scripts, Source, Start};

/// All of a script's own commands, and the texts of its statements.
fn transaction(scripts: &Scripts, client: &mut Client, out: &mut Vec<u8>) {
    let script = &scripts[0];
    let mut at = 0;
    while let Some(command) = script.proceed(at, client).unwrap() {
        let Action::Sql(sql) = script.commands()[command].action() else { panic!("only SQL") };
        out.clear();
        sql.write(&client.variables, out);
        at = command + 1;
    }
}

fn transactions(criterion: &mut Criterion) {
    let mixed = "\\set a random_zipfian(1, 1000000, 1.2)\n\\set b permute(:a, 1000000) + 1\n\
                 \\if :b % 2 = 0 and not :a is null\n\\set c greatest(:a, :b) << 2\n\\else\n\\set c abs(:a - :b)\n\
                 \\endif\nSELECT :a, :b, :c;\n";
    let sources = [
        ("tpcb-like", Source::builtin("tpcb-like").unwrap()),
        ("select-only", Source::builtin("select-only").unwrap()),
        ("mixed", Source::file("mixed", mixed, 1)),
    ];
    for (name, source) in sources {
        let scripts = Scripts::parse(&[source]).unwrap();
        let mut client = scripts.start(&Start::default()).clients.remove(0);
        let mut out = Vec::new();
        criterion
            .bench_function(name, |bencher| bencher.iter(|| transaction(&scripts, &mut client, &mut out)));
    }
}

criterion_group!(benches, transactions);
criterion_main!(benches);
