//! A trace collector in this process: what a server sends is kept and can be waited for.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// How long a test waits for spans that should come.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Collector {
    /// For `--otlp-endpoint`.
    pub endpoint: Arc<str>,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    news: watch::Sender<usize>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.received.lock().unwrap().push(request.into_inner());
        self.news.send_modify(|count| *count += 1);
        Ok(Response::new(Default::default()))
    }
}

impl Collector {
    /// Listens on a free port for as long as the runtime lives.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).into();
        let collector = Self { endpoint, received: Arc::default(), news: watch::Sender::new(0) };
        let service = TraceServiceServer::new(collector.clone());
        let incoming = TcpListenerStream::new(listener);
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        collector
    }

    pub fn received(&self) -> Vec<ExportTraceServiceRequest> {
        self.received.lock().unwrap().clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        let received = self.received();
        let scopes =
            received.into_iter().flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// The spans so far when they are `enough`.
    pub async fn wait_for(&self, enough: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let mut news = self.news.subscribe();
        let spans = tokio::time::timeout(PATIENCE, async {
            loop {
                let spans = self.spans();
                if enough(&spans) {
                    return spans;
                }
                news.changed().await.unwrap();
            }
        });
        spans.await.unwrap_or_else(|_| panic!("the spans did not come: {:#?}", self.spans()))
    }
}
