//! Progress: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use esker_lab_workloads::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Shows one job's progress.
pub struct Show {
    title: String,
    bar: Option<ProgressBar>,
    phase: String,
    phase_start: Instant,
}

impl Show {
    /// Begins job `number` of `count`.
    pub fn new(number: usize, count: usize, title: &str) -> Show {
        let title = format!("[{number}/{count}] {title}");
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1000);
            if let Ok(style) =
                ProgressStyle::with_template("{prefix}  {bar:28.cyan/238} {msg} {elapsed:>5} {spinner}")
            {
                bar.set_style(style.progress_chars("━━─"));
            }
            bar.set_prefix(title.clone());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            eprintln!("{title}");
        }
        Show {
            title,
            bar,
            phase: String::new(),
            phase_start: Instant::now(),
        }
    }

    /// Shows how far the job is.
    pub fn progress(&mut self, progress: &Progress) {
        if progress.phase != self.phase {
            self.phase.clone_from(&progress.phase);
            self.phase_start = Instant::now();
        }
        let Some(bar) = &self.bar else { return };
        let mut text = progress.phase.clone();
        if progress.ops_per_s > 0.0 {
            text.push_str(&format!(
                " {}/s",
                esker_lab_core::figures::count(progress.ops_per_s)
            ));
        }
        match progress.share {
            Some(share) => {
                bar.set_position((share * 1000.0) as u64);
                let elapsed = self.phase_start.elapsed().as_secs_f64();
                if share > 0.02 && elapsed > 1.0 {
                    text.push_str(&format!(", {:.0} s left", elapsed / share - elapsed));
                }
            }
            None => bar.set_position(0),
        }
        bar.set_message(text);
    }

    /// A line that stays, of a part that is done.
    pub fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(format!("    {line}")),
            None => eprintln!("    {line}"),
        }
    }

    /// Ends it with a line that stays.
    pub fn done(self, line: &str) {
        match self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                eprintln!("{}  {line}", self.title);
            }
            None => eprintln!("    {line}"),
        }
    }
}
