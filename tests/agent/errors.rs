//! Errors: what each code says of itself (chapter 9).

use serde_json::json;
use youyou_agent::testing::{done, error, text};
use youyou_agent::{
    AgentError, ErrorCode, ErrorOrigin, HookError, PluginError, ProviderError,
    ProviderErrorKind as Kind, ToolError,
};

use crate::look::assert_failed;
use crate::rig::{Rig, config, provider};

fn provider_error(kind: Kind) -> AgentError {
    AgentError::provider("p", &ProviderError::new(kind, "it broke"))
}

#[test]
fn every_code_has_its_name_source_and_retryability() {
    use ErrorOrigin::{Agent, Plugin, Provider, Storage, Tool};
    let table = [
        (
            AgentError::no_model_provider(),
            "NO_MODEL_PROVIDER",
            Agent,
            false,
        ),
        (
            AgentError::name_conflict("tool", "t"),
            "NAME_CONFLICT",
            Agent,
            false,
        ),
        (
            AgentError::skill_dependency_not_met("s", "t"),
            "SKILL_DEPENDENCY_NOT_MET",
            Agent,
            false,
        ),
        (
            AgentError::plugin_init_failed("p", "apply", "r"),
            "PLUGIN_INIT_FAILED",
            Plugin,
            false,
        ),
        (
            AgentError::storage_duplicate("session"),
            "STORAGE_DUPLICATE",
            Agent,
            false,
        ),
        (
            AgentError::invalid_default_model("m", &[]),
            "INVALID_DEFAULT_MODEL",
            Agent,
            false,
        ),
        (
            AgentError::invalid_config("f", "r"),
            "INVALID_CONFIG",
            Agent,
            false,
        ),
        (AgentError::session_busy("m"), "SESSION_BUSY", Agent, true),
        (
            AgentError::model_not_supported("m", &[]),
            "MODEL_NOT_SUPPORTED",
            Agent,
            false,
        ),
        (
            provider_error(Kind::Network),
            "PROVIDER_ERROR",
            Provider,
            true,
        ),
        (
            AgentError::tool_execution("m"),
            "TOOL_EXECUTION_ERROR",
            Tool,
            false,
        ),
        (AgentError::tool_timeout("t", 1), "TOOL_TIMEOUT", Tool, true),
        (
            AgentError::tool_not_found("t", &[]),
            "TOOL_NOT_FOUND",
            Tool,
            false,
        ),
        (
            AgentError::skill_not_found("s", &[]),
            "SKILL_NOT_FOUND",
            Agent,
            false,
        ),
        (
            AgentError::session_not_found("s"),
            "SESSION_NOT_FOUND",
            Agent,
            false,
        ),
        (
            AgentError::storage("d", "r"),
            "STORAGE_ERROR",
            Storage,
            true,
        ),
        (
            AgentError::max_tool_calls_exceeded(1),
            "MAX_TOOL_CALLS_EXCEEDED",
            Agent,
            false,
        ),
        (AgentError::compact("m"), "COMPACT_ERROR", Agent, false),
        (
            AgentError::request_cancelled("w"),
            "REQUEST_CANCELLED",
            Agent,
            true,
        ),
        (
            AgentError::invalid_input("m"),
            "INVALID_INPUT",
            Agent,
            false,
        ),
        (
            AgentError::content_not_supported("m", "images"),
            "CONTENT_NOT_SUPPORTED",
            Agent,
            false,
        ),
        (
            AgentError::hook_aborted("p", "h", "r"),
            "HOOK_ABORTED",
            Plugin,
            false,
        ),
        (
            AgentError::agent_shut_down(),
            "AGENT_SHUT_DOWN",
            Agent,
            false,
        ),
        (AgentError::internal("m"), "INTERNAL", Agent, false),
    ];
    for (error, code, source, retryable) in table {
        assert_eq!(error.code.to_string(), code);
        assert_eq!(error.origin, source, "{code}");
        assert_eq!(error.retryable, retryable, "{code}");
        assert!(!error.message.trim().is_empty(), "{code}");
        assert_eq!(error.to_string(), format!("{code}: {}", error.message));
    }
}

#[test]
fn a_provider_error_is_retryable_by_its_kind() {
    for (kind, retryable) in [
        (
            Kind::RateLimited {
                retry_after_ms: None,
            },
            true,
        ),
        (Kind::Overloaded, true),
        (Kind::Network, true),
        (Kind::Timeout, true),
        (Kind::Other, true),
        (Kind::ContextLengthExceeded, false),
        (Kind::Auth, false),
        (Kind::Quota, false),
        (Kind::InvalidRequest, false),
        (Kind::UnsupportedContent, false),
    ] {
        assert_eq!(
            provider_error(kind.clone()).retryable,
            retryable,
            "{kind:?}"
        );
    }
}

#[test]
fn on_the_wire_an_error_is_one_flat_object() {
    let plain = serde_json::to_value(AgentError::session_busy("a turn is running")).unwrap();
    assert_eq!(
        plain,
        json!({
            "code": "SESSION_BUSY",
            "message": "a turn is running",
            "retryable": true,
            "source": "agent",
        })
    );
    let limited = provider_error(Kind::RateLimited {
        retry_after_ms: Some(1_500),
    });
    let wire = serde_json::to_value(&limited).unwrap();
    assert_eq!(wire["code"], "PROVIDER_ERROR");
    assert_eq!(wire["source"], "provider");
    assert_eq!(wire["retryAfterMs"], 1_500);
    assert_eq!(serde_json::from_value::<AgentError>(wire).unwrap(), limited);
}

#[test]
fn messages_name_the_thing_and_what_to_do() {
    let known = ["m1".to_owned(), "m2".to_owned()];
    for (error, named) in [
        (
            AgentError::no_model_provider(),
            vec!["AgentBuilder::provider"],
        ),
        (
            AgentError::name_conflict("tool", "shell"),
            vec!["tool", "\"shell\"", "unique"],
        ),
        (
            AgentError::skill_dependency_not_met("commit", "shell"),
            vec!["\"commit\"", "\"shell\""],
        ),
        (
            AgentError::plugin_init_failed("guard", "apply", "no"),
            vec!["\"guard\"", "apply", "no"],
        ),
        (
            AgentError::storage_duplicate("memory"),
            vec!["memory storage", "at most one"],
        ),
        (
            AgentError::invalid_default_model("x", &known),
            vec!["\"x\"", "m1, m2"],
        ),
        (
            AgentError::model_not_supported("x", &known),
            vec!["\"x\"", "m1, m2"],
        ),
        (
            AgentError::model_not_supported("x", &[]),
            vec!["\"x\"", "none"],
        ),
        (
            AgentError::tool_timeout("shell", 200),
            vec!["\"shell\"", "200 ms"],
        ),
        (
            AgentError::tool_not_found("shel", &["shell"]),
            vec!["\"shel\"", "shell"],
        ),
        (
            AgentError::skill_not_found("x", &["y"]),
            vec!["\"/x\"", "/y", "\"//x\""],
        ),
        (
            AgentError::content_not_supported("m1", "images"),
            vec!["\"m1\"", "images", "another model"],
        ),
        (
            AgentError::max_tool_calls_exceeded(50),
            vec!["50", "send a message"],
        ),
    ] {
        for part in named {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
    }
}

#[test]
fn errors_of_tools_hooks_and_plugins_take_over_what_io_and_json_say_and_keep_the_source() {
    fn read<E: From<std::io::Error>>() -> Result<(), E> {
        Err(std::io::Error::other("the disk is full"))?;
        Ok(())
    }
    fn parse<E: From<serde_json::Error>>() -> Result<(), E> {
        let _: u8 = serde_json::from_str("")?;
        Ok(())
    }
    fn check<E>(message: fn(&E) -> &str)
    where
        E: std::error::Error + PartialEq + From<std::io::Error> + From<serde_json::Error>,
    {
        let error = read::<E>().unwrap_err();
        assert_eq!(
            (message(&error), &*error.to_string()),
            ("the disk is full", "the disk is full")
        );
        assert!(error.source().unwrap().is::<std::io::Error>());
        let error = parse::<E>().unwrap_err();
        assert!(message(&error).starts_with("EOF while parsing"), "{error}");
        assert!(error.source().unwrap().is::<serde_json::Error>());
    }
    check::<ToolError>(|error| &error.message);
    check::<HookError>(|error| &error.message);
    check::<PluginError>(|error| &error.message);
    let bare = HookError::new("no");
    assert!(std::error::Error::source(&bare).is_none());
    assert_eq!(
        bare,
        HookError::new("no").with_source("the source does not count")
    );
}

#[test]
fn facts_can_be_added() {
    let error = AgentError::invalid_input("m").with_details(json!({"field": "path"}));
    let wire = serde_json::to_value(error).unwrap();
    assert_eq!(wire["details"], json!({"field": "path"}));
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_tells_the_providers_name_and_words() {
    let provider = provider()
        .reply([error(Kind::Auth, "the key is wrong")])
        .always(|_| [text("fine"), done()]);
    let rig = Rig::with(provider, config(), |builder| builder).await;
    let events = rig.send("hi").await;
    let failure = assert_failed(&events, ErrorCode::ProviderError);
    assert!(failure.message.contains("scripted") && failure.message.contains("the key is wrong"));
    assert_eq!(
        (failure.retryable, failure.origin),
        (false, ErrorOrigin::Provider)
    );
    rig.epilogue().await;
}
