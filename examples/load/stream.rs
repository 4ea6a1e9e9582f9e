//! What one stream of calls is like.

use prism_judge::server::pb;

/// A stream of calls of one kind.
#[derive(Clone, Debug)]
pub struct Stream {
    pub name: String,
    pub lane: pb::Lane,
    pub cache: pb::CacheControl,
    /// Calls a second; None: closed loop.
    pub rate: Option<f64>,
    /// Exponential gaps between calls instead of equal ones.
    pub poisson: bool,
    pub connections: usize,
    /// Calls at a time on each connection of a closed loop.
    pub in_flight: usize,
    pub candidates: usize,
    /// Different calls; 0: all.
    pub distinct: u64,
    /// Words.
    pub context: usize,
    /// Words.
    pub reply: usize,
    pub evidence: Option<pb::EvidenceKind>,
    /// In milliseconds, drawn uniformly.
    pub deadline: Option<(f64, f64)>,
    /// In seconds of the run.
    pub start: f64,
    pub end: f64,
    pub calls: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            name: String::new(),
            lane: pb::Lane::Unspecified,
            cache: pb::CacheControl::Unspecified,
            rate: Some(1.0),
            poisson: true,
            connections: 1,
            in_flight: 1,
            candidates: 1,
            distinct: 0,
            context: 40,
            reply: 20,
            evidence: None,
            deadline: None,
            start: 0.0,
            end: f64::INFINITY,
            calls: u64::MAX,
        }
    }
}

impl Stream {
    /// With a name, if it has none.
    pub fn named(mut self, at: usize) -> Self {
        if self.name.is_empty() {
            self.name = format!("stream {}", at + 1);
        }
        self
    }
}

/// Reads `key=value,key=value`.
pub fn parse(text: &str) -> Result<Stream, String> {
    let mut stream = Stream::default();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let (key, value) = pair.trim().split_once('=').ok_or_else(|| format!("{pair:?} is not KEY=VALUE"))?;
        set(&mut stream, key, value).map_err(|allowed| format!("{key}={value}: it must be {allowed}"))?;
    }
    Ok(stream)
}

fn set(stream: &mut Stream, key: &str, value: &str) -> Result<(), String> {
    match key {
        "name" => stream.name = value.to_owned(),
        "lane" => {
            let lanes = [("guard", pb::Lane::Guard), ("train", pb::Lane::Train), ("batch", pb::Lane::Batch)];
            stream.lane = one_of(value, &lanes)?;
        }
        "cache" => {
            use pb::CacheControl::{Off, Refresh, Use};
            stream.cache = one_of(value, &[("use", Use), ("refresh", Refresh), ("off", Off)])?;
        }
        "rate" if value == "max" => stream.rate = None,
        "rate" => stream.rate = Some(positive(value).map_err(|allowed| format!("{allowed}, or max"))?),
        "arrivals" => stream.poisson = one_of(value, &[("poisson", true), ("fixed", false)])?,
        "connections" => stream.connections = count(value)?,
        "in_flight" => stream.in_flight = count(value)?,
        "candidates" => stream.candidates = count(value)?,
        "distinct" => stream.distinct = value.parse().map_err(|_| "a whole number".to_owned())?,
        "context" => stream.context = count(value)?,
        "reply" => stream.reply = count(value)?,
        "evidence" => {
            let kinds = [("label_slot", pb::EvidenceKind::LabelSlot), ("likelihood", pb::EvidenceKind::Likelihood)];
            stream.evidence = Some(one_of(value, &kinds)?);
        }
        "deadline" => {
            let (low, high) = value.split_once('-').unwrap_or((value, value));
            stream.deadline = Some((positive(low)?, positive(high)?));
        }
        "start" => stream.start = value.parse().map_err(|_| "a number of seconds".to_owned())?,
        "end" => stream.end = positive(value)?,
        "calls" => stream.calls = count(value)? as u64,
        _ => return Err("a key that --help lists".to_owned()),
    }
    Ok(())
}

fn one_of<T: Copy>(value: &str, allowed: &[(&str, T)]) -> Result<T, String> {
    let found = allowed.iter().find(|(name, _)| *name == value).map(|(_, found)| *found);
    found.ok_or_else(|| allowed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or "))
}

fn positive(value: &str) -> Result<f64, String> {
    let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above zero".to_owned())
}

fn count(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|count| *count > 0).ok_or_else(|| "a whole number above zero".to_owned())
}
