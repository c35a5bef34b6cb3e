//! Whether the documents still tell the truth: paths exist, documents are found, dependencies have their reason.

use std::collections::BTreeSet;

/// First folders of paths that documents name.
const FOLDERS: &[&str] = &[
    ".ci", "bindings", "crates", "docs", "fuzz", "lab", "mariadb", "scripts",
];

/// Paths in backticks (`crates/esker/src/db/`) and targets of links that are not there.
pub fn check_paths(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let quoted = line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|quoted| is_path(quoted))
            .map(str::to_owned);
        let linked = line.split("](").skip(1).filter_map(|rest| {
            let target = rest.split(')').next()?.split('#').next()?;
            (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
                .then(|| resolve(folder, target))
        });
        for path in quoted.chain(linked).filter(|path| !exists(path)) {
            findings.push(format!("{document}:{}: `{path}` is not in the tree", number + 1));
        }
    }
    findings
}

/// Whether text in backticks names a file or folder of this repository.
fn is_path(text: &str) -> bool {
    let plain = text
        .chars()
        .all(|next| next.is_alphanumeric() || "/._-".contains(next));
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    let rooted_file = rest.is_empty() && (text.ends_with(".md") || text.ends_with(".toml"));
    plain && (rooted_file || (text.contains('/') && FOLDERS.contains(&first)))
}

/// The path from the root of a link's target in a document of `folder`.
fn resolve(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Documents below `docs/` that no other document and no module head names.
pub fn check_mentions(texts: &[(&str, &str)]) -> Vec<String> {
    texts
        .iter()
        .map(|(path, _)| *path)
        .filter(|path| path.starts_with("docs/") && path.ends_with(".md"))
        .filter(|path| {
            !texts.iter().any(|(other, text)| {
                let linked = || {
                    let folder = other.rsplit_once('/').map_or("", |(folder, _)| folder);
                    text.split("](").skip(1).any(|rest| {
                        let target = rest.split([')', '#']).next().unwrap_or_default();
                        resolve(folder, target) == *path
                    })
                };
                other != path && (text.contains(path) || (other.ends_with(".md") && linked()))
            })
        })
        .map(|path| format!("{path}: no document and no module head names it"))
        .collect()
}

/// Dependencies of any manifest without a row (`| name | …`) in the document, rows without a dependency, and
/// members that choose a version of their own.
pub fn check_dependencies(manifests: &[(&str, &str)], reasons: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (path, manifest) in manifests {
        for (section, name, value) in dependencies(manifest) {
            if value.contains("path =") {
                continue;
            }
            used.insert(name);
            if section != "workspace.dependencies"
                && !path.starts_with("fuzz/")
                && !value.contains("workspace")
            {
                findings.push(format!(
                    "{path}: `{name}` has a version of its own; they stand in the root Cargo.toml"
                ));
            }
        }
    }
    let explained: BTreeSet<&str> = reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    for name in &used {
        if !explained.contains(name) && !name.starts_with("esker") {
            findings.push(format!("docs/dependencies.md: no row says why `{name}` is here"));
        }
    }
    for name in explained.difference(&used) {
        findings.push(format!("docs/dependencies.md: nothing depends on `{name}`"));
    }
    findings
}

/// Settings in all that the engine may have.
const SETTINGS_MAX: usize = 40;

/// Fields of `Options` and `ColumnFamilyOptions` without a row (`| `name` …`) in the guide, rows without a field, and
/// more settings than anybody can know.
pub fn check_settings(options: &str, guide: &str) -> Vec<String> {
    let fields: BTreeSet<&str> = options
        .lines()
        .filter_map(|line| line.strip_prefix("    pub ")?.split_once(": "))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(|next| next.is_alphanumeric() || next == '_'))
        .collect();
    let rows: BTreeSet<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let missing = fields
        .difference(&rows)
        .map(|name| format!("docs/tuning.md: no row explains `{name}`"));
    let dead = rows
        .difference(&fields)
        .map(|name| format!("docs/tuning.md: there is no setting `{name}`"));
    let many = (fields.len() > SETTINGS_MAX).then(|| {
        format!(
            "{} settings, {SETTINGS_MAX} are allowed: find a default instead",
            fields.len()
        )
    });
    missing.chain(dead).chain(many).collect()
}

/// Limits that errors of the engine name (`{KEY_LEN_MAX}`) without a row in the guide that ends with them, and rows whose
/// limit no error names.
pub fn check_limits<'a>(sources: impl Iterator<Item = &'a str>, guide: &str) -> Vec<String> {
    let is_limit = |name: &&str| {
        name.ends_with("_MAX") && name.chars().all(|next| next.is_ascii_uppercase() || next == '_')
    };
    let named: BTreeSet<&str> = sources
        .flat_map(|text| text.split('{').skip(1))
        .filter_map(|rest| rest.split('}').next())
        .filter(is_limit)
        .collect();
    let rows: BTreeSet<&str> = guide
        .lines()
        .filter_map(|line| line.strip_suffix("` |")?.rsplit('`').next())
        .filter(is_limit)
        .collect();
    let missing = named
        .difference(&rows)
        .map(|name| format!("docs/tuning.md: no row of the limits names `{name}`"));
    let dead = rows
        .difference(&named)
        .map(|name| format!("docs/tuning.md: no error names the limit `{name}`"));
    missing.chain(dead).collect()
}

/// Section, name and value of every dependency of a manifest.
fn dependencies(manifest: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut section = "";
    manifest.lines().filter_map(move |line| {
        if let Some(header) = line.trim().strip_prefix('[') {
            section = header.trim_end_matches(']');
            return None;
        }
        let (name, value) = line.split_once('=')?;
        let name = name.trim().split('.').next()?;
        (section.ends_with("dependencies") && !name.starts_with('#')).then_some((
            section,
            name,
            line_value(line, value),
        ))
    })
}

/// The value with what stands between name and `=` (`name.workspace = true`).
fn line_value<'a>(line: &'a str, value: &'a str) -> &'a str {
    if line.contains(".workspace") { line } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_gone_is_caught() {
        let exists = |path: &str| ["docs/glossary.md", "README.md", "crates/esker/src/db/"].contains(&path);
        let found = |document, text| check_paths(document, text, exists);
        assert!(
            found(
                "README.md",
                "`crates/esker/src/db/` [g](docs/glossary.md#top) `a/b` `cargo x`"
            )
            .is_empty()
        );
        assert!(
            found(
                "docs/tuning.md",
                "[words](glossary.md) [up](../README.md) [web](https://a.b/c)"
            )
            .is_empty()
        );
        assert!(found("README.md", "```\n`docs/gone.md`\n```").is_empty());
        for text in [
            "`crates/esker/src/gone.rs`",
            "`GONE.md`",
            "[g](docs/gone.md)",
            "`docs/formats/wal.md`",
        ] {
            assert_eq!(found("README.md", text).len(), 1, "{text}");
        }
        assert_eq!(found("docs/tuning.md", "[g](docs/glossary.md)").len(), 1);
    }

    #[test]
    fn a_document_that_nobody_names_is_caught() {
        let wal = ("docs/formats/wal.md", "# WAL");
        assert_eq!(check_mentions(&[wal]).len(), 1);
        assert!(
            check_mentions(&[
                wal,
                ("crates/esker/src/wal/mod.rs", "//! See docs/formats/wal.md.")
            ])
            .is_empty()
        );
        let index = ("docs/formats/README.md", "[WAL](wal.md)");
        assert_eq!(
            check_mentions(&[wal, index]),
            ["docs/formats/README.md: no document and no module head names it"]
        );
    }

    #[test]
    fn a_dependency_without_reason_and_a_reason_without_dependency_are_caught() {
        let root = (
            "Cargo.toml",
            "[workspace.dependencies]\nesker = { path = \"x\" }\ncrc32c = \"0.6\"\n[profile.dev]\na = 1",
        );
        let row = "| `crc32c` | checksums | MIT |";
        assert!(check_dependencies(&[root], row).is_empty());
        assert!(check_dependencies(&[root], "")[0].contains("`crc32c`"));
        assert!(check_dependencies(&[root], &format!("{row}\n| `gone` | |"))[0].contains("`gone`"));
        let own = ("crates/a/Cargo.toml", "[dev-dependencies]\ncrc32c = \"0.5\"");
        assert!(check_dependencies(&[root, own], row)[0].contains("version of its own"));
        let shared = (
            "crates/a/Cargo.toml",
            "[dependencies]\ncrc32c.workspace = true\nesker = { workspace = true }",
        );
        assert!(check_dependencies(&[root, shared], row).is_empty());
    }

    #[test]
    fn a_setting_without_row_and_a_row_without_setting_are_caught() {
        let options =
            "pub struct Options {\n    pub levels: usize,\n}\nimpl X {\n    pub fn f(a: u8) {}\n}\n";
        assert!(check_settings(options, "| `levels` | 7 |").is_empty());
        assert!(check_settings(options, "")[0].contains("`levels`"));
        assert!(check_settings(options, "| `levels` |\n| `gone` (live) |")[0].contains("`gone`"));
        let names: Vec<_> = (0..=SETTINGS_MAX).map(|number| format!("s{number}")).collect();
        let many: String = names
            .iter()
            .map(|name| format!("    pub {name}: u8,\n"))
            .collect();
        let guide: String = names.iter().map(|name| format!("| `{name}` |\n")).collect();
        assert_eq!(check_settings(&many, &guide).len(), 1);
    }

    #[test]
    fn a_limit_without_row_and_a_row_without_limit_are_caught() {
        let source = r#"format!("a key of {len} bytes; the limit is {KEY_LEN_MAX}, {max}")"#;
        let check = |guide| check_limits([source].into_iter(), guide);
        assert!(check("| a key | 64 KiB | `KEY_LEN_MAX` |").is_empty());
        assert!(check("")[0].contains("`KEY_LEN_MAX`"));
        assert!(check("| k | 1 | `KEY_LEN_MAX` |\n| v | 2 | `GONE_MAX` |")[0].contains("`GONE_MAX`"));
    }
}
