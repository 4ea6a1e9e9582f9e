//! One connection to Redis and its breaker. Commands that are sent at the same time share it; their answers come in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, ErrorKind, Pipeline, RedisError, ServerError, Value};
use tokio::time::timeout;

use super::breaker::Breaker;
use super::seal::LONGEST;
use super::settings::RedisServer;
use crate::telemetry::catalogue::{REDIS_COMMANDS, REDIS_SECONDS};

/// How long a connection may take to be made, in the background.
const CONNECT: Duration = Duration::from_secs(1);

/// How long a batch of judgements may take to be written, in the background.
const WRITE: Duration = Duration::from_secs(1);

/// Round trips that wait for the connection's task, at most; beyond that their callers wait, within their timeouts.
const PIPELINES: usize = 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("it did not answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("{0}")]
    Connection(#[from] RedisError),
    /// Told by the server.
    #[error("{0}")]
    Refused(ServerError),
    #[error("it does not answer as a Redis does")]
    Odd,
}

impl Failure {
    /// The name used in metrics.
    fn name(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Connection(_) | Self::Refused(_) | Self::Odd => "error",
        }
    }

    /// Whether Redis answers and will have none of us: somebody has to set something right.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Connection(error) => {
                matches!(error.kind(), ErrorKind::AuthenticationFailed | ErrorKind::Server(_))
            }
            Self::Refused(_) | Self::Odd => true,
            Self::Timeout(_) => false,
        }
    }
}

/// What is at a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Missing,
    /// The value, or its beginning if it is longer than any of ours.
    Bytes(Vec<u8>),
    /// Not a string.
    WrongType,
}

impl Reply {
    fn read(value: Value) -> Result<Self, Failure> {
        match value {
            Value::BulkString(bytes) if bytes.is_empty() => Ok(Self::Missing),
            Value::BulkString(bytes) => Ok(Self::Bytes(bytes)),
            Value::ServerError(error) if error.code() == "WRONGTYPE" => Ok(Self::WrongType),
            Value::ServerError(error) => Err(Failure::Refused(error)),
            _ => Err(Failure::Odd),
        }
    }
}

/// A connection that has answered.
pub(super) struct Link {
    connection: MultiplexedConnection,
    timeout: Duration,
    pub breaker: Breaker,
    invalid_seen: AtomicBool,
    refusal_seen: AtomicBool,
}

impl Link {
    /// Connects, and reads the key `name` once: whoever may do that may use the cache.
    pub async fn connect(server: &RedisServer, timeout: Duration, name: &str) -> Result<Self, Failure> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            // Its callers bound each command.
            .set_response_timeout(None)
            .set_pipeline_buffer_size(PIPELINES);
        let connection = server.client().get_multiplexed_async_connection_with_config(&config).await?;
        let link = Self {
            connection,
            timeout,
            breaker: Breaker::default(),
            invalid_seen: AtomicBool::default(),
            refusal_seen: AtomicBool::default(),
        };
        link.probe(name).await?;
        Ok(link)
    }

    /// Reads the key `name` and counts how that went.
    pub async fn probe(&self, name: &str) -> Result<(), Failure> {
        self.get(&[name]).await.map(|_| ())
    }

    /// What is at each key. Not MGET: that would transfer a value of any size, and whoever can write to Redis could
    /// fill the memory of every judge.
    pub async fn get<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<Reply>, Failure> {
        let mut commands = Pipeline::with_capacity(names.len());
        for name in names {
            // The end counts: one byte more than the longest of ours.
            commands.cmd("GETRANGE").arg(name.as_ref()).arg(0).arg(LONGEST);
        }
        let answers = self.exchange("get", &commands, self.timeout).await;
        let replies = answers.and_then(|answers| answers.into_iter().map(Reply::read).collect::<Result<Vec<_>, _>>());
        match &replies {
            Ok(_) => self.breaker.succeeded(),
            Err(failure) => self.failed(failure),
        }
        REDIS_COMMANDS.add(["get", replies.as_ref().err().map_or("ok", Failure::name)], names.len() as u64);
        replies
    }

    /// Writes values, each under its name, and returns the first refusal. Success says nothing of how quickly Redis
    /// answers, so that the breaker does not hear of it.
    pub async fn set(
        &self,
        values: &[(String, Vec<u8>)],
        ttl: Option<Duration>,
    ) -> Result<Option<ServerError>, Failure> {
        let mut commands = Pipeline::with_capacity(values.len());
        for (name, value) in values {
            commands.cmd("SET").arg(name).arg(value.as_slice());
            if let Some(ttl) = ttl {
                commands.arg("EX").arg(ttl.as_secs());
            }
        }
        let answers = match self.exchange("set", &commands, WRITE).await {
            Ok(answers) => answers,
            Err(failure) => {
                REDIS_COMMANDS.add(["set", failure.name()], values.len() as u64);
                // A second is no chance.
                self.breaker.open();
                return Err(failure);
            }
        };
        let mut refusal = None;
        for answer in answers {
            REDIS_COMMANDS.increment(["set", if answer == Value::Okay { "ok" } else { "error" }]);
            if let Value::ServerError(error) = answer {
                refusal.get_or_insert(error);
            }
        }
        Ok(refusal)
    }

    /// Notes that a value was not taken. True for the first one, which is worth a line in the log.
    pub fn first_invalid(&self) -> bool {
        !self.invalid_seen.swap(true, Ordering::Relaxed)
    }

    /// The same for a value that Redis did not take.
    pub fn first_refusal(&self) -> bool {
        !self.refusal_seen.swap(true, Ordering::Relaxed)
    }

    fn failed(&self, failure: &Failure) {
        match failure {
            Failure::Connection(error) if error.is_unrecoverable_error() => self.breaker.open(),
            _ => self.breaker.failed(Instant::now()),
        }
    }

    /// One round trip; one answer a command, errors of single commands among them.
    async fn exchange(&self, name: &str, commands: &Pipeline, within: Duration) -> Result<Vec<Value>, Failure> {
        let mut connection = self.connection.clone();
        let sent = Instant::now();
        let answers = timeout(within, connection.send_packed_commands(commands, 0, commands.len())).await;
        REDIS_SECONDS.record([name], sent.elapsed().as_secs_f64());
        match answers {
            Err(_) => Err(Failure::Timeout(within)),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(answers)) if answers.len() == commands.len() => Ok(answers),
            Ok(Ok(_)) => Err(Failure::Odd),
        }
    }
}
