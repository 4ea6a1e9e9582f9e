//! Counts judgements and shows how far the work is, on standard error.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::output;
use crate::prism::{TokenCounts, Verdict};
use crate::service::{Judge, JudgeError};

/// Shown only when standard error is a terminal; the last line is always printed.
pub struct Progress<'a> {
    judge: &'a Judge,
    /// The judge's forward time when the work started.
    forward_before: Duration,
    bar: ProgressBar,
    started: Instant,
    /// Bytes of the inputs that are finished.
    before: u64,
    judged: usize,
    failed: usize,
    tokens: TokenCounts,
}

/// How fast the judgements were made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    pub judgements: usize,
    pub failed: usize,
    pub seconds: f64,
    pub judgements_per_second: f64,
    /// Tokens that went through the model, per second.
    pub tokens_per_second: f64,
    /// Tokens of all prompts, per judgement.
    pub prompt_tokens_per_judgement: f64,
    /// Tokens that went through the model, per judgement.
    pub computed_tokens_per_judgement: f64,
    /// Share of the time that the model spent in forward passes, in [0, 1].
    pub forward_share: f64,
}

impl<'a> Progress<'a> {
    /// Starts the clock. `size` is the number of bytes to read, if it is known: the time left is taken from it, since
    /// long lines take longer.
    pub fn start(judge: &'a Judge, size: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(size, ProgressDrawTarget::stderr());
        let template = match size {
            Some(_) => "{bar:24} {percent:>3}%  {msg}  {eta} left",
            None => "{spinner} {msg}  {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        let tokens = TokenCounts { prompt: 0, computed: 0 };
        let forward_before = judge.forward_time();
        Self { judge, forward_before, bar, started: Instant::now(), before: 0, judged: 0, failed: 0, tokens }
    }

    /// Counts the result of one response.
    pub fn count(&mut self, result: &Result<Verdict, JudgeError>) {
        match result {
            Ok(verdict) => {
                self.judged += 1;
                self.tokens.prompt += verdict.tokens.prompt;
                self.tokens.computed += verdict.tokens.computed;
            }
            Err(_) => self.failed += 1,
        }
    }

    /// Counts a line that could not be read.
    pub fn count_bad_line(&mut self) {
        self.failed += 1;
    }

    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Moves the bar to `read` bytes of the current input.
    pub fn at(&self, read: u64) {
        let speed = self.speed();
        self.bar.set_position(self.before + read);
        self.bar.set_message(format!("{} judged, {:.1}/s", self.judged, speed.judgements_per_second));
    }

    /// The next input starts `size` bytes further.
    pub fn finish_input(&mut self, size: u64) {
        self.before += size;
    }

    /// Runs `write` without the bar in its way.
    pub fn paused<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    pub fn speed(&self) -> Speed {
        let seconds = self.started.elapsed().as_secs_f64();
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let each = |count: u64| if self.judged > 0 { count as f64 / self.judged as f64 } else { 0.0 };
        Speed {
            judgements: self.judged,
            failed: self.failed,
            seconds,
            judgements_per_second: per_second(self.judged as f64),
            tokens_per_second: per_second(self.tokens.computed as f64),
            prompt_tokens_per_judgement: each(self.tokens.prompt),
            computed_tokens_per_judgement: each(self.tokens.computed),
            forward_share: per_second((self.judge.forward_time() - self.forward_before).as_secs_f64()),
        }
    }

    /// Removes the bar and prints the last line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
        output::tell(&self.speed());
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} judged, {} failed in {:.1} s: {:.2} judgements/s, {:.0} tokens/s, {:.0} tokens computed per judgement, \
             {:.1} % of the time in the forward pass",
            self.judgements,
            self.failed,
            self.seconds,
            self.judgements_per_second,
            self.tokens_per_second,
            self.computed_tokens_per_judgement,
            100.0 * self.forward_share
        )
    }
}
