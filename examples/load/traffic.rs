//! Sends the calls of one stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prism_judge::server::pb;
use prism_judge::server::pb::candidate_result::Result as Wire;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use super::calls::{Call, Log, Outcome};
use super::connection::Client;
use super::content::{self, Prose, Random};
use super::stream::Stream;

/// How long an answer is waited for after its deadline: a server that never answers must not hold the run.
const PATIENCE: Duration = Duration::from_secs(30);

/// One stream, ready to send.
pub struct Traffic {
    stream: Stream,
    prose: Prose,
    seed: u64,
}

impl Traffic {
    pub fn new(stream: Stream, seed: u64) -> Self {
        Self { stream, prose: Prose::default(), seed }
    }

    /// Sends until the stream's end and waits for the answers.
    pub async fn run(self, clients: Vec<Client>, log: Log, start: Instant, length: Duration) {
        let begin = start + Duration::from_secs_f64(self.stream.start);
        let end = start + Duration::from_secs_f64(self.stream.end.min(length.as_secs_f64()));
        tokio::time::sleep_until(begin.into()).await;
        let traffic = Arc::new(self);
        match traffic.stream.rate {
            Some(rate) => traffic.open_loop(rate, &clients, &log, (start, begin, end)).await,
            None => traffic.closed_loop(clients, &log, (start, end)).await,
        }
    }

    async fn open_loop(
        self: &Arc<Self>,
        rate: f64,
        clients: &[Client],
        log: &Log,
        (start, begin, end): (Instant, Instant, Instant),
    ) {
        let mut random = Random(self.seed);
        let mut tasks = tokio::task::JoinSet::new();
        let mut intended = begin;
        for number in 0..self.stream.calls {
            let gap = if self.stream.poisson { -(1.0 - random.unit()).ln() } else { 1.0 };
            intended += Duration::from_secs_f64(gap / rate);
            if intended >= end {
                break;
            }
            tokio::time::sleep_until(intended.into()).await;
            let (traffic, log) = (Arc::clone(self), log.clone());
            let client = clients[number as usize % clients.len()].clone();
            tasks.spawn(async move { log.push(traffic.call(client, number, (start, intended)).await) });
            // Finished calls are reaped on the way, so that a long run stays small.
            while tasks.try_join_next().is_some() {}
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn closed_loop(self: &Arc<Self>, clients: Vec<Client>, log: &Log, (start, end): (Instant, Instant)) {
        let mut tasks = tokio::task::JoinSet::new();
        let lanes = clients.len() * self.stream.in_flight;
        for lane in 0..lanes {
            let (traffic, log) = (Arc::clone(self), log.clone());
            let client = clients[lane % clients.len()].clone();
            tasks.spawn(async move {
                let mut number = lane as u64;
                while Instant::now() < end && number < traffic.stream.calls {
                    log.push(traffic.call(client.clone(), number, (start, Instant::now())).await);
                    number += lanes as u64;
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    }

    async fn call(&self, mut client: Client, number: u64, (start, intended): (Instant, Instant)) -> Call {
        let stream = &self.stream;
        let content = if stream.distinct > 0 { number % stream.distinct } else { number };
        let mut random = Random(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(content + 1));
        let request = self.request(&mut random);
        // The budget differs from call to call even where the content repeats.
        let mut random = Random(self.seed ^ number << 20);
        let deadline = stream
            .deadline
            .map(|(low, high)| Duration::from_micros((1000.0 * (low + (high - low) * random.unit())) as u64));
        let mut request = Request::new(request);
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        let sent = Instant::now();
        let patience = tokio::time::sleep(deadline.unwrap_or(Duration::from_secs(3600)) + PATIENCE);
        let answer = tokio::select! {
            answer = client.score_group(request) => answer.map(|response| response.into_inner().results),
            () = patience => Err(Status::unknown("no answer long after the deadline")),
        };
        let now = Instant::now();
        let outcome = outcome(answer, stream.candidates);
        Call {
            at: (intended - start).as_secs_f64(),
            latency: (now - intended).as_secs_f64(),
            late: deadline.map(|deadline| (now - sent).as_secs_f64() - deadline.as_secs_f64()),
            outcome,
        }
    }

    fn request(&self, random: &mut Random) -> pb::ScoreGroupRequest {
        let Stream { lane, cache, context, reply, candidates, evidence, .. } = &self.stream;
        let candidate = |index: usize, random: &mut Random| pb::Candidate {
            id: index.to_string(),
            response: self.prose.words(random, *reply),
        };
        pb::ScoreGroupRequest {
            persona: content::persona(random),
            context: content::context(&self.prose, random, *context),
            candidates: (0..*candidates).map(|index| candidate(index, random)).collect(),
            lane: *lane as i32,
            cache: *cache as i32,
            options: evidence.map(|kind| pb::Options { evidence: Some(kind as i32), ..pb::Options::default() }),
            ..pb::ScoreGroupRequest::default()
        }
    }
}

fn outcome(answer: Result<Vec<pb::CandidateResult>, Status>, candidates: usize) -> Outcome {
    match answer {
        Ok(results) => {
            let judged = results.iter().filter(|result| matches!(result.result, Some(Wire::Verdict(_)))).count();
            Outcome { code: Code::Ok, judged, failed: candidates - judged, hinted: false }
        }
        Err(status) => {
            let pushback = status.metadata().get("grpc-retry-pushback-ms").is_some();
            let hinted = pushback && status.get_details_retry_info().is_some();
            Outcome { code: status.code(), judged: 0, failed: candidates, hinted }
        }
    }
}
