//! Which tests there are, and which faults they name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where tests live.
const FOLDERS: [&str; 6] = [
    "tests",
    "src",
    "scripts",
    "crates",
    "examples/chat/src-tauri",
    "examples/chat/tests",
];
const SKIPPED: [&str; 4] = ["node_modules", "target", "gen", "icons"];

/// A test, as a document names it: `path::name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) name: String,
}

impl Test {
    pub(crate) fn reference(&self) -> String {
        format!("`{}::{}`", self.path, self.name)
    }
}

/// All tests, and those that name a fault in a comment, by its id.
#[derive(Debug, Default)]
pub(crate) struct Tests {
    pub(crate) all: Vec<Test>,
    pub(crate) by_fault: BTreeMap<String, Vec<Test>>,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

impl Tests {
    pub(crate) fn find() -> Self {
        let mut this = Self::default();
        for folder in FOLDERS {
            for path in files(folder) {
                this.take(&path);
            }
        }
        this
    }

    fn take(&mut self, path: &str) {
        let text = read(path);
        let lines: Vec<&str> = text.lines().collect();
        let found = if path.ends_with(".rs") {
            rust_tests(&lines)
        } else {
            script_tests(&lines)
        };
        for (at, line) in lines.iter().enumerate() {
            for id in fault_ids(line) {
                // A comment is about the test it is in, or else about the next one.
                let named = found.iter().find(|(_, last, _)| at <= *last);
                let (line, _, name) =
                    named.unwrap_or_else(|| panic!("{path}: {id} is named by no test"));
                self.by_fault.entry(id).or_default().push(Test {
                    path: path.to_owned(),
                    line: *line,
                    name: name.clone(),
                });
            }
        }
        self.all
            .extend(found.into_iter().map(|(line, _, name)| Test {
                path: path.to_owned(),
                line,
                name,
            }));
    }
}

/// Files that may hold tests, as paths from the root.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(root().join(folder)) else {
        return found;
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !SKIPPED.contains(&name.as_str()))
        .collect();
    names.sort();
    for name in names {
        let path = format!("{folder}/{name}");
        if root().join(&path).is_dir() {
            found.extend(files(&path));
        } else if [".rs", ".ts", ".tsx", ".mjs"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
    found
}

/// First line, last line and name of each test function.
fn rust_tests(lines: &[&str]) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let attribute = line.trim_start();
        if !(attribute.starts_with("#[test]") || attribute.starts_with("#[tokio::test")) {
            continue;
        }
        let function = lines.iter().enumerate().skip(at).find_map(|(first, line)| {
            let (before, rest) = line.split_once("fn ")?;
            let indent = before.len() - before.trim_start().len();
            let (name, _) = rest.split_once('(')?;
            Some((first, indent, name.to_owned()))
        });
        let Some((first, indent, name)) = function else {
            continue;
        };
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines.iter().skip(first).position(|line| *line == end);
        found.push((first, first + body.unwrap_or(0), name));
    }
    found
}

/// The same for Vitest and node:test; a title is its own first and last line.
fn script_tests(lines: &[&str]) -> Vec<(usize, usize, String)> {
    let title = |line: &str| {
        ["test(", "it(", "promise(", ")("].iter().find_map(|call| {
            let (_, rest) = line.split_once(call)?;
            let quote = rest.chars().next().filter(|c| "'\"`".contains(*c))?;
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find_map(|(at, c)| {
                let ends = c == quote && !escaped;
                escaped = c == '\\' && !escaped;
                ends.then_some(at)
            })?;
            rest.get(1..end).map(str::to_owned)
        })
    };
    lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, at, title(line)?)))
        .collect()
}

/// The ids that a comment begins with: `// A5, A16`, `// E12 (a)`, `// E5: why`.
fn fault_ids(line: &str) -> Vec<String> {
    let Some(comment) = line.trim_start().strip_prefix("// ") else {
        return Vec::new();
    };
    comment
        .split([',', ' ', ':', ';'])
        .filter(|word| !word.is_empty())
        .take_while(|word| is_fault_id(word))
        .map(str::to_owned)
        .collect()
}

pub(crate) fn is_fault_id(word: &str) -> bool {
    let (area, number) = match word.find(|c: char| c.is_ascii_digit()) {
        Some(at) => word.split_at(at),
        None => return false,
    };
    let area = matches!(
        area,
        "A" | "B" | "C" | "D" | "E" | "F" | "G" | "H" | "P" | "TL" | "MD" | "ST" | "X"
    );
    area && (1..=2).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit())
}
