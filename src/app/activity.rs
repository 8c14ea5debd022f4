//! The activity of a session: one [`Activity`] at a time, published in one watch.
//!
//! [`WorkState`] owns the sender and is part of [`State`](super::state::State), so that each
//! transition is atomic with the changes of the queues and the context that belong to it.
//! [`AgentSession`](super::AgentSession) holds an [`ActivityWatch`] to wait for transitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::compaction::CompactionTrigger;

/// A run or a summary.
#[derive(Clone)]
pub(super) struct Work {
    pub id: u64,
    pub cancel: CancellationToken,
    abort_begun: Arc<AtomicBool>,
}

impl Work {
    /// Marks the work as aborted. Called before extensions get the signal: what they answer to it
    /// does not count any more, and `cancel` follows later.
    pub fn begin_abort(&self) {
        self.abort_begun.store(true, Ordering::Release);
    }

    pub fn is_aborted(&self) -> bool {
        self.abort_begun.load(Ordering::Acquire) || self.cancel.is_cancelled()
    }
}

/// The exclusive activity of a session.
#[derive(Clone, Default)]
pub(super) enum Activity {
    /// No run and no summary is active.
    #[default]
    Idle,
    /// The agent runs.
    Running(Work),
    /// Handlers of `agent_end` are called. The session counts as busy for them.
    Ending(Work),
    /// The last run is over and another may begin. Its task still emits the last events.
    Closing,
    /// A summary is being written, for a compaction or of a branch.
    Summarizing(Summary),
}

/// A summary that is being written.
#[derive(Clone)]
pub(super) struct Summary {
    pub work: Work,
    owner: SummaryOwner,
    /// The task of the run before has not ended yet; the next activity is `Closing`.
    is_after_run: bool,
}

/// The part of the program that writes a summary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SummaryOwner {
    /// The holder of a `SummaryGuard`.
    Guard,
    /// The task of the run that has ended, for this compaction.
    RunTask(CompactionTrigger),
    /// One of the callers that waited for the end of the run.
    Waiter,
}

/// The work that follows a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRun {
    Settle,
    Compact(CompactionTrigger),
    /// A caller waits for the right to write a summary.
    PassToWaiter,
}

impl Activity {
    /// The active run.
    pub fn run(&self) -> Option<&Work> {
        match self {
            Self::Running(run) | Self::Ending(run) => Some(run),
            Self::Idle | Self::Closing | Self::Summarizing(_) => None,
        }
    }

    /// The summary that is being written.
    pub fn summary(&self) -> Option<&Work> {
        match self {
            Self::Summarizing(summary) => Some(&summary.work),
            _ => None,
        }
    }

    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub fn is_ending(&self) -> bool {
        matches!(self, Self::Ending(_))
    }

    /// Whether a run or a summary may begin.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::Idle | Self::Closing)
    }

    /// Whether the task of a run has not ended yet.
    pub fn has_run_task(&self) -> bool {
        match self {
            Self::Running(_) | Self::Ending(_) | Self::Closing => true,
            Self::Summarizing(summary) => summary.is_after_run,
            Self::Idle => false,
        }
    }

    /// Whether a summary waits for one of the callers that asked for it.
    fn is_passed_to_waiter(&self) -> bool {
        matches!(self, Self::Summarizing(summary) if summary.owner == SummaryOwner::Waiter)
    }
}

/// Waits for transitions of the activity. All waits also end when the session is gone.
#[derive(Clone)]
pub(super) struct ActivityWatch(watch::Receiver<Activity>);

impl ActivityWatch {
    /// Returns when the activity is as `is_reached` says.
    pub async fn wait(&self, is_reached: fn(&Activity) -> bool) {
        // An error means that the session is gone.
        let _ = self.0.clone().wait_for(is_reached).await;
    }

    /// Returns when the task of `run` has ended, or when another run has begun; `false` in that
    /// case.
    pub async fn wait_run_end(&self, run: Option<u64>) -> bool {
        let mut activity = self.0.clone();
        loop {
            {
                let now = activity.borrow_and_update();
                if !now.has_run_task() {
                    return true;
                }
                if now.run().is_some_and(|now| Some(now.id) != run) {
                    return false;
                }
            }
            // An error means that the session is gone.
            if activity.changed().await.is_err() {
                return false;
            }
        }
    }
}

/// The activity of a session and what restricts its transitions.
#[derive(Default)]
pub(super) struct WorkState {
    activity: watch::Sender<Activity>,
    closing_run: Option<ClosingRun>,
    /// Another session, or another generation of extensions, is being put in place. No run may
    /// begin.
    pub is_replacing: bool,
    /// Id of the latest run or summary.
    pub last_id: u64,
}

/// A run that is over and whose `agent_end` has not reached the mode yet. Another run may be active
/// already.
struct ClosingRun {
    run: Work,
    /// Messages are queued that no other work will take.
    has_leftovers: bool,
}

impl WorkState {
    pub fn watch(&self) -> ActivityWatch {
        ActivityWatch(self.activity.subscribe())
    }

    pub fn run(&self) -> Option<Work> {
        self.activity.borrow().run().cloned()
    }

    pub fn summary(&self) -> Option<Work> {
        self.activity.borrow().summary().cloned()
    }

    pub fn is_running(&self) -> bool {
        self.activity.borrow().run().is_some()
    }

    /// Whether handlers of `agent_end` are called and the session counts as busy for them.
    pub fn is_ending(&self) -> bool {
        self.activity.borrow().is_ending()
    }

    /// Whether a run or a summary is active.
    pub fn is_working(&self) -> bool {
        !self.activity.borrow().is_free()
    }

    /// Whether a run or a summary may begin.
    pub fn may_begin(&self) -> bool {
        !self.is_working() && !self.is_replacing
    }

    /// Begins a run. The caller has checked [`Self::may_begin`].
    pub fn begin_run(&mut self) -> Work {
        let run = self.new_work();
        self.activity.send_replace(Activity::Running(run.clone()));
        run
    }

    /// Begins a summary for a `SummaryGuard`. The caller has checked [`Self::may_begin`].
    pub fn begin_summary(&mut self) -> Work {
        let is_after_run = self.activity.borrow().has_run_task();
        self.summarize(SummaryOwner::Guard, is_after_run)
    }

    /// `Running` → `Ending`
    pub fn begin_ending(&mut self) {
        self.activity.send_if_modified(|activity| {
            let Activity::Running(run) = activity else {
                return false;
            };
            *activity = Activity::Ending(run.clone());
            true
        });
    }

    /// Ends the run; the task of the run goes on.
    pub fn leave_run(&mut self, next: AfterRun) {
        let owner = match next {
            AfterRun::Settle => {
                self.activity.send_replace(Activity::Closing);
                return;
            }
            AfterRun::Compact(trigger) => SummaryOwner::RunTask(trigger),
            AfterRun::PassToWaiter => SummaryOwner::Waiter,
        };
        self.summarize(owner, true);
    }

    /// Returns the run whose `agent_end` is being emitted, to handlers or to the mode.
    pub fn ending_run(&self) -> Option<Work> {
        let activity = self.activity.borrow();
        let ending = activity.run().filter(|_| activity.is_ending());
        let closing = self.closing_run.as_ref().map(|closing| &closing.run);
        ending.or(closing).cloned()
    }

    /// Remembers a run that is over until the mode got its `agent_end`.
    pub fn close_run(&mut self, run: Work, has_leftovers: bool) {
        self.closing_run = Some(ClosingRun { run, has_leftovers });
    }

    /// Whether messages are queued that no other work than the run that is closing will take.
    pub fn has_leftovers(&self) -> bool {
        let closing = self.closing_run.as_ref();
        closing.is_some_and(|closing| closing.has_leftovers)
    }

    /// Forgets an ending run, after the mode got its `agent_end` or its task has ended without
    /// one. Returns whether the run was ending.
    pub fn finish_closing(&mut self, run: u64) -> bool {
        let is_ending = self.ending_run().is_some_and(|ending| ending.id == run);
        if is_ending {
            self.closing_run = None;
        }
        is_ending
    }

    /// Takes the compaction that follows the run for its task.
    pub fn take_due_compaction(&mut self) -> Option<(CompactionTrigger, Work)> {
        let mut taken = None;
        self.activity.send_if_modified(|activity| {
            if let Activity::Summarizing(summary) = activity
                && let SummaryOwner::RunTask(trigger) = summary.owner
            {
                summary.owner = SummaryOwner::Guard;
                taken = Some((trigger, summary.work.clone()));
            }
            false
        });
        taken
    }

    /// Takes the summary that the run passed to its waiters.
    pub fn take_passed_summary(&mut self) -> Option<Work> {
        let mut taken = None;
        self.activity.send_if_modified(|activity| {
            if let Activity::Summarizing(summary) = activity
                && summary.owner == SummaryOwner::Waiter
            {
                summary.owner = SummaryOwner::Guard;
                taken = Some(summary.work.clone());
            }
            false
        });
        taken
    }

    /// Ends the summary `id`, if it is being written.
    pub fn end_summary(&mut self, id: u64) {
        self.activity.send_if_modified(|activity| {
            let Activity::Summarizing(summary) = activity else {
                return false;
            };
            if summary.work.id != id {
                return false;
            }
            *activity = match summary.is_after_run {
                true => Activity::Closing,
                false => Activity::Idle,
            };
            true
        });
    }

    /// Ends the summary and continues `run` in one step, so that no other work begins in between.
    pub fn continue_run(&mut self, run: Work) {
        self.activity.send_replace(Activity::Running(run));
    }

    /// Ends the activity of a run whose task has ended, perhaps by a panic. Another run may be
    /// active already.
    pub fn end_run_task(&mut self, run: u64) {
        self.activity.send_if_modified(|activity| match activity {
            Activity::Running(other) | Activity::Ending(other) if other.id != run => false,
            // The task would have written the summary.
            Activity::Summarizing(summary)
                if !matches!(summary.owner, SummaryOwner::RunTask(_)) =>
            {
                summary.is_after_run = false;
                true
            }
            _ => {
                *activity = Activity::Idle;
                true
            }
        });
    }

    /// Whether no retry, compaction or other run follows `run`.
    pub fn is_settled_after(&self, run: u64) -> bool {
        let activity = self.activity.borrow();
        let is_other = activity.run().is_some_and(|other| other.id != run);
        !is_other && (activity.summary().is_none() || activity.is_passed_to_waiter())
    }

    fn summarize(&mut self, owner: SummaryOwner, is_after_run: bool) -> Work {
        let work = self.new_work();
        self.activity.send_replace(Activity::Summarizing(Summary {
            work: work.clone(),
            owner,
            is_after_run,
        }));
        work
    }

    fn new_work(&mut self) -> Work {
        self.last_id += 1;
        Work {
            id: self.last_id,
            cancel: CancellationToken::new(),
            abort_begun: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(work: &WorkState) -> &'static str {
        match &*work.activity.borrow() {
            Activity::Idle => "idle",
            Activity::Running(_) => "running",
            Activity::Ending(_) => "ending",
            Activity::Closing => "closing",
            Activity::Summarizing(summary) if summary.is_after_run => "summarizing after a run",
            Activity::Summarizing(_) => "summarizing",
        }
    }

    #[test]
    fn run_ends_settles_and_is_idle() {
        let mut work = WorkState::default();
        let run = work.begin_run();
        assert!(!work.may_begin() && work.ending_run().is_none());
        work.begin_ending();
        assert_eq!(work.ending_run().map(|run| run.id), Some(run.id));
        assert!(work.is_running() && !work.may_begin());
        work.leave_run(AfterRun::Settle);
        work.close_run(run.clone(), true);
        assert!(work.may_begin() && work.has_leftovers() && work.is_settled_after(run.id));
        assert!(work.finish_closing(run.id) && !work.finish_closing(run.id));
        assert_eq!(current(&work), "closing");
        work.end_run_task(run.id);
        assert_eq!(current(&work), "idle");
    }

    #[test]
    fn ended_task_leaves_the_next_run_alone() {
        let mut work = WorkState::default();
        let first = work.begin_run();
        work.leave_run(AfterRun::Settle);
        let second = work.begin_run();
        assert!(!work.is_settled_after(first.id));
        work.end_run_task(first.id);
        assert_eq!(work.run().map(|run| run.id), Some(second.id));
        // A task that panics ends its own run.
        work.end_run_task(second.id);
        assert_eq!(current(&work), "idle");
    }

    #[test]
    fn run_task_takes_the_compaction_and_continues() {
        let mut work = WorkState::default();
        let run = work.begin_run();
        let trigger = CompactionTrigger::Overflow { retry: true };
        work.leave_run(AfterRun::Compact(trigger));
        assert!(!work.may_begin() && work.take_passed_summary().is_none());
        let (taken, summary) = work.take_due_compaction().expect("a compaction is due");
        assert!(taken == trigger && work.take_due_compaction().is_none());
        work.continue_run(run.clone());
        // The guard of the summary is dropped late.
        work.end_summary(summary.id);
        assert_eq!(work.run().map(|run| run.id), Some(run.id));
    }

    #[test]
    fn compaction_that_no_task_takes_ends_with_the_task() {
        let mut work = WorkState::default();
        let run = work.begin_run();
        work.leave_run(AfterRun::Compact(CompactionTrigger::Threshold));
        work.end_run_task(run.id);
        assert_eq!(current(&work), "idle");
    }

    #[test]
    fn waiter_takes_the_summary_of_an_ended_run() {
        let mut work = WorkState::default();
        let run = work.begin_run();
        work.leave_run(AfterRun::PassToWaiter);
        assert!(work.is_settled_after(run.id) && !work.may_begin());
        let summary = work.take_passed_summary().expect("it was passed");
        assert!(!work.is_settled_after(run.id));
        work.end_run_task(run.id);
        assert_eq!(current(&work), "summarizing");
        work.end_summary(summary.id);
        assert_eq!(current(&work), "idle");
    }

    #[test]
    fn summary_while_a_run_closes_returns_to_closing() {
        let mut work = WorkState::default();
        work.begin_run();
        work.leave_run(AfterRun::Settle);
        let summary = work.begin_summary();
        assert_eq!(current(&work), "summarizing after a run");
        work.end_summary(summary.id + 1);
        assert!(work.is_working());
        work.end_summary(summary.id);
        assert_eq!(current(&work), "closing");
    }

    #[test]
    fn no_work_begins_during_a_replacement() {
        let work = WorkState {
            is_replacing: true,
            ..WorkState::default()
        };
        assert!(!work.may_begin() && !work.is_working());
    }
}
