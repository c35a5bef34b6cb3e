//! `esker-lab engines`: what can run here.

use std::process::ExitCode;

use esker_lab_core::Result;
use esker_lab_engines::Registry;

use crate::args::LibraryArgs;
use crate::table;

pub fn engines(args: &LibraryArgs) -> Result<ExitCode> {
    let registry = Registry::new(&args.libraries());
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for engine in registry.engines() {
        let version = match engine.version() {
            Ok(version) => version,
            Err(error) => {
                missing.push(format!("{}: {error}", engine.name()));
                "missing".to_owned()
            }
        };
        for (i, variant) in engine.variants().iter().enumerate() {
            let first = |text: &str| if i == 0 { text.to_owned() } else { String::new() };
            rows.push(vec![
                first(engine.name()),
                first(&version),
                variant.name.to_owned(),
                if variant.default { "yes" } else { "no" }.to_owned(),
                variant.about.to_owned(),
            ]);
        }
    }
    print!(
        "{}",
        table::aligned(&["engine", "version", "variant", "by default", "about"], 5, &rows)
    );
    println!("\nIn a MariaDB server (run sysbench, run insert):");
    let in_server = esker_lab_sql::engine::ENGINES.iter();
    let in_server: Vec<Vec<String>> = in_server
        .map(|engine| vec![engine.name.to_owned(), engine.about.to_owned()])
        .collect();
    print!("{}", table::aligned(&["engine", "about"], 2, &in_server));
    for line in missing {
        println!("\n{line}");
    }
    Ok(ExitCode::SUCCESS)
}
