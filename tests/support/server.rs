//! The built binary as a server, on free ports of this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use prism_judge::server::pb;
use prism_judge::server::pb::judge_service_client::JudgeServiceClient;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::tiny::Tiny;

/// `prism-judge serve`; ends with the test.
pub struct Server {
    child: Child,
    pub address: String,
    /// Of the HTTP routes.
    pub http: String,
    pub admin: String,
    /// Lines of standard error after the addresses.
    pub log: mpsc::Receiver<String>,
}

impl Server {
    /// Starts it and waits for its ports.
    pub fn start(args: &[&str]) -> Self {
        let free = "127.0.0.1:0";
        let ports = ["serve", "--listen", free, "--http-listen", free, "--admin-listen", free];
        let mut command = super::cli::binary(&[&ports, args].concat());
        Self::of(&mut command)
    }

    /// The same, of a command that a test has prepared.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, log) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("{line}");
                // The test may have heard enough.
                let _ = sender.send(line);
            }
        });
        let mut server = Self { child, address: String::new(), http: String::new(), admin: String::new(), log };
        server.address = server.logged("listening on ").split(',').next().unwrap().to_owned();
        server.http = server.logged("http on ").split('"').next().unwrap().to_owned();
        server.admin = server.logged("admin on ").split('"').next().unwrap().to_owned();
        server
    }

    /// The rest of the next line of the log that has `what`.
    pub fn logged(&self, what: &str) -> String {
        loop {
            let line = self.log.recv().unwrap_or_else(|_| panic!("it ended without saying `{what}`"));
            if let Some((_, rest)) = line.split_once(what) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// Waits until calls are served.
    pub async fn ready(self) -> Self {
        let channel = connect(&self.admin).await;
        let mut watch = HealthClient::new(channel).watch(HealthCheckRequest::default()).await.unwrap().into_inner();
        while watch.message().await.unwrap().unwrap().status() != ServingStatus::Serving {}
        self
    }

    pub async fn channel(&self) -> Channel {
        connect(&self.address).await
    }

    pub async fn judge(&self) -> JudgeServiceClient<Channel> {
        JudgeServiceClient::new(self.channel().await)
    }

    /// Status and body of a page of the admin port.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.admin).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub async fn connect(address: &str) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A file with a tiny seeded model that has the default model's tokenizer, for tests that are not about its numbers.
pub fn tiny_model(folder: &Path) -> Option<PathBuf> {
    let backbone = super::backbone()?;
    let path = folder.join("tiny.gguf");
    Tiny::speaking_as(&backbone, 7).write(&path);
    Some(path)
}

/// A request for one judgement.
pub fn request(response: &str) -> pb::ScoreRequest {
    let target = pb::TraitTarget { r#trait: pb::Trait::Extraversion as i32, polarity: pb::Polarity::High as i32 };
    pb::ScoreRequest {
        persona: Some(pb::Persona { traits: vec![target], ..pb::Persona::default() }),
        context: vec![pb::Turn { speaker: "User".into(), text: "Are you coming to the party tonight?".into() }],
        candidate: Some(pb::Candidate { id: "c".into(), response: response.into() }),
        ..pb::ScoreRequest::default()
    }
}
