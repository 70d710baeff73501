//! Chapter 10: any thread, with or without a runtime.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use youyou_agent::testing::{
    InMemorySessions, RecordingTool, assert_event_invariants, call, collect, done, text, wait,
};
use youyou_agent::{
    Agent, AgentBuilder, AgentError, AgentEvent, ErrorCode, ResumeOptions, Session, SessionConfig,
    Subscription, Turn,
};

use crate::rig::{Rig, config, provider};
use crate::told::{read_until, told};

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread without any runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn assert_shared<T: Send + Sync + 'static>() {}

#[test]
fn every_handle_can_be_shared_between_threads() {
    assert_shared::<Agent>();
    assert_shared::<Session>();
    assert_shared::<Turn>();
    assert_shared::<Subscription>();
    assert_shared::<AgentEvent>();
    assert_shared::<AgentError>();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_without_a_runtime_can_do_everything() {
    let provider = provider()
        .reply([call("c1", "ro_echo", "{}"), done()])
        .always(|_| [text("ok"), done()]);
    let agent = AgentBuilder::new(config())
        .provider(provider)
        .tool(RecordingTool::read_only("ro_echo"))
        .session_storage(InMemorySessions::new())
        .build()
        .await
        .unwrap();
    let thread = std::thread::spawn(move || {
        assert!(tokio::runtime::Handle::try_current().is_err());
        let session = block_on(agent.create_session(SessionConfig::default())).unwrap();
        let subscription = session.subscribe(None);
        let turn = session.send("hi").unwrap();
        let events = block_on(collect(turn));
        assert_event_invariants(&events);
        assert_eq!(
            told(&events),
            [
                "started",
                "start c1 ro_echo",
                "end c1: ok",
                "text 1: ok",
                "completed: ok"
            ]
        );
        assert_eq!(
            session.retry_turn().unwrap_err().code,
            ErrorCode::InvalidInput
        );
        block_on(session.compact()).unwrap();
        block_on(session.close()).unwrap();
        assert_eq!(block_on(collect(subscription)), events);
        let id = session.id().to_owned();
        assert_eq!(
            block_on(agent.list_sessions(None, NonZeroUsize::new(10)))
                .unwrap()
                .sessions
                .len(),
            1
        );
        assert_eq!(block_on(agent.find_sessions("hi")).unwrap().len(), 1);
        block_on(agent.rename_session(&id, "greeting")).unwrap();
        let history = block_on(agent.session_history(&id, None, None)).unwrap();
        assert!(!history.events.is_empty());
        let session = block_on(agent.resume_session(&id, ResumeOptions::default())).unwrap();
        let turn = session.send("again").unwrap();
        let _in_time = turn.cancel();
        block_on(turn.outcome());
        block_on(session.close()).unwrap();
        block_on(agent.delete_session(&id)).unwrap();
        assert!(block_on(agent.shutdown()).problems.is_empty());
    });
    tokio::task::spawn_blocking(move || thread.join().unwrap())
        .await
        .unwrap();
}

#[test]
fn readers_without_a_runtime_wake_when_that_of_the_agent_goes_away() {
    // C29
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let provider = provider().reply([text("half"), wait()]);
    let (agent, session) = runtime.block_on(async {
        let agent = AgentBuilder::new(config())
            .provider(provider)
            .build()
            .await
            .unwrap();
        let session = agent
            .create_session(SessionConfig::default())
            .await
            .unwrap();
        (agent, session)
    });
    let mut turn = session.send("hi").unwrap();
    let everything = agent.subscribe();
    block_on(read_until(&mut turn, "text 0: half"));
    let outcome = std::thread::spawn({
        let turn = agent.turn(turn.id()).unwrap();
        move || block_on(async { turn.await })
    });
    let rest = std::thread::spawn(move || block_on(collect(turn)));
    let all = std::thread::spawn(move || block_on(collect(everything)));
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    let error = outcome.join().unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::AgentShutDown);
    assert_eq!(told(&rest.join().unwrap()), ["failed AGENT_SHUT_DOWN"]);
    drop((agent, session));
    assert_eq!(
        told(&all.join().unwrap()).last().unwrap(),
        "failed AGENT_SHUT_DOWN"
    );
}

#[test]
fn a_build_outside_a_runtime_says_what_is_missing() {
    let built = block_on(AgentBuilder::new(config()).provider(provider()).build());
    let error = built.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
    assert!(error.message.contains("tokio runtime"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_takes_calls_from_many_threads_at_once() {
    let rig = Rig::new(provider().always(|_| [text("ok"), done()])).await;
    let everything = rig.agent.subscribe();
    let tasks: Vec<_> = (0..8_usize)
        .map(|number| {
            let (agent, session) = (rig.agent.clone(), rig.session.clone());
            tokio::spawn(async move {
                for round in 0..50 {
                    match (number + round) % 4 {
                        0 => drop(session.send("hi")),
                        1 => drop(session.cancel(None)),
                        2 => drop(session.info()),
                        _ => drop(
                            agent
                                .session_history(session.id(), None, NonZeroUsize::new(1))
                                .await,
                        ),
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    while rig.session.info().turn_id.is_some() {
        tokio::task::yield_now().await;
    }
    let mut everything = everything;
    let events: Vec<AgentEvent> = std::iter::from_fn(|| everything.try_next()).collect();
    assert_event_invariants(&events);
    rig.epilogue().await;
}
