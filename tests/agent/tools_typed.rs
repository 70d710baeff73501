//! Tools from plain functions: schema and arguments come from a type (chapter 3.2).

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use youyou_agent::testing::{call, done, text};
use youyou_agent::tool::IntoToolOutput;
use youyou_agent::{
    ErrorCode, ToolContext, ToolDefinition, ToolError, ToolHandler, ToolInput, ToolOutput, tool,
};

use crate::look::{assert_completed, ends, result};
use crate::rig::{Rig, config, provider};

#[derive(Debug, Deserialize, JsonSchema)]
struct Sum {
    /// The numbers to add.
    numbers: Vec<i64>,
    /// Negates the result.
    #[serde(default)]
    negate: bool,
}

fn add(args: &Sum) -> Result<String, ToolError> {
    if args.numbers.is_empty() {
        return Err(ToolError::new("give at least one number"));
    }
    let sum: i64 = args.numbers.iter().sum();
    Ok((if args.negate { -sum } else { sum }).to_string())
}

/// What the model gets of one call.
async fn told(tool: impl ToolHandler, arguments: &str) -> (String, bool) {
    let provider = provider()
        .reply([call("c1", "sum", arguments), done()])
        .reply([text("ok"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder.tool(tool)).await;
    let events = rig.send("go").await;
    assert_completed(&events, "ok");
    let told = result(&rig.request(2), "c1");
    let success = ends(&events)[0].success;
    rig.epilogue().await;
    (told, success)
}

#[tokio::test(start_paused = true)]
async fn a_typed_tool_gets_its_arguments_and_answers_like_any_other() {
    for (arguments, output, success) in [
        (r#"{"numbers":[1,2,3]}"#, "6", true),
        (r#"{"numbers":[1],"negate":true}"#, "-1", true),
        (
            r#"{"numbers":[]}"#,
            "TOOL_EXECUTION_ERROR: give at least one number",
            false,
        ),
    ] {
        let sum = tool::typed("sum", "Adds.", |args: Sum, _: ToolContext| async move {
            add(&args)
        });
        assert_eq!(told(sum, arguments).await, (output.to_owned(), success));
        let sum = tool::typed_blocking("sum", "Adds.", |args: Sum, _: ToolContext| add(&args));
        assert_eq!(told(sum, arguments).await, (output.to_owned(), success));
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_the_type_is_refused_by_the_schema() {
    for (arguments, named) in [
        (r#"{"numbers":"1"}"#, "/numbers"),
        (r#"{"numbers":[1.5]}"#, "/numbers/0"),
        ("{}", "\"numbers\""),
    ] {
        let sum = tool::typed("sum", "Adds.", |args: Sum, _: ToolContext| async move {
            add(&args)
        });
        let (told, success) = told(sum, arguments).await;
        assert!(
            !success && told.starts_with("TOOL_EXECUTION_ERROR: "),
            "{told}"
        );
        assert!(told.contains(named), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_blocking_tool_is_an_error_result() {
    let broken = tool::typed_blocking("sum", "Adds.", |args: Sum, _: ToolContext| {
        assert!(args.numbers.is_empty(), "cannot count");
        Ok("none")
    });
    let (told, success) = told(broken, r#"{"numbers":[1]}"#).await;
    assert!(!success);
    assert!(
        told.contains("\"sum\"") && told.contains("cannot count"),
        "{told}"
    );
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize)]
struct Report {
    hits: u32,
    best: Option<&'static str>,
}

/// What the model gets of a tool without arguments that gives back this.
async fn given<O: IntoToolOutput + Clone + Send + Sync + 'static>(output: O) -> (String, bool) {
    let gives = tool::typed("sum", "Gives.", move |_: Nothing, _: ToolContext| {
        let output = output.clone();
        async move { Ok(output) }
    });
    told(gives, "{}").await
}

#[tokio::test(start_paused = true)]
async fn a_text_stays_as_it_is_and_any_other_value_becomes_json() {
    let text = |text: &str| (text.to_owned(), true);
    assert_eq!(given("say \"hi\"\n").await, text("say \"hi\"\n"));
    assert_eq!(given("a \\ b".to_owned()).await, text("a \\ b"));
    assert_eq!(given(std::borrow::Cow::Borrowed("é")).await, text("é"));
    assert_eq!(given('"').await, text("\""));
    assert_eq!(given(2.5).await, text("2.5"));
    assert_eq!(given(vec!["a", "b"]).await, text(r#"["a","b"]"#));
    assert_eq!(given(None::<String>).await, text("null"));
    let report = Report {
        hits: 2,
        best: Some("a"),
    };
    // In the order of the fields.
    assert_eq!(
        given(Arc::new(report)).await,
        text(r#"{"hits":2,"best":"a"}"#)
    );
    let failure = ToolOutput::error("nothing found");
    assert_eq!(given(failure).await, ("nothing found".to_owned(), false));
    let (told, success) = given(HashMap::from([(vec![1], 2)])).await;
    assert!(!success);
    assert!(
        told.starts_with("TOOL_EXECUTION_ERROR: the output is not JSON: "),
        "{told}"
    );
}

/// A schema that takes more than the type does.
#[derive(Debug, Deserialize, JsonSchema)]
struct Port {
    #[schemars(with = "i64")]
    port: u16,
}

#[tokio::test(start_paused = true)]
async fn what_the_schema_lets_through_and_the_type_refuses_is_told_like_a_violation() {
    let async_one = tool::typed("sum", "Opens.", |args: Port, _: ToolContext| async move {
        Ok(args.port)
    });
    let blocking =
        tool::typed_blocking("sum", "Opens.", |args: Port, _: ToolContext| Ok(args.port));
    for tool in [async_one, blocking] {
        let tool = Arc::new(tool);
        assert_eq!(
            told(Arc::clone(&tool), r#"{"port":80}"#).await,
            ("80".to_owned(), true)
        );
        let (told, success) = told(tool, r#"{"port":70000}"#).await;
        assert!(!success);
        assert_eq!(
            told,
            "TOOL_EXECUTION_ERROR: the arguments do not fit: invalid value: integer `70000`, expected u16; the tool was not run"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_shared_and_one_without_a_type_are_tools_like_any_other() {
    let sum = tool::typed("sum", "Adds.", |args: Sum, _: ToolContext| async move {
        add(&args)
    });
    let shared: Arc<dyn ToolHandler> = Arc::new(sum);
    assert_eq!(shared.definition().name, "sum");
    assert_eq!(
        told(shared, r#"{"numbers":[4]}"#).await,
        ("4".to_owned(), true)
    );
}

#[test]
fn the_schema_comes_from_the_type_with_its_docs() {
    let sum = tool::typed("sum", "Adds.", |args: Sum, _: ToolContext| async move {
        add(&args)
    });
    assert_eq!(
        sum.definition(),
        ToolDefinition::new(
            "sum",
            "Adds.",
            json!({
                "type": "object",
                "properties": {
                    "numbers": {
                        "description": "The numbers to add.",
                        "type": "array",
                        "items": { "type": "integer", "format": "int64" },
                    },
                    "negate": {
                        "description": "Negates the result.",
                        "type": "boolean",
                        "default": false,
                    },
                },
                "required": ["numbers"],
            }),
        )
    );
    assert!(sum.mutating().definition().mutating);
}

#[tokio::test(start_paused = true)]
async fn a_typed_tool_can_be_tested_without_an_agent() {
    let sum = tool::typed(
        "sum",
        "Adds.",
        |args: Sum, context: ToolContext| async move {
            context.progress("goes nowhere");
            add(&args)
        },
    );
    let input = ToolInput::new("c1", "sum", json!({"numbers": [2, 3]}));
    let output = sum.call(input, ToolContext::detached()).await;
    assert_eq!(output, Ok(ToolOutput::text("5")));
}

#[tokio::test(start_paused = true)]
async fn tools_are_checked_at_build_and_listed_by_name() {
    let base = || youyou_agent::AgentBuilder::new(config()).provider(provider());
    let plain = |name: &str| youyou_agent::testing::RecordingTool::read_only(name);
    let twice = base()
        .tool(plain("t"))
        .tool(plain("t"))
        .build()
        .await
        .unwrap_err();
    assert_eq!(twice.code, ErrorCode::NameConflict);
    for bad in [
        plain("t").parameters(json!({"type": "nonsense"})),
        plain("t").parameters(json!({"type": "object", "required": "path"})),
        plain("t").parameters(json!({"properties": []})),
        plain("t").parameters(json!(null)),
        plain("t").parameters(json!([])),
        plain(""),
        plain(" "),
    ] {
        let error = base().tool(bad).build().await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert!(error.message.contains("tool"), "{}", error.message);
    }
    let agent = base()
        .tool(plain("b"))
        .tool(plain("a"))
        .build()
        .await
        .unwrap();
    let names: Vec<String> = agent.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);
}
