//! CheckStream: a response that is judged while it is written. One judgement at a time; what ends meanwhile is judged
//! together, next.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Extensions, Request, Response, Status, Streaming};
use tonic_types::FieldViolation;

use super::call::{call, caught};
use super::check::{Question, checked, question};
use super::{Answers, Scorer};
use crate::prism::{Candidate, Group};
use crate::server::convert::{self, Asked, Violations};
use crate::server::deadline::Deadline;
use crate::server::pb::check_stream_request::Message;
use crate::server::{PolicyFile, pb, status};
use crate::service::check::Sentences;
use crate::service::{Call, JudgeError};

/// Where the work of a call sends its answers. It waits there for a caller who is slow to read.
type Sender<T> = mpsc::Sender<Result<T, Status>>;

/// A judgement under way, and its answer; whether that is the last.
type Judgement = Pin<Box<dyn Future<Output = Result<bool, Status>> + Send>>;

pub fn growing<S: Scorer>(
    judge: Arc<S>,
    policies: Option<Arc<PolicyFile>>,
    request: Request<Streaming<pb::CheckStreamRequest>>,
) -> Response<Answers<pb::CheckStreamResponse>> {
    let (_, extensions, messages) = request.into_parts();
    let start = Start { judge, policies, extensions };
    let (answers, told) = mpsc::channel(1);
    let work = follow(start, messages, answers.clone());
    tokio::spawn(async move {
        let ended = tokio::select! {
            biased;
            // The caller went away, or the call's time or the server's has passed, which its body watches.
            () = answers.closed() => return,
            ended = caught(work) => ended.unwrap_or_else(|error| Err(status::of_error(&error))),
        };
        if let Err(status) = ended {
            // The caller may have gone away meanwhile.
            let _ = answers.send(Err(status)).await;
        }
    });
    Response::new(Box::pin(ReceiverStream::new(told)))
}

/// What a call begins with beside its first message.
struct Start<S> {
    judge: Arc<S>,
    policies: Option<Arc<PolicyFile>>,
    extensions: Extensions,
}

async fn follow<S: Scorer>(
    start: Start<S>,
    mut messages: Streaming<pb::CheckStreamRequest>,
    answers: Sender<pb::CheckStreamResponse>,
) -> Result<(), Status> {
    let first = messages.message().await?.ok_or_else(|| wrong(0, "", "is missing: the first message is `start`"))?;
    let mut reply = start.reply(first)?;
    let (mut running, mut open): (Option<Judgement>, _) = (None, true);
    loop {
        if running.is_none() {
            running = if open { reply.newest(&answers) } else { Some(reply.whole(&answers)?) };
        }
        let judged = async {
            match &mut running {
                Some(judgement) => judgement.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            last = judged => {
                if last? {
                    return Ok(());
                }
                running = None;
            }
            message = messages.message(), if open => match message? {
                Some(message) => reply.take(message)?,
                None => open = false,
            },
        }
    }
}

impl<S: Scorer> Start<S> {
    fn reply(self, first: pb::CheckStreamRequest) -> Result<Reply<S>, Status> {
        let Self { judge, policies, extensions } = self;
        let mut start = match first.message {
            Some(Message::Start(start)) => start,
            Some(Message::Text(_)) => {
                return Err(wrong(0, ".text", "comes before `start`, which is the first message"));
            }
            None => return Err(neither(0)),
        };
        let pb::Candidate { id, response } = start.candidate.take().unwrap_or_default();
        let question = question(&*judge, policies.as_deref(), start, Vec::new(), Violations::default())?;
        let call = call("CheckStream", &question.asked, &question.request_id, &extensions)?;
        let deadline = Deadline::of(&extensions);
        let mut reply = Reply {
            shared: Arc::new(Shared { judge, question, call, deadline }),
            candidate: Candidate { id, response: String::new() },
            sentences: Sentences::default(),
            done: 0,
            taken: 0,
        };
        reply.grow(&response, ".start.candidate.response")?;
        Ok(reply)
    }
}

/// The response so far.
struct Reply<S> {
    shared: Arc<Shared<S>>,
    candidate: Candidate,
    sentences: Sentences,
    /// Bytes that are judged, or being judged, or are white space after what is.
    done: usize,
    /// Number of the newest message, from 0.
    taken: usize,
}

/// What all judgements of a call have in common.
struct Shared<S> {
    judge: Arc<S>,
    question: Question,
    call: Call,
    deadline: Deadline,
}

impl<S: Scorer> Reply<S> {
    fn take(&mut self, message: pb::CheckStreamRequest) -> Result<(), Status> {
        self.taken += 1;
        match message.message {
            Some(Message::Text(text)) => self.grow(&text, ".text"),
            Some(Message::Start(_)) => {
                Err(wrong(self.taken, ".start", "there is one already, and it is the first message"))
            }
            None => Err(neither(self.taken)),
        }
    }

    /// Adds the text of a part of the newest message.
    fn grow(&mut self, text: &str, part: &str) -> Result<(), Status> {
        self.candidate.response.push_str(text);
        let fits = self.shared.judge.check_candidate(&self.candidate);
        fits.map_err(|JudgeError { field, message, .. }| match field.as_deref() {
            Some("candidates[0].id") => wrong(self.taken, ".start.candidate.id", &message),
            _ => wrong(self.taken, part, &format!("the response so far: {message}")),
        })
    }

    /// Judges up to the newest sentence end, if there is text before it that was not judged yet.
    fn newest(&mut self, answers: &Sender<pb::CheckStreamResponse>) -> Option<Judgement> {
        let text = &self.candidate.response;
        let end = self.sentences.newest_end(text);
        let fresh = text.get(self.done..end).unwrap_or_default();
        let blank = fresh.trim().is_empty();
        self.done += fresh.len();
        (!blank).then(|| self.judge(end, false, answers))
    }

    /// Judges all of it.
    fn whole(&mut self, answers: &Sender<pb::CheckStreamResponse>) -> Result<Judgement, Status> {
        if self.candidate.response.trim().is_empty() {
            return Err(wrong(self.taken + 1, "", "is missing: the stream ends before any text has come"));
        }
        Ok(self.judge(self.candidate.response.len(), true, answers))
    }

    fn judge(&self, end: usize, last: bool, answers: &Sender<pb::CheckStreamResponse>) -> Judgement {
        let (shared, answers) = (Arc::clone(&self.shared), answers.clone());
        let response = self.candidate.response.get(..end).unwrap_or_default().to_owned();
        let candidate = Candidate { id: self.candidate.id.clone(), response };
        Box::pin(async move {
            let Shared { judge, question, call, deadline } = &*shared;
            let Asked { group: Group { persona, context, .. }, overrides, lane, cache } = &question.asked;
            let group = Group { persona: persona.clone(), context: context.clone(), candidates: vec![candidate] };
            let asked = Asked { group, overrides: *overrides, lane: *lane, cache: *cache };
            let checked = checked(&**judge, &question.policy, asked, (call, *deadline)).await?;
            let check = convert::checked(checked, question.request_id.clone(), question.policy_name.clone());
            let answer = pb::CheckStreamResponse { check: Some(check), judged_bytes: end as u64, last };
            // A caller who has gone away ends the task elsewhere.
            let _ = answers.send(Ok(answer)).await;
            Ok(last)
        })
    }
}

/// INVALID_ARGUMENT for a part of message `number`, from 0.
fn wrong(number: usize, part: &str, message: &str) -> Status {
    status::invalid(vec![FieldViolation::new(format!("messages[{number}]{part}"), message)])
}

fn neither(number: usize) -> Status {
    wrong(number, "", "has neither `start` nor `text`")
}
