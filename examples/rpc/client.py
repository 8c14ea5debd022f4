#!/usr/bin/env python3
"""Talks to pi over its RPC protocol (docs/rpc.md), with Python's standard library only.

    examples/rpc/client.py "list the files here"
    examples/rpc/client.py --pi target/debug/pi "read README.md" -- --provider anthropic

Without options after `--` it uses the demo model, which needs no key. Answers go to stdout, tools
and questions to stderr; questions of extensions are answered on stdin. Ctrl-C aborts, or takes back
a question; a second one ends. Should pi die, it is started again with the same session.
"""

import argparse
import json
import signal
import subprocess
import sys
from itertools import count
from queue import SimpleQueue
from threading import Thread

INTERRUPT = object()
RESTARTS = 3


class Refused(Exception):
    """A command was answered with an error."""


class Ended(Exception):
    """pi has exited: the exit code, or minus the signal that killed it."""


class Pi:
    """One `pi --mode rpc`: commands in, responses and events out, one JSON object a line."""

    def __init__(self, program, options, on_event):
        command, pipe = [program, "--mode", "rpc", *options], subprocess.PIPE
        # The process is in a session of its own: Ctrl-C in this terminal is for the client, not for pi.
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)
        self.on_event, self.ids, self.inbox = on_event, count(1), SimpleQueue()
        self.interrupted = False  # Perhaps before there was anything to abort.
        Thread(target=self.read, daemon=True).start()

    def read(self):
        """Reads continuously, so that pi never waits for the client while the client waits for it."""
        for line in self.process.stdout:
            # A pi that was killed may leave half a line.
            if line.endswith(b"\n"):
                self.inbox.put(json.loads(line))
        self.inbox.put(None)

    def send(self, message):
        try:
            # json.dumps leaves no line feed inside; only line feeds end a line.
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The end comes by the other pipe.

    def ask(self, command, **members):
        """Sends a command; returns the data of its response. Events that arrive meanwhile are passed on."""
        request_id = str(next(self.ids))
        self.send({"id": request_id, "type": command, **members})
        while True:
            message = self.inbox.get()
            if message is None:
                raise Ended(self.process.wait())
            if message is INTERRUPT:
                self.interrupted = True
                self.send({"type": "abort"})
            elif message["type"] != "response":
                self.on_event(message)
            elif message.get("id") == request_id:
                if not message["success"]:
                    raise Refused(f"{command}: {message['error']}")
                return message.get("data")

    def close(self):
        """Closes stdin, which ends pi."""
        self.process.stdin.close()
        return self.process.wait()


class Client:
    """The user interface of a session; starts pi, and again when it exits."""

    def __init__(self, program, options):
        self.program, self.options, self.asking, self.interrupts = program, options, False, 0
        signal.signal(signal.SIGINT, self.interrupt)
        self.start()

    def start(self, more=()):
        self.pi = Pi(self.program, [*self.options, *more], self.show)
        self.session = self.pi.ask("get_state").get("sessionFile")

    def interrupt(self, *_):
        self.interrupts += 1
        if self.asking or self.interrupts > 1:
            raise KeyboardInterrupt
        self.pi.inbox.put(INTERRUPT)

    def converse(self, text):
        """Sends a prompt and shows what happens until the agent is done."""
        for restarts in count():
            try:
                self.pi.ask("prompt", message=text)
                return self.pi.ask("wait_for_idle")
            except Ended as end:
                if restarts == RESTARTS or self.session is None:
                    raise
                say(f"pi ended (exit code {end}), starting it again")
            # The conversation is on the disk, up to the last message that was complete.
            self.start(["--session", self.session])
            users = [m for m in self.pi.ask("get_messages")["messages"] if m["role"] == "user"]
            if users and json.dumps(text) in json.dumps(users[-1]["content"]):
                text = "You were interrupted. Look at where you are, and go on."

    def show(self, event):
        kind = event["type"]
        if kind == "message_update":
            step = event["assistantMessageEvent"]
            if step["type"] in ("text_delta", "text_end"):
                print(step.get("delta", "\n"), end="", flush=True)
        elif kind == "message_end" and event["message"].get("errorMessage"):
            say(f"Error: {event['message']['errorMessage']}")
        elif kind == "tool_execution_start":
            say(f"[{event['toolName']} {json.dumps(event['args'])}]")
        elif kind == "tool_execution_end" and event["isError"]:
            say(f"[{event['toolName']} failed]")
        elif kind == "extension_error":
            say(f"{event['extensionPath']}: {event['error']}")
        elif kind == "extension_ui_request":
            try:
                self.asking = True
                answer = answer_of(event)
            except KeyboardInterrupt:
                self.interrupts, answer = 0, {"cancelled": True}
            self.asking = False
            # An answer after the `timeout` of the dialog is ignored.
            if answer is not None:
                self.pi.send({"type": "extension_ui_response", "id": event["id"], **answer})


def say(text):
    print(text, file=sys.stderr, flush=True)


def read_answer(hint):
    print(hint, end=" ", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None  # The input has ended.


def answer_of(request):
    """Asks the user to answer a dialog; None for a request that is no dialog."""
    method = request["method"]
    if method == "notify":
        return say(f"[{request.get('notifyType', 'info')}] {request['message']}")
    if method not in ("select", "confirm", "input", "editor"):
        return None

    say(f"? {request['title']}")
    options = request.get("options", [])
    if method == "confirm":
        say(request["message"])
    for number, option in enumerate(options, 1):
        say(f"  {number}. {option}")
    line = read_answer({"confirm": "y/n>", "select": f"1-{len(options)}>"}.get(method, "answer>"))
    if line is None:
        return {"cancelled": True}
    if method == "confirm":
        return {"confirmed": line.lower().startswith("y")}
    if method != "select":
        return {"value": line}
    chosen = int(line) if line.isdigit() else 0
    return {"value": options[chosen - 1]} if 1 <= chosen <= len(options) else {"cancelled": True}


def main():
    parser = argparse.ArgumentParser(description="Asks pi over RPC.")
    parser.add_argument("prompt", nargs="+", help="said one after the other")
    parser.add_argument("--pi", default="pi", help="the program (pi)")
    arguments, options = sys.argv[1:], ["--provider", "demo", "--model", "demo"]
    if "--" in arguments:
        end = arguments.index("--")
        arguments, options = arguments[:end], arguments[end + 1 :]
    given = parser.parse_args(arguments)
    try:
        client = Client(given.pi, options)
        for prompt in given.prompt:
            if not client.interrupts:
                client.converse(prompt)
        code = client.pi.close()
        sys.exit(130 if client.interrupts else code)
    except (Ended, Refused) as problem:
        sys.exit(f"pi ended (exit code {problem})" if isinstance(problem, Ended) else str(problem))


if __name__ == "__main__":
    main()
