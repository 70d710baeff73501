//! What the demo says, in English and Chinese.

use std::path::Path;

use youyou_agent::{StopReason, ToolResultMessage};

/// Longest part of a tool's output that an answer quotes, in characters.
const QUOTE: usize = 1_500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Chinese,
}

impl Language {
    pub(super) fn of(text: &str) -> Self {
        let chinese = text.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c));
        if chinese {
            Self::Chinese
        } else {
            Self::English
        }
    }

    fn pick(self, english: &str, chinese: &str) -> String {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
        .to_owned()
    }
}

pub(super) fn help(language: Language, images: usize, files: usize) -> String {
    let mut text = language.pick(
        "Hello! I am the **offline demo**: a script that comes with this app, not an AI. ",
        "你好！我是**离线演示**：随应用附带的脚本，并不是 AI。",
    );
    if images > 0 {
        text += &match language {
            Language::English => {
                format!("Your {images} image(s) arrived, but a script cannot see. ")
            }
            Language::Chinese => format!("收到了 {images} 张图片，但脚本看不懂。"),
        };
    }
    if files > 0 {
        text += &match language {
            Language::English => format!("Your {files} file(s) arrived. "),
            Language::Chinese => format!("收到了 {files} 个文件。"),
        };
    }
    text + &language.pick(
        "These requests really work, with the app's own tools:\n\n\
         - `list files`\n\
         - `read README.md`, or two at once: `read README.md and Cargo.toml`\n\
         - `search demo`\n\
         - `write notes.txt: hello`\n\
         - `run echo hello`\n\
         - `long answer` to watch reasoning and a long text stream by\n\
         - `error` and `overflow` to see how failures look\n\
         - `cut`, `filter` and `refuse` to see answers that do not end by themselves\n\
         - `remember that I like tea`, then close the chat and open the memory panel\n\n\
         For real answers, add a key in the settings or start Ollama, LM Studio or llama.cpp.",
        "下面这些请求会真正调用应用的工具：\n\n\
         - `列出文件`\n\
         - `读取 README.md`，或一次读两个：`读取 README.md 和 Cargo.toml`\n\
         - `搜索 demo`\n\
         - `写入 notes.txt: 你好`\n\
         - `运行 echo hello`\n\
         - `长回答`：观看推理过程和长文本的流式输出\n\
         - `错误` 和 `溢出`：看看失败时的样子\n\
         - `截断`、`过滤` 和 `拒绝`：看看没有正常结束的回答\n\
         - `记住我喜欢喝茶`，然后关闭会话并打开记忆面板\n\n\
         想要真正的回答，请在设置中添加密钥，或启动 Ollama、LM Studio 或 llama.cpp。",
    )
}

pub(super) fn calling(language: Language) -> String {
    language.pick(
        "I will use the app's tools for that.\n\n",
        "我用应用的工具来完成。\n\n",
    )
}

pub(super) fn no_tool(language: Language, tool: &str) -> String {
    match language {
        Language::English => {
            format!("That needs the tool `{tool}`, which this app does not offer.")
        }
        Language::Chinese => format!("这需要工具 `{tool}`，但应用没有提供。"),
    }
}

/// What came out of a call.
pub(super) struct Outcome<'a> {
    pub(super) result: &'a ToolResultMessage,
    /// The file or folder that the call named.
    pub(super) path: Option<&'a str>,
}

impl Outcome<'_> {
    /// The language of the fence around it: a file that was read has its own, all else is text.
    fn fence_language(&self) -> String {
        let read = &*self.result.tool_name == "read_file" && !self.result.is_error;
        let extension = self
            .path
            .filter(|_| read)
            .and_then(|path| Path::new(path).extension()?.to_str())
            .unwrap_or_default();
        // A file may be called anything; what stands behind a fence must stay one word.
        let is_word = !extension.is_empty() && extension.chars().all(|c| c.is_ascii_alphanumeric());
        match extension.to_ascii_lowercase().as_str() {
            language if is_word && language != "txt" => language.to_owned(),
            _ => "text".to_owned(),
        }
    }
}

/// An answer that quotes what the tools gave.
pub(super) fn results(language: Language, outcomes: &[Outcome<'_>]) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let result = outcome.result;
        let head = match (language, result.is_error) {
            (Language::English, false) => format!("`{}` gave:", result.tool_name),
            (Language::English, true) => format!("`{}` failed:", result.tool_name),
            (Language::Chinese, false) => format!("`{}` 的结果：", result.tool_name),
            (Language::Chinese, true) => format!("`{}` 失败：", result.tool_name),
        };
        let quote: String = result.content.chars().take(QUOTE).collect();
        let more = if quote.len() < result.content.len() {
            "\n…"
        } else {
            ""
        };
        // A fence longer than any in the quote keeps the quote inside.
        let fence = "`".repeat(longest_run(&quote).max(2) + 1);
        text += &format!(
            "{head}\n\n{fence}{}\n{}{more}\n{fence}\n\n",
            outcome.fence_language(),
            quote.trim_end()
        );
    }
    text + &language.pick(
        "(A script wrote this answer around the output; a real model would read it.)",
        "（这段回答由脚本拼接而成；真正的模型会阅读并理解输出。）",
    )
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

pub(super) fn remember(language: Language) -> String {
    language.pick(
        "Noted. Memories are written when this chat is closed; look at the memory panel then. \
         A new chat will know it.",
        "记下了。会话关闭时会写入记忆，届时请查看记忆面板；新的会话会知道它。",
    )
}

pub(super) fn skill(language: Language) -> String {
    language.pick(
        "The skill's instructions reached me in front of your message. A real model would follow them; \
         I am a script and can only say that they arrived.",
        "技能的说明已经放在你的消息之前送达。真正的模型会照做；我只是脚本，只能告诉你它到了。",
    )
}

pub(super) fn error(language: Language) -> String {
    language.pick(
        "this failure was asked for: the demo pretends that its server had an accident. Try again, or ask \
         for something else",
        "这是你要求的失败：演示假装服务器出了故障。请重试，或换个请求",
    )
}

/// An answer that ends for a reason of its own.
pub(super) fn ending(language: Language, reason: StopReason) -> String {
    match reason {
        StopReason::Length => language.pick(
            "This answer was to be cut: the demo pretends that the limit of its length was reached in the \
             middle of a",
            "这是你要求的截断：演示假装回答的长度达到了上限，于是它停在一句话的",
        ),
        StopReason::Refusal => language.pick(
            "A refusal was asked for: the demo pretends that it does not want to answer.",
            "这是你要求的拒绝：演示假装不愿意回答。",
        ),
        _ => language.pick(
            "A filter was asked for: the demo pretends that one stopped it before the",
            "这是你要求的过滤：演示假装过滤器让它停在了",
        ),
    }
}

pub(super) fn going_on(language: Language) -> String {
    language.pick(
        "sentence. Here it ends: a real model goes on where its answer was cut.",
        "中间。现在说完了：真正的模型会从被截断的地方继续。",
    )
}

pub(super) fn overflow(language: Language) -> String {
    language.pick(
        "this overflow was asked for: the demo pretends that the conversation no longer fits",
        "这是你要求的溢出：演示假装对话已经放不下了",
    )
}

pub(super) fn compacted(language: Language) -> String {
    language.pick(
        "The conversation had become too long. The agent replaced its older part by a summary and asked again: \
         that is how you get this answer.",
        "对话太长了。智能体用摘要替换了较早的部分并重新请求，于是你看到了这条回答。",
    )
}

pub(super) fn long_reasoning(language: Language) -> String {
    language.pick(
        "The user wants a long answer. I should show headings, a list, a table and code, \
         so that streaming Markdown can be judged. A script does not think, but this is where thoughts appear.",
        "用户想要一个长回答。我应当展示标题、列表、表格和代码，以便观察 Markdown 的流式渲染。\
         脚本不会思考，但思考过程就显示在这里。",
    )
}

pub(super) fn long_answer(language: Language) -> String {
    match language {
        Language::English => include_str!("long.en.md"),
        Language::Chinese => include_str!("long.zh.md"),
    }
    .to_owned()
}
