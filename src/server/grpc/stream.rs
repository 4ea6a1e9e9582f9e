//! Calls that go on after their first answer: nobody else watches their time any more.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Extensions, Status};

use super::Answers;
use super::call::caught;
use crate::server::deadline::Deadline;
use crate::server::life::{Life, Phase};
use crate::server::status;
use crate::telemetry::{CallRecord, catalogue};

/// Where the work of a call sends its answers. It waits there for a caller who is slow to read.
pub type Sender<T> = mpsc::Sender<Result<T, Status>>;

/// When a call is over whatever its work says.
pub struct Ends {
    deadline: Deadline,
    life: Option<Life>,
    record: CallRecord,
}

impl Ends {
    /// As the front found it out.
    pub fn of(extensions: &Extensions) -> Self {
        Self {
            deadline: Deadline::of(extensions),
            life: extensions.get().cloned(),
            record: extensions.get().cloned().unwrap_or_default(),
        }
    }

    /// What `work` answers, on a task of its own. It is dropped when the caller goes away, when the call's time has
    /// passed and when the server's has; the last two end the answers with their status, as the work's own error does.
    pub fn answers<T: Send + 'static, F>(self, work: impl FnOnce(Sender<T>) -> F) -> Answers<T>
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (answers, told) = mpsc::channel(1);
        let work = work(answers.clone());
        tokio::spawn(async move {
            let ended = tokio::select! {
                biased;
                () = answers.closed() => return,
                ended = caught(work) => ended.unwrap_or_else(|error| Err(status::of_error(&error))),
                () = self.deadline.passed() => Err(status::late()),
                () = self.server_ends() => {
                    catalogue::SHED.increment([self.record.lane(), "draining"]);
                    Err(status::stopping())
                }
            };
            if let Err(status) = ended {
                // The caller may have gone away meanwhile.
                let _ = answers.send(Err(status)).await;
            }
        });
        Box::pin(ReceiverStream::new(told))
    }

    async fn server_ends(&self) {
        match &self.life {
            Some(life) => life.reached(Phase::Over).await,
            None => std::future::pending().await,
        }
    }
}
