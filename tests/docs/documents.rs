//! What the documents name exists.

use std::collections::BTreeSet;
use std::fs;

use crate::sources::{Test, Tests, is_fault_id, read, root};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const REQUIREMENTS: &str = "docs/requirements.md";
const FAULTS: &str = "docs/faults.md";
/// In the place of a test where there is none yet.
const OPEN: &str = "open";

/// The cells of a table row; `None` for other lines and for the head of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    let cells: Vec<&str> = inner.split(" | ").map(str::trim).collect();
    let is_head = cells.last().is_some_and(|last| *last == "Test");
    (!is_head).then_some(cells)
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn write_and_fail(file: &str, text: &str) -> ! {
    // Where the folder cannot be written to, the message alone has to do.
    let _ = fs::write(root().join(file), text);
    panic!("{file} was not current and has been rewritten; look at it and commit it");
}

/// A document whose references to tests are looked up: a test that has moved gets its new
/// path, one that does not exist is wrong.
struct Checked {
    before: String,
    text: String,
    wrong: Vec<String>,
}

impl Checked {
    fn new(file: &str) -> Self {
        let before = read(file);
        Self {
            text: before.clone(),
            before,
            wrong: Vec::new(),
        }
    }

    fn look_up(&mut self, tests: &Tests, reference: &str) {
        let Some((path, name)) = reference.split_once("::") else {
            self.wrong.push(format!("{reference} is no path::name"));
            return;
        };
        let homes: Vec<&Test> = tests.all.iter().filter(|test| test.name == name).collect();
        if homes.iter().any(|test| test.path == path) {
            return;
        }
        match homes.as_slice() {
            [moved] => {
                self.text = self
                    .text
                    .replace(&format!("`{reference}`"), &moved.reference());
            }
            [] => self.wrong.push(format!("there is no test {reference}")),
            _ => self
                .wrong
                .push(format!("{reference} may be one of {homes:?}")),
        }
    }

    fn finish(self, file: &str) {
        assert!(self.wrong.is_empty(), "{file}:\n{}", self.wrong.join("\n"));
        if self.text != self.before {
            write_and_fail(file, &self.text);
        }
    }
}

#[test]
fn every_test_that_a_requirement_names_exists() {
    let tests = Tests::find();
    let mut checked = Checked::new(REQUIREMENTS);
    let text = checked.before.clone();
    let rows: Vec<Vec<&str>> = text.lines().filter_map(cells).collect();
    assert!(
        rows.len() >= 120,
        "{REQUIREMENTS} has only {} rows",
        rows.len()
    );
    for row in rows {
        let [chapter, rule, proof] = row.as_slice() else {
            panic!("{REQUIREMENTS}: a row needs chapter, rule and test: {row:?}");
        };
        let named = quoted(proof);
        assert!(
            !named.is_empty() || *proof == OPEN,
            "{chapter} {rule}: name a test, or say {OPEN}"
        );
        for reference in named {
            checked.look_up(&tests, reference);
        }
    }
    checked.finish(REQUIREMENTS);
}

#[test]
fn every_test_that_the_architecture_names_exists() {
    let tests = Tests::find();
    let mut checked = Checked::new(ARCHITECTURE);
    let text = checked.before.clone();
    let named: Vec<&str> = quoted(&text)
        .into_iter()
        .filter(|text| text.contains('/') && text.contains("::") && !text.contains('\n'))
        .collect();
    assert!(!named.is_empty());
    for reference in named {
        checked.look_up(&tests, reference);
    }
    checked.finish(ARCHITECTURE);
}

#[test]
fn every_fault_names_the_tests_that_name_it() {
    let tests = Tests::find();
    let before = read(FAULTS);
    let mut known = BTreeSet::new();
    let mut lines = Vec::new();
    for line in before.lines() {
        let row = cells(line).filter(|row| row.first().is_some_and(|id| is_fault_id(id)));
        let Some(row) = row else {
            lines.push(line.to_owned());
            continue;
        };
        let [id, fault, _] = row.as_slice() else {
            panic!("{FAULTS}: a row needs id, fault and test: {row:?}");
        };
        assert!(
            known.insert((*id).to_owned()),
            "{FAULTS}: {id} is listed twice"
        );
        let mut named = tests.by_fault.get(*id).cloned().unwrap_or_default();
        named.sort();
        named.dedup();
        let proof = if named.is_empty() {
            OPEN.to_owned()
        } else {
            let references: Vec<String> = named.iter().map(Test::reference).collect();
            references.join("<br>")
        };
        lines.push(format!("| {id} | {fault} | {proof} |"));
    }
    let unknown: Vec<&String> = tests
        .by_fault
        .keys()
        .filter(|id| !known.contains(*id))
        .collect();
    assert!(unknown.is_empty(), "{FAULTS} does not list {unknown:?}");
    let text = lines.join("\n") + "\n";
    if text != before {
        write_and_fail(FAULTS, &text);
    }
}

#[test]
fn the_readme_lists_every_command_with_its_permission() {
    let script = read("build.rs");
    let (_, list) = script.split_once("&[\n").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let commands: Vec<&str> = quoted_names(list);
    assert!(!commands.is_empty());
    let readme = read("README.md");
    let missing: Vec<String> = commands
        .iter()
        .map(|name| format!("| `{name}` | `allow-{}` |", name.replace('_', "-")))
        .filter(|start| !readme.contains(start.as_str()))
        .collect();
    assert!(missing.is_empty(), "README.md lacks {missing:?}");
}

fn quoted_names(list: &str) -> Vec<&str> {
    list.split('"').skip(1).step_by(2).collect()
}

#[test]
fn every_file_that_a_document_links_to_exists() {
    let mut missing = Vec::new();
    for (file, folder) in [
        ("README.md", ""),
        (ARCHITECTURE, ""),
        ("CONTRIBUTING.md", ""),
        ("CHANGELOG.md", ""),
        (REQUIREMENTS, "docs/"),
        (FAULTS, "docs/"),
        ("docs/decisions.md", "docs/"),
        ("docs/security.md", "docs/"),
    ] {
        let text = read(file);
        for after in text.split("](").skip(1) {
            let target = after.split([')', '#']).next().unwrap_or_default();
            // A picture is taken when the app is built, and may not be there yet.
            if target.is_empty() || target.contains("://") || target.ends_with(".png") {
                continue;
            }
            if !root().join(folder).join(target).exists() {
                missing.push(format!("{file}: {target}"));
            }
        }
    }
    assert!(missing.is_empty(), "these links lead nowhere: {missing:#?}");
}

#[test]
fn every_dependency_has_its_reason() {
    let text = read(ARCHITECTURE);
    let manifest = read("Cargo.toml");
    let mut section = "";
    let mut names: Vec<&str> = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]")
            && let Some((name, _)) = line.split_once(" = ")
        {
            names.push(name);
        }
    }
    let package = read("package.json");
    for block in [
        "\"dependencies\": {",
        "\"peerDependencies\": {",
        "\"devDependencies\": {",
    ] {
        let (_, block) = package.split_once(block).unwrap();
        let (block, _) = block.split_once('}').unwrap();
        names.extend(
            block
                .lines()
                .filter_map(|line| line.trim().split('"').nth(1)),
        );
    }
    assert!(names.len() > 10, "only {names:?}");
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md gives no reason for {missing:?}"
    );
}

#[test]
fn every_module_is_on_the_map() {
    let text = read(ARCHITECTURE);
    let mut missing = Vec::new();
    for place in ["src/agent", "src/ipc", "guest-js"] {
        for entry in fs::read_dir(root().join(place)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let mention = if !path.is_dir() {
                format!("`{name}`")
            } else if path.with_extension("rs").exists() {
                // The rest of a module whose file is on the map.
                continue;
            } else {
                format!("`{name}/")
            };
            if !text.contains(&mention) {
                missing.push(format!("{place}/{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md lacks {missing:?}");
}

#[test]
fn the_documents_name_the_versions_that_are_needed() {
    let manifest = read("Cargo.toml");
    let (_, rust) = manifest.split_once("rust-version = \"").unwrap();
    let (rust, _) = rust.split_once('"').unwrap();
    let package = read("package.json");
    let (_, node) = package.split_once("\"node\": \">=").unwrap();
    let (node, _) = node.split_once('"').unwrap();
    let needed = format!("You need Rust {rust} or newer and Node.js {node} or newer.");
    for file in ["README.md", "CONTRIBUTING.md"] {
        assert!(read(file).contains(&needed), "{file} must say: {needed}");
    }
}
