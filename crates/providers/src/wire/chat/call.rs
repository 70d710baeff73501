//! Calls of tools: fragments as the servers send them, and whole calls as they go back.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::calls::{Call, Calls, Fragment};
use crate::wire::body::quoted;
use crate::wire::flow::{self, Events, Flow};
use crate::wire::json::{self, Fields};
use crate::wire::origin::visible_arguments;

/// Takes a fragment, with the fields of the vendor's own that are beside it.
pub(super) fn take(calls: &mut Calls, call: &Fields<'_>) {
    let function = call.object("function");
    // Some leave the envelope out.
    let inner = if function.is_empty() { call } else { &function };
    let name = inner.text("name").unwrap_or_default();
    let given = inner.get("arguments");
    let as_text = given.and_then(json::text);
    let is_whole = as_text.is_none() && given.is_some();
    let arguments = as_text.or_else(|| given.map(|value| Cow::Borrowed(value.get())));
    let taken = calls.take(Fragment {
        index: call.number("index"),
        id: &call.text("id").unwrap_or_default(),
        name: &name,
        arguments: &arguments.unwrap_or_default(),
        is_whole,
    });
    let Some(taken) = taken.filter(|_| !function.is_empty()) else {
        return;
    };
    for (name, value) in call.iter() {
        let is_own = matches!(name, "index" | "id" | "type" | "function");
        if !is_own && value.get() != "null" {
            taken.extra.retain(|(known, _)| known != name);
            taken.extra.push((name.to_owned(), value.get().to_owned()));
        }
    }
}

/// A whole call, with its own form where it cannot be made again from what is visible.
pub(super) fn give(flow: &mut Flow, call: &Call, events: &mut Events) {
    let visible = visible_arguments(&call.arguments).to_string();
    let is_object = call.arguments.trim_start().starts_with('{')
        && serde_json::from_str::<&RawValue>(&call.arguments).is_ok();
    let is_own = is_object && call.arguments != visible || !call.extra.is_empty();
    let item = is_own.then(|| {
        let arguments = if is_object { &call.arguments } else { &visible };
        let mut item = format!(
            r#"{{"id":{},"type":"function","function":{{"name":{},"arguments":{}}}"#,
            quoted(&call.id),
            quoted(&call.name),
            quoted(arguments)
        );
        for (name, value) in &call.extra {
            item.push_str(&format!(",{}:{value}", quoted(name)));
        }
        item.push('}');
        item
    });
    flow.call(
        flow::Call {
            id: Some(call.id.as_str()).filter(|id| !id.is_empty()),
            // The agent may have to change the id; the rest is the model's own all the same.
            is_id_seen: false,
            name: &call.name,
            arguments: call.arguments.clone(),
            item: item.as_deref(),
        },
        events,
    );
}
