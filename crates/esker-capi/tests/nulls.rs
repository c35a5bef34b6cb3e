//! Every function survives null pointers, empty slices and zeros: it does nothing, or says what is missing.

// All of it is tests.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A function of the header: what it returns, its name, the declarations of its parameters.
struct Function {
    returns: String,
    name: String,
    parameters: Vec<String>,
}

/// The functions that a header declares. Function pointers among their parameters are typedefs there.
fn functions(header: &str) -> Vec<Function> {
    let code: String = header
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ");
    let (_, code) = code.split_once("extern \"C\" {").unwrap();
    let declarations = code.split(';').filter_map(|declaration| {
        let (head, parameters) = declaration.trim().strip_suffix(')')?.split_once('(')?;
        let at = head.rfind(|next: char| !next.is_ascii_alphanumeric() && next != '_')?;
        let (returns, name) = head.split_at(at + 1);
        let parameters = parameters.split(',').map(str::trim);
        Some(Function {
            returns: returns.replace("ESKER_MUST_USE", "").trim().to_owned(),
            name: name.to_owned(),
            parameters: parameters
                .filter(|parameter| *parameter != "void")
                .map(str::to_owned)
                .collect(),
        })
    });
    declarations.collect()
}

/// A program that calls all of them with nothing.
fn program(functions: &[Function]) -> String {
    let mut text = "#include <esker.h>\n#include <stdio.h>\n\nint main(void) {\n".to_owned();
    for function in functions {
        let Function {
            returns,
            name,
            parameters,
        } = function;
        let mut declared = String::new();
        let mut given = Vec::new();
        for parameter in parameters {
            write!(declared, "{parameter} = {{0}}; ").unwrap();
            given.push(parameter.rsplit([' ', '*']).next().unwrap());
        }
        let call = format!("{name}({})", given.join(", "));
        let checked = match returns.as_str() {
            "esker_error *" => format!(
                "esker_error *error_ = {call}; esker_error_kind kind_ = esker_error_get_kind(error_); \
                 if (kind_ > ESKER_INVALID_ARGUMENT) {{ printf(\"{name}: %s\\n\", esker_error_message(error_)); return 1; }} \
                 esker_error_free(error_);"
            ),
            "void" => format!("{call};"),
            _ => format!("(void){call};"),
        };
        writeln!(
            text,
            "  {{ {declared}puts(\"{name}\"); fflush(stdout); {checked} }}"
        )
        .unwrap();
    }
    text + "  puts(\"done\");\n  return 0;\n}\n"
}

#[test]
fn nothing_is_survived_by_every_function() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/esker.h");
    let functions = functions(&std::fs::read_to_string(&header).unwrap());
    assert!(functions.len() > 200, "{}", functions.len());
    assert!(functions.iter().any(|function| function.name == "esker_db_get"
        && function.returns == "esker_error *"
        && function.parameters.len() == 6));
    let dir = tempfile::tempdir().unwrap();
    let (source, binary) = (dir.path().join("nulls.c"), dir.path().join("nulls"));
    std::fs::write(&source, program(&functions)).unwrap();
    let library = std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .join("libesker_capi.so");
    std::os::unix::fs::symlink(&library, dir.path().join("libesker.so.0")).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(header.parent().unwrap())
        .arg(&source)
        .arg(&library)
        .arg("-o")
        .arg(&binary)
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    // The real machine's root has no database, and an empty path is none.
    let output = Command::new(&binary)
        .current_dir(dir.path())
        .env("LD_LIBRARY_PATH", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.ends_with("done\n"),
        "{}, after {:?}",
        output.status,
        said.lines().last()
    );
}
