//! Messages that wait for the agent: steering ones for the end of the turn,
//! follow-ups for the end of the run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::AgentMessage;
pub use crate::resources::settings::QueueMode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// After the turn that is running.
    Steer,
    /// When the agent would stop.
    FollowUp,
}

#[derive(Default)]
pub struct Queues {
    steering: VecDeque<Queued>,
    follow_up: VecDeque<Queued>,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
}

struct Queued {
    message: Arc<AgentMessage>,
    /// Waits for a run, and is no reason to begin one.
    quiet: bool,
}

impl Queues {
    pub fn push(&mut self, delivery: Delivery, message: Arc<AgentMessage>) {
        let quiet = false;
        self.of(delivery).push_back(Queued { message, quiet });
    }

    /// For whatever run comes next.
    pub fn push_quiet(&mut self, delivery: Delivery, message: Arc<AgentMessage>) {
        let quiet = true;
        self.of(delivery).push_back(Queued { message, quiet });
    }

    fn of(&mut self, delivery: Delivery) -> &mut VecDeque<Queued> {
        match delivery {
            Delivery::Steer => &mut self.steering,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }

    /// What is to be delivered now, by the queue's mode.
    pub fn take(&mut self, delivery: Delivery) -> Vec<Arc<AgentMessage>> {
        let mode = match delivery {
            Delivery::Steer => self.steering_mode,
            Delivery::FollowUp => self.follow_up_mode,
        };
        let queue = self.of(delivery);
        let count = match mode {
            QueueMode::All => queue.len(),
            QueueMode::OneAtATime => queue.len().min(1),
        };
        queue.drain(..count).map(|queued| queued.message).collect()
    }

    /// What is next for the run and wants no answer.
    pub fn take_quiet(&mut self) -> Vec<Arc<AgentMessage>> {
        let next = self.steering.iter();
        let count = next.take_while(|queued| queued.quiet).count();
        let quiet = self.steering.drain(..count);
        quiet.map(|queued| queued.message).collect()
    }

    /// What was taken and could not be delivered is the next again.
    pub fn put_back(&mut self, delivery: Delivery, messages: Vec<Arc<AgentMessage>>) {
        let queue = self.of(delivery);
        for message in messages.into_iter().rev() {
            let quiet = false;
            queue.push_front(Queued { message, quiet });
        }
    }

    pub fn clear(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }

    pub fn is_steered(&self) -> bool {
        !self.steering.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }

    /// Whether anything waits that wants an answer.
    pub fn want_a_run(&self) -> bool {
        let mut queued = self.steering.iter().chain(&self.follow_up);
        queued.any(|queued| !queued.quiet)
    }

    /// The texts of the users' messages in both queues, as `queue_update` shows
    /// them; messages of extensions are not counted.
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts = |queue: &VecDeque<Queued>| {
            queue
                .iter()
                .filter_map(|queued| match &*queued.message {
                    AgentMessage::User(user) => Some(user.content.text()),
                    _ => None,
                })
                .collect()
        };
        (texts(&self.steering), texts(&self.follow_up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::message::UserMessage;

    fn user(text: &str) -> Arc<AgentMessage> {
        Arc::new(AgentMessage::User(UserMessage::new(text, vec![])))
    }

    #[test]
    fn one_at_a_time_leaves_the_rest() {
        let mut queues = Queues::default();
        for text in ["a", "b"] {
            queues.push(Delivery::Steer, user(text));
        }
        assert_eq!(queues.take(Delivery::Steer).len(), 1);
        assert_eq!(queues.texts(), (vec!["b".to_string()], vec![]));
    }

    #[test]
    fn what_is_put_back_comes_first() {
        let mut queues = Queues {
            follow_up_mode: QueueMode::All,
            ..Queues::default()
        };
        for text in ["a", "b"] {
            queues.push(Delivery::FollowUp, user(text));
        }
        let taken = queues.take(Delivery::FollowUp);
        queues.push(Delivery::FollowUp, user("c"));
        queues.put_back(Delivery::FollowUp, taken);
        let (_, texts) = queues.texts();
        assert_eq!(texts, ["a", "b", "c"]);
    }

    #[test]
    fn what_is_quiet_waits_for_what_is_not() {
        let mut queues = Queues::default();
        queues.push_quiet(Delivery::Steer, user("a"));
        assert!(!queues.want_a_run() && !queues.is_empty());
        queues.push(Delivery::FollowUp, user("b"));
        assert!(queues.want_a_run());
        assert_eq!(queues.take(Delivery::Steer).len(), 1);
    }

    #[test]
    fn all_takes_everything_in_order() {
        let mut queues = Queues {
            follow_up_mode: QueueMode::All,
            ..Queues::default()
        };
        for text in ["a", "b"] {
            queues.push(Delivery::FollowUp, user(text));
        }
        let (_, texts) = queues.texts();
        assert_eq!(texts, ["a", "b"]);
        assert_eq!(queues.take(Delivery::FollowUp).len(), 2);
        assert!(queues.is_empty());
    }
}
