#!/usr/bin/env python3
"""Talks to pi over its RPC protocol (docs/rpc.md), with Python's standard library only.

    examples/rpc/client.py "list the files here"
    examples/rpc/client.py --pi target/debug/pi "read README.md" -- --provider anthropic

Without options after `--` it uses the demo model, which needs no key. Answers go to stdout,
tools and questions to stderr; questions of extensions are answered on stdin.
"""

import argparse
import json
import subprocess
import sys
from itertools import count


class Pi:
    """One `pi --mode rpc`: commands in, responses and events out, a JSON object a line."""

    def __init__(self, program, options):
        command = [program, "--mode", "rpc", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ids = count(1)
        # Events that came while a response was waited for.
        self.early = []

    def send(self, message):
        # json.dumps leaves no line feed inside; only line feeds end a line.
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"pi ended (exit code {self.process.wait()})")
        return json.loads(line)

    def ask(self, command, **members):
        """Sends a command; returns the data of its response, or ends with its error."""
        request_id = str(next(self.ids))
        self.send({"id": request_id, "type": command, **members})
        while True:
            message = self.receive()
            if message["type"] == "response" and message.get("id") == request_id:
                if not message["success"]:
                    sys.exit(f"{command}: {message['error']}")
                return message.get("data")
            # A command of an extension may ask something before it is answered.
            if message["type"] == "extension_ui_request":
                self.handle_request(message)
            else:
                self.early.append(message)

    def next_event(self):
        return self.early.pop(0) if self.early else self.receive()

    def handle_request(self, request):
        answer = answer_of(request)
        if answer is not None:
            self.send({"type": "extension_ui_response", "id": request["id"], **answer})

    def close(self):
        """Closing stdin is how a client ends pi."""
        self.process.stdin.close()
        return self.process.wait()


def say(text):
    print(text, file=sys.stderr, flush=True)


def read_answer(hint):
    print(hint, end=" ", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    # Nobody is there any more.
    return line.rstrip("\n") if line else None


def answer_of(request):
    """What the user says to a dialog; None for what is no question."""
    method = request["method"]
    if method == "notify":
        say(f"[{request.get('notifyType', 'info')}] {request['message']}")
        return None
    if method == "setStatus":
        if request.get("statusText"):
            say(f"[{request['statusText']}]")
        return None
    if method not in ("select", "confirm", "input", "editor"):
        return None

    say(f"? {request['title']}")
    if method == "confirm":
        say(request["message"])
        line = read_answer("y/n>")
        return {"cancelled": True} if line is None else {"confirmed": line.lower().startswith("y")}
    if method == "select":
        options = request["options"]
        for number, option in enumerate(options, 1):
            say(f"  {number}. {option}")
        line = read_answer(f"1-{len(options)}>")
        if line and line.isdigit() and 1 <= int(line) <= len(options):
            return {"value": options[int(line) - 1]}
        return {"cancelled": True}
    line = read_answer("answer>")
    return {"cancelled": True} if line is None else {"value": line}


def show(pi, event):
    kind = event["type"]
    if kind == "message_update":
        step = event["assistantMessageEvent"]
        if step["type"] == "text_delta":
            print(step["delta"], end="", flush=True)
        elif step["type"] == "text_end":
            print(flush=True)
    elif kind == "message_end" and event["message"].get("errorMessage"):
        say(f"Error: {event['message']['errorMessage']}")
    elif kind == "tool_execution_start":
        say(f"[{event['toolName']} {json.dumps(event['args'])}]")
    elif kind == "tool_execution_end" and event["isError"]:
        say(f"[{event['toolName']} failed]")
    elif kind == "extension_ui_request":
        pi.handle_request(event)
    elif kind == "extension_error":
        say(f"{event['extensionPath']}: {event['error']}")


def converse(pi, text):
    """Sends a prompt and shows what happens until the agent is done."""
    pi.ask("prompt", message=text)
    # A command of an extension is done by now, and need not have started a run.
    busy = pi.ask("get_state")["isStreaming"]
    while busy or pi.early:
        event = pi.next_event()
        show(pi, event)
        # A run that failed may be tried again: the end of one is not always the end.
        if event["type"] in ("agent_end", "auto_retry_end"):
            busy = pi.ask("get_state")["isStreaming"]


def main():
    parser = argparse.ArgumentParser(description="Asks pi over RPC.")
    parser.add_argument("prompt", nargs="+", help="said one after the other")
    parser.add_argument("--pi", default="pi", help="the program (pi)")
    arguments = sys.argv[1:]
    options = ["--provider", "demo", "--model", "demo"]
    if "--" in arguments:
        end = arguments.index("--")
        arguments, options = arguments[:end], arguments[end + 1 :]
    given = parser.parse_args(arguments)

    pi = Pi(given.pi, options)
    for prompt in given.prompt:
        converse(pi, prompt)
    sys.exit(pi.close())


if __name__ == "__main__":
    main()
