"""Drives pi through every method of both clients of `pi-agent-python-sdk`.

`python sdk.py <pi> <a picture as base64>`, in a home whose model answers as tests/it/rpc/third_party_clients.rs
says. Ends with "every method: ok".
"""

import asyncio
import inspect
import sys
from pathlib import Path

from pi_agent import AsyncPiClient, PiClient, PiCommandError, PiRunError, PiVersionError

PROGRAM, PNG = sys.argv[1:3]
OPTIONS = {"executable": PROGRAM, "provider": "scripted", "model": "scripted-1"}
# Members that are no commands of the protocol. `collect_events` waits for events of another thread:
# the asynchronous client calls it.
OWN = {"collect_events", "limits", "running", "busy", "session", "pi_version", "compatibility", "stderr_tail"}


class Called:
    """A client that remembers which of its methods were called."""

    def __init__(self, client):
        self.client, self.names = client, set()

    def __getattr__(self, name):
        self.names.add(name)
        return getattr(self.client, name)

    def missed(self):
        public = (name for name in dir(self.client) if not name.startswith("_"))
        return sorted(set(public) - self.names - OWN)


def refused(call, *args):
    try:
        call(*args)
    except PiCommandError as error:
        return error.error
    raise AssertionError(f"{call} was not refused")


def answer(request):
    return {"confirm": True, "select": "b", "input": "typed"}.get(request["method"])


def sync():
    pi = Called(PiClient(ui_handler=answer, extra_args=["--thinking", "low"], **OPTIONS))
    pi.start()
    assert pi.compatibility == "untested", pi.compatibility
    types = []
    stop = pi.on_event(lambda event: types.append(event.type))
    with pi.observe(stderr=True, rpc=True) as observation:
        state = pi.get_state()
        assert (state["thinkingLevel"], state["messageCount"], state["isStreaming"]) == ("low", 0, False)
        observation.stop()
        assert [one.data for one in observation if one.source == "stderr"] == []

    # What one sets
    assert [model["id"] for model in pi.get_available_models()] == ["scripted-1", "scripted-2"]
    assert pi.set_model("scripted", "scripted-2")["id"] == "scripted-2"
    assert pi.cycle_model()["model"]["id"] == "scripted-1"
    assert refused(pi.set_model, "nobody", "nothing") == "Model not found: nobody/nothing"
    assert "high" in pi.get_available_thinking_levels()
    pi.set_thinking_level("medium")
    assert pi.cycle_thinking_level()["level"] == "high"
    pi.set_steering_mode("all")
    pi.set_follow_up_mode("all")
    pi.set_auto_compaction(False)
    pi.set_auto_retry(True)
    pi.set_session_name("driven")
    state = pi.get_state()
    assert (state["steeringMode"], state["followUpMode"]) == ("all", "all")
    assert (state["autoCompactionEnabled"], state["sessionName"]) == (False, "driven")
    names = [command["name"] for command in pi.get_commands()]
    assert {"greet", "review", "skill:ironing"} <= set(names), names
    assert pi.request("get_state")["success"] is True

    # Runs
    result = pi.run("say hello")
    assert (result.text, result.stop_reason) == ("hello", "stop"), result
    assert result.usage is not None
    with pi.stream("say streamed") as stream:
        deltas = [event.text_delta for event in stream if event.text_delta is not None]
        assert "".join(deltas) == "streamed" == stream.result().text
    for number in range(5):
        assert pi.run(f"say {number}").text == f"{number}"
    assert pi.run("run").text == "done"
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert pi.run("say cheese", images=[picture]).text == "cheese"
    try:
        pi.run("refuse")
    except PiRunError as error:
        assert error.result.stop_reason == "error", error.result
    else:
        raise AssertionError("the run failed")

    # While it works
    with pi.events() as events:
        pi.prompt("wait")
        for event in events:
            if event.type == "tool_execution_start":
                break
        pi.steer("say left")
        pi.follow_up("say right")
        assert pi.clear_queue() == {"steering": ["say left"], "followUp": ["say right"]}
        pi.steer("say left")
        Path("go").touch()
        pi.wait_for_idle()
    assert pi.get_last_assistant_text() == "left"
    with pi.events() as events:
        pi.prompt("stall")
        for event in events:
            if event.text_delta:
                break
        pi.abort()
    assert pi.get_messages()[-1]["stopReason"] == "aborted"
    with pi.events() as events:
        pi.prompt("overload")
        for event in events:
            if event.type == "auto_retry_start":
                break
        pi.abort_retry()
        for event in events:
            if event.type == "agent_settled":
                break
    assert [event.type for event in pi.prompt_and_wait("say waited")][-1] == "agent_settled"

    # Shell and sessions
    assert pi.bash("echo hi; exit 3") == {"output": "hi\n", "exitCode": 3, "cancelled": False, "truncated": False}
    pi.abort_bash()
    stats = pi.get_session_stats()
    assert stats["toolCalls"] == 2 and stats["tokens"]["input"] > 0, stats
    assert "<html" in Path(pi.export_html(output_path="page.html")["path"]).read_text().lower()
    forkable = pi.get_fork_messages()
    entries = pi.get_entries()
    assert entries["entries"][-1]["id"] == entries["leafId"]
    assert pi.get_entries(since=entries["entries"][-2]["id"])["entries"] == entries["entries"][-1:]
    assert pi.get_tree()["tree"][0]["entry"]["id"] == entries["entries"][0]["id"]
    assert pi.compact(custom_instructions="be brief")["summary"].startswith("In short")
    assert pi.fork(forkable[1]["entryId"]) == {"text": "say streamed", "cancelled": False}
    assert pi.clone() == {"cancelled": False}
    assert pi.new_session() == {"cancelled": False}
    assert pi.switch_session(state["sessionFile"]) == {"cancelled": False}
    assert pi.get_state()["sessionName"] == "driven"
    stop()
    assert "agent_settled" in types
    pi.close()
    assert pi.stderr_tail == "", pi.stderr_tail
    assert pi.missed() == [], pi.missed()


async def asynchronous():
    async with AsyncPiClient(no_session=True, **OPTIONS) as client:
        pi = Called(client)
        collected = pi.collect_events()
        await pi.prompt("say collected")
        assert (await collected)[-1].type == "agent_settled"
        assert await pi.get_last_assistant_text() == "collected"
    public = {name for name, _ in inspect.getmembers(AsyncPiClient, inspect.isfunction)}
    missing = {name for name in public if not name.startswith("_")} - set(dir(PiClient)) - {"aclose"}
    assert missing == set(), missing
    async with AsyncPiClient(no_session=True, **OPTIONS) as client:
        assert (await client.run("say hello")).text == "hello"


def versions():
    try:
        PiClient(strict_version=True, **OPTIONS).start()
    except PiVersionError as error:
        assert "is untested; recorded tested version is 1.4.0" in str(error), error
    else:
        raise AssertionError("another version is the tested one")


sync()
asyncio.run(asynchronous())
versions()
print("every method: ok")
