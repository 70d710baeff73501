//! The skills of the app: prompts that the user calls by `/name`.

use youyou_agent::SkillDefinition;

/// All skills.
#[must_use]
pub fn all() -> [SkillDefinition; 3] {
    [
        SkillDefinition {
            display_name: "Summarize".into(),
            description: "Sums up a text, a file or what was said so far.".into(),
            allow_implicit_invocation: true,
            ..SkillDefinition::new(
                "summarize",
                "Summarize what the argument names: a text, files of the workspace (read them first), or, without \
                 an argument, this conversation. Start with one sentence that says the most important thing. Then \
                 give at most seven points, the most important first, each a sentence. Keep names, numbers and \
                 decisions exact. Say what is left open. Use the language of the user.",
            )
        },
        SkillDefinition {
            display_name: "Commit message".into(),
            description: "Writes a commit message for the staged changes.".into(),
            required_tools: vec!["run_command".into()],
            allow_implicit_invocation: true,
            ..SkillDefinition::new(
                "commit",
                "Write a commit message for the staged changes of the workspace. Run `git diff --cached --stat` and \
                 `git diff --cached`; if nothing is staged, say so and show `git status --short` instead. First \
                 line: what the change does, imperative, at most 60 characters, no full stop. Then a blank line \
                 and why the change was made, if the diff shows it. Give the message in a code block. Do not \
                 commit unless the user asks for it. The argument, if any, says what matters to the user.",
            )
        },
        SkillDefinition {
            display_name: "Explain".into(),
            description: "Explains code step by step.".into(),
            required_tools: vec!["read_file".into(), "search_files".into()],
            allow_implicit_invocation: true,
            ..SkillDefinition::new(
                "explain",
                "Explain the code that the argument names; find and read it in the workspace first. Say in one \
                 sentence what it is for. Then walk through it in the order in which it runs, quoting the lines \
                 that matter with file and line number. Name what can go wrong, and what a reader would not \
                 expect. Explain to someone who programs but does not know this code. Use the language of the user.",
            )
        },
    ]
}
