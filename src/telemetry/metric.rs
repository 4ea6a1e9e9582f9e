//! A metric: a static that knows its name, help and labels, and holds a handle for each of its series.
//!
//! Before [`install`](super::install) recording does nothing, so that the command line and tests need no set-up.

use std::sync::OnceLock;

use metrics::{Key, KeyName, Level, Metadata, Recorder};

use super::{Label, exporter};

/// What kind of number it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
    /// A gauge that is always 1 and says something by its labels.
    Info,
}

impl Kind {
    /// The name in Prometheus' text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge | Self::Info => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// What a metric says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    /// The labels; those of an [`Kind::Info`] have no values here.
    pub labels: Vec<Label>,
}

impl Description {
    /// Lines in the text format, at most.
    pub fn series(&self) -> usize {
        let lines = match self.kind {
            // +Inf, sum and count.
            Kind::Histogram(buckets) => buckets.len() + 3,
            Kind::Counter | Kind::Gauge => 1,
            Kind::Info => return 1,
        };
        self.labels.iter().map(|label| label.values.len()).product::<usize>() * lines
    }
}

/// One entry of the catalogue.
pub trait Metric: Sync {
    fn description(&self) -> Description;

    /// Creates every series, at zero.
    fn register(&self, recorder: &dyn Recorder);
}

/// Where metrics come from, as the facade wants to know it.
const METADATA: Metadata<'static> = Metadata::new("prism_judge", Level::INFO, None);

/// Name, help, labels and the handle of every combination of values, the last label changing fastest.
struct Series<H, const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [Label; N],
    handles: OnceLock<Box<[H]>>,
}

impl<H, const N: usize> Series<H, N> {
    const fn new(name: &'static str, help: &'static str, labels: [Label; N]) -> Self {
        Self { name, help, labels, handles: OnceLock::new() }
    }

    fn handle(&self, values: [&str; N]) -> Option<&H> {
        let handles = self.handles.get()?;
        let labels = self.labels.iter().zip(values);
        handles.get(labels.fold(0, |index, (label, value)| index * label.values.len() + label.index(value)))
    }

    fn describe(&self, kind: Kind) -> Description {
        Description { name: self.name, help: self.help, kind, labels: self.labels.to_vec() }
    }

    fn fill(&self, handle: impl FnMut(Key) -> H) {
        let mut combinations: Vec<Vec<metrics::Label>> = vec![Vec::new()];
        for Label { name, values } in self.labels {
            let with =
                |labels: &[metrics::Label], value: &'static str| [labels, &[metrics::Label::new(name, value)]].concat();
            let each =
                |labels: &Vec<metrics::Label>| values.iter().map(|value| with(labels, value)).collect::<Vec<_>>();
            combinations = combinations.iter().flat_map(each).collect();
        }
        let keys = combinations.into_iter().map(|labels| Key::from_parts(self.name, labels));
        // A second call would make the same handles.
        let _ = self.handles.set(keys.map(handle).collect());
    }
}

/// A count that only grows.
pub struct Counter<const N: usize>(Series<metrics::Counter, N>);

impl<const N: usize> Counter<N> {
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [Label; N]) -> Self {
        Self(Series::new(name, help, labels))
    }

    pub fn increment(&self, labels: [&str; N]) {
        self.add(labels, 1);
    }

    pub fn add(&self, labels: [&str; N], count: u64) {
        if let Some(counter) = self.0.handle(labels) {
            counter.increment(count);
        }
    }

    /// Sets the count to one that is kept elsewhere; it never goes back.
    pub fn copy(&self, labels: [&str; N], count: u64) {
        if let Some(counter) = self.0.handle(labels) {
            counter.absolute(count);
        }
    }
}

impl<const N: usize> Metric for Counter<N> {
    fn description(&self) -> Description {
        self.0.describe(Kind::Counter)
    }

    fn register(&self, recorder: &dyn Recorder) {
        recorder.describe_counter(KeyName::from(self.0.name), None, self.0.help.into());
        self.0.fill(|key| recorder.register_counter(&key, &METADATA));
    }
}

/// A value that goes up and down.
pub struct Gauge<const N: usize>(Series<metrics::Gauge, N>);

impl<const N: usize> Gauge<N> {
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [Label; N]) -> Self {
        Self(Series::new(name, help, labels))
    }

    pub fn set(&self, labels: [&str; N], value: f64) {
        if let Some(gauge) = self.0.handle(labels) {
            gauge.set(value);
        }
    }

    /// Adds 1 until the guard is dropped.
    pub fn hold(&'static self, labels: [&str; N]) -> Held {
        let gauge = self.0.handle(labels);
        if let Some(gauge) = gauge {
            gauge.increment(1.0);
        }
        Held(gauge)
    }
}

impl Gauge<1> {
    /// 1 for the series of `value`, 0 for all others of its label.
    pub fn only(&self, value: &str) {
        for known in self.0.labels[0].values {
            self.set([known], f64::from(u8::from(*known == value)));
        }
    }
}

impl<const N: usize> Metric for Gauge<N> {
    fn description(&self) -> Description {
        self.0.describe(Kind::Gauge)
    }

    fn register(&self, recorder: &dyn Recorder) {
        recorder.describe_gauge(KeyName::from(self.0.name), None, self.0.help.into());
        self.0.fill(|key| recorder.register_gauge(&key, &METADATA));
    }
}

/// One more in a gauge, while it lives.
#[derive(Debug)]
#[must_use]
pub struct Held(Option<&'static metrics::Gauge>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(gauge) = self.0 {
            gauge.decrement(1.0);
        }
    }
}

/// How values are distributed.
pub struct Histogram<const N: usize>(Series<metrics::Histogram, N>, &'static [f64]);

impl<const N: usize> Histogram<N> {
    pub(super) const fn new(
        name: &'static str,
        help: &'static str,
        labels: [Label; N],
        buckets: &'static [f64],
    ) -> Self {
        Self(Series::new(name, help, labels), buckets)
    }

    pub fn record(&self, labels: [&str; N], value: f64) {
        if let Some(histogram) = self.0.handle(labels) {
            histogram.record(value);
        }
    }
}

impl<const N: usize> Metric for Histogram<N> {
    fn description(&self) -> Description {
        self.0.describe(Kind::Histogram(self.1))
    }

    fn register(&self, recorder: &dyn Recorder) {
        recorder.describe_histogram(KeyName::from(self.0.name), None, self.0.help.into());
        self.0.fill(|key| recorder.register_histogram(&key, &METADATA));
    }
}

/// What this process is, said once: one series.
pub struct Info<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
    values: OnceLock<[String; N]>,
}

impl<const N: usize> Info<N> {
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self { name, help, labels, values: OnceLock::new() }
    }

    /// Says it; a second time changes nothing.
    pub fn set(&self, values: [&str; N]) {
        if self.values.set(values.map(str::to_owned)).is_ok()
            && let Some(recorder) = exporter::recorder()
        {
            self.register(recorder);
        }
    }
}

impl<const N: usize> Metric for Info<N> {
    fn description(&self) -> Description {
        let label = |name| Label { name, values: &[] };
        Description { name: self.name, help: self.help, kind: Kind::Info, labels: self.labels.map(label).to_vec() }
    }

    fn register(&self, recorder: &dyn Recorder) {
        let Some(values) = self.values.get() else { return };
        recorder.describe_gauge(KeyName::from(self.name), None, self.help.into());
        let labels = self.labels.iter().zip(values).map(|(name, value)| metrics::Label::new(*name, value.clone()));
        recorder.register_gauge(&Key::from_parts(self.name, labels.collect::<Vec<_>>()), &METADATA).set(1.0);
    }
}
