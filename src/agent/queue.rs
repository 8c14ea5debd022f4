//! Messages queued for the agent: steering messages for the end of the turn, follow-ups for the
//! end of the run.

use std::collections::VecDeque;
use std::sync::Arc;

use super::AgentMessage;
pub use pi_resources::settings::QueueMode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At the end of the current turn.
    Steer,
    /// When the run would end.
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
    /// The message waits for a run and does not start one.
    silent: bool,
}

impl Queues {
    pub fn push(&mut self, delivery: Delivery, message: Arc<AgentMessage>) {
        let silent = false;
        self.queue_mut(delivery)
            .push_back(Queued { message, silent });
    }

    /// Queues a message that starts no run and needs no answer. The current or next run takes it.
    pub fn push_silent(&mut self, delivery: Delivery, message: Arc<AgentMessage>) {
        let silent = true;
        self.queue_mut(delivery)
            .push_back(Queued { message, silent });
    }

    fn queue_mut(&mut self, delivery: Delivery) -> &mut VecDeque<Queued> {
        match delivery {
            Delivery::Steer => &mut self.steering,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }

    /// Takes the messages to deliver now: all silent ones, and others according to the mode of
    /// the queue.
    pub fn take(&mut self, delivery: Delivery) -> Vec<Arc<AgentMessage>> {
        let mode = match delivery {
            Delivery::Steer => self.steering_mode,
            Delivery::FollowUp => self.follow_up_mode,
        };
        let queue = self.queue_mut(delivery);
        let (taken, rest) = match mode {
            QueueMode::All => (std::mem::take(queue), VecDeque::new()),
            QueueMode::OneAtATime => {
                let (mut taken, mut rest) = split_silent(queue);
                taken.extend(rest.pop_front());
                (taken, rest)
            }
        };
        *queue = rest;
        taken.into_iter().map(|queued| queued.message).collect()
    }

    /// Takes the silent steering messages (see [`Self::push_silent`]).
    pub fn take_silent(&mut self) -> Vec<Arc<AgentMessage>> {
        let (silent, rest) = split_silent(&mut self.steering);
        self.steering = rest;
        silent.into_iter().map(|queued| queued.message).collect()
    }

    /// Puts messages that could not be delivered back to the front of the queue.
    pub fn put_back(&mut self, delivery: Delivery, messages: Vec<Arc<AgentMessage>>) {
        let queue = self.queue_mut(delivery);
        for message in messages.into_iter().rev() {
            let silent = false;
            queue.push_front(Queued { message, silent });
        }
    }

    pub fn clear(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }

    pub fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.steering.is_empty() && self.follow_up.is_empty()
    }

    /// Returns whether a message is queued that needs an answer.
    pub fn need_run(&self) -> bool {
        let mut queued = self.steering.iter().chain(&self.follow_up);
        queued.any(|queued| !queued.silent)
    }

    /// Returns all queued messages in the order of delivery.
    pub fn all(&self) -> Vec<Arc<AgentMessage>> {
        let queued = self.steering.iter().chain(&self.follow_up);
        queued.map(|queued| queued.message.clone()).collect()
    }

    /// Returns the texts of the user messages in both queues for `queue_update`. Messages of
    /// extensions are not included.
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

/// Splits a queue into silent messages and others.
fn split_silent(queue: &mut VecDeque<Queued>) -> (VecDeque<Queued>, VecDeque<Queued>) {
    queue.drain(..).partition(|queued| queued.silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_ai::message::UserMessage;

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
    fn messages_put_back_come_first() {
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
    fn silent_message_waits_for_another() {
        let mut queues = Queues::default();
        queues.push_silent(Delivery::Steer, user("a"));
        assert!(!queues.need_run() && !queues.is_empty());
        queues.push(Delivery::FollowUp, user("b"));
        assert!(queues.need_run());
        assert_eq!(queues.take(Delivery::Steer).len(), 1);
    }

    /// Regression: user messages waited behind a silent one, with a request for each.
    #[test]
    fn silent_message_delays_nothing() {
        let mut queues = Queues::default();
        queues.push_silent(Delivery::Steer, user("a"));
        queues.push(Delivery::Steer, user("s"));
        queues.push(Delivery::Steer, user("t"));
        queues.push_silent(Delivery::Steer, user("c"));
        assert_eq!(queues.take(Delivery::Steer).len(), 3);
        assert_eq!(queues.texts().0, ["t"]);
        assert!(queues.take_silent().is_empty());
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
