use parking_lot::Mutex;

use super::*;

const FAR: Queueing = Queueing::Remote {
    within: Duration::from_secs(30),
};

/// Returns for each call the index of the call that it waits for.
fn waits(calls: &[Queueing]) -> Vec<Option<usize>> {
    let slots = start_slots(calls);
    let whose = |after: &Predecessor| {
        after.started.cancel();
        let is_it = |one: &StartSlot| {
            one.started
                .as_ref()
                .is_some_and(CancellationToken::is_cancelled)
        };
        slots.iter().rposition(is_it)
    };
    let waits = slots.iter().map(|one| one.after.as_ref().and_then(whose));
    waits.collect()
}

#[test]
fn calls_wait_only_if_built_in_follows_remote_tool() {
    use Queueing::{AtOnce, Never};
    let cases = [
        (vec![], vec![]),
        (vec![AtOnce, AtOnce, Never], vec![None, None, None]),
        (vec![AtOnce, FAR, FAR, Never], vec![None, None, None, None]),
        (vec![FAR, AtOnce], vec![None, Some(0)]),
        (
            vec![FAR, Never, AtOnce, Never],
            vec![None, None, Some(0), None],
        ),
        (
            vec![AtOnce, FAR, FAR, AtOnce, AtOnce, FAR, Never],
            vec![None, None, Some(1), Some(2), Some(3), Some(4), None],
        ),
    ];
    for (calls, expected) in cases {
        assert_eq!(waits(&calls), expected, "{calls:?}");
    }
}

/// The tool never reports that it has started.
#[tokio::test]
async fn call_that_never_starts_delays_others_briefly() {
    let within = Duration::from_millis(20);
    let slots = start_slots(&[Queueing::Remote { within }, Queueing::AtOnce, FAR]);
    let cancel = CancellationToken::new();
    let order = Mutex::new(Vec::new());
    let begin = async |index: usize| {
        assert!(slots[index].wait("tool", &cancel).await);
        order.lock().push(index);
        drop(
            slots[index]
                .started
                .clone()
                .map(CancellationToken::drop_guard),
        );
    };
    tokio::join!(begin(2), begin(1));
    assert_eq!(*order.lock(), [1, 2]);
}

#[tokio::test]
async fn an_abort_ends_the_wait() {
    let slots = start_slots(&[FAR, Queueing::AtOnce]);
    let cancel = CancellationToken::new();
    let turn = slots[1].wait("tool", &cancel);
    let (goes_on, ()) = tokio::join!(turn, async { cancel.cancel() });
    assert!(!goes_on);
}
