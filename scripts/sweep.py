#!/usr/bin/env python3
"""Starts published extensions in pi and in a version of the original, and prints what differs.

    scripts/sweep.py --original "node .../pi-coding-agent/dist/cli.js" FOLDER...

FOLDER holds extensions: a clone of a repository whose dependencies are installed, or a package. Each file
that a `pi.extensions` of a package.json names (or, without any, that lies in `extensions/`) is loaded alone,
with --mode rpc in a home of its own: a probe lists tools and commands, every command is called without
arguments, every tool with arguments made from its schema, then a prompt is said, the conversation compacted,
the extensions are loaded again and a new session is begun. Dialogs are cancelled, or (--answer) answered. A
model server on loopback calls the tools. Runs what others wrote, so: on a machine that you can throw away.
"""
import argparse
import glob
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

PROBE = """export default (pi) => {
  pi.on("session_start", (_event, ctx) => void setTimeout(() => ctx.ui.notify("PROBE " + JSON.stringify({
    tools: pi.getAllTools().map(({ name, parameters }) => ({ name, parameters })),
    commands: pi.getCommands().filter(({ source }) => source === "extension").map(({ name }) => name),
  })), 1000));
  pi.registerCommand("probe-reload", { description: "", handler: (_words, ctx) => ctx.reload() });
  pi.registerCommand("probe-new", { description: "", handler: async (_words, ctx) => void await ctx.newSession() });
};"""
BUILT_IN = {"read", "bash", "edit", "write", "grep", "find", "ls", "powershell"}
# The original's own commands, and those that end the run.
SKIPPED = {"llama", "quit", "exit", "reload", "restart"}
MOST = 8
# The number of dialogs that a command gets answered; later ones are cancelled, to end menus that repeat.
ANSWERED = 6
DIALOGS = {"select", "confirm", "input", "editor"}


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the tool of a prompt `CALL name {arguments}`, and responds "Fine." to everything else."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        last = (body.get("messages") or [{}])[-1]
        text = last.get("content") or ""
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text if isinstance(part, dict))
        delta, finish = {"role": "assistant", "content": "Fine."}, "stop"
        if last.get("role") == "user" and "CALL " in text:
            name, _, arguments = text.split("CALL ", 1)[1].partition(" ")
            call = {"name": name, "arguments": arguments[: arguments.rfind("}") + 1]}
            call = {"index": 0, "id": "c1", "type": "function", "function": call}
            delta, finish = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}]
        common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        answer = "".join(f"data: {json.dumps(common | chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())


def extensions(folder):
    """The files to load, by package.json or by their path."""
    found = {}

    def add(pattern):
        for path in sorted(glob.glob(pattern, recursive=True)):
            inner = [os.path.join(path, name) for name in ("index.ts", "index.js")] if os.path.isdir(path) else [path]
            inner = [one for one in inner if os.path.isfile(one)][:1]
            if os.path.isdir(path) and not inner:
                for below in ("*.ts", "*.js", "*/index.ts", "*/index.js"):
                    inner += sorted(glob.glob(os.path.join(path, below)))
            for one in inner:
                if not re.search(r"\.(test|spec|d)\.ts$", one):
                    found[os.path.realpath(one)] = None

    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("node_modules", ".git")]
        if "package.json" in files:
            try:
                manifest = json.load(open(os.path.join(place, "package.json"), encoding="utf-8"))
            except ValueError:
                continue
            for entry in (manifest.get("pi") or {}).get("extensions") or []:
                if not entry.startswith(("!", "+", "-")):
                    add(os.path.join(place, entry))
    if not found:
        add(os.path.join(folder, "extensions"))
    return list(found)


def made(schema, name="", depth=0):
    """A value that fits a schema, with its required members."""
    if not isinstance(schema, dict) or depth > 4:
        return "hello"
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return made(schema[several][0], name, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    members = schema.get("properties", {})
    if kind == "object" or members:
        wanted = schema.get("required") or list(members)[:1]
        return {member: made(members.get(member, {}), member, depth + 1) for member in wanted}
    if kind == "array":
        return [made(schema.get("items", {}), name, depth + 1)] * max(1, schema.get("minItems", 1))
    if kind in ("number", "integer"):
        return max(1, schema.get("minimum", 1))
    if kind == "boolean":
        return False
    for part, text in (("path", "a.txt"), ("file", "a.txt"), ("url", "http://127.0.0.1:18/x"), ("command", "echo hi")):
        if part in name.lower():
            return text
    return "hello"


class Run:
    """One program with one extension."""

    def __init__(self, program, extension, port, answers):
        self.answers, self.answered = answers, 0
        self.root = tempfile.mkdtemp(prefix="sweep")
        agent, project = f"{self.root}/home/.pi/agent", f"{self.root}/project"
        os.makedirs(agent)
        os.makedirs(project)
        self.write(f"{project}/a.txt", "hello\nworld\n")
        self.write(f"{self.root}/probe.ts", PROBE)
        provider = {"baseUrl": f"http://127.0.0.1:{port}/v1", "api": "openai-completions", "apiKey": "k",
                    "models": [{"id": "m"}]}
        self.write(f"{agent}/models.json", json.dumps({"providers": {"x": provider}}))
        settings = {"defaultProvider": "x", "defaultModel": "m", "retry": {"enabled": False}}
        self.write(f"{agent}/settings.json", json.dumps(settings))
        author = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        dates = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
        env = {"PATH": os.environ["PATH"], "HOME": f"{self.root}/home", "TERM": "xterm", "COLORTERM": "truecolor",
               "LANG": "C.UTF-8", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}
        subprocess.run("git init -q && git add -A && git commit -qm one", shell=True, cwd=project, check=False,
                       env=env | author | dates)
        words = [*program, "--mode", "rpc", "-ne", "-e", extension, "-e", f"{self.root}/probe.ts"]
        self.process = subprocess.Popen(words, cwd=project, env=env, text=True, errors="replace", start_new_session=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.errors, self.ended, self.news = [], [], False, threading.Condition()
        self.readers = [threading.Thread(target=one, daemon=True) for one in (self.read, self.read_errors)]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self):
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"type": "no JSON", "text": line[:300]}
            if event.get("type") == "extension_ui_request" and event.get("method") in DIALOGS:
                self.send({"type": "extension_ui_response", "id": event["id"]} | self.answer(event))
            with self.news:
                self.lines.append(event)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def answer(self, dialog):
        self.answered += 1
        if not self.answers or self.answered > ANSWERED:
            return {"cancelled": True}
        if dialog["method"] == "confirm":
            return {"confirmed": True}
        return {"value": (dialog.get("options") or [""])[0] if dialog["method"] == "select" else "hello"}

    def read_errors(self):
        self.errors.extend(line.rstrip() for line in self.process.stderr)

    def send(self, command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def wait(self, fits, seconds, since=0):
        end = time.monotonic() + seconds
        with self.news:
            while True:
                found = next((line for line in self.lines[since:] if fits(line)), None)
                left = end - time.monotonic()
                if found or self.ended or left <= 0:
                    return found
                self.news.wait(left)

    def settle(self, quiet=0.5, most=6):
        end = time.monotonic() + most
        while time.monotonic() < end:
            count = len(self.lines)
            time.sleep(quiet)
            if len(self.lines) == count:
                return

    def visible(self, since):
        """The behaviour visible to a user or a client, without values that differ in every run."""
        def plain(value):
            text = re.sub(r"sweep[a-z0-9_]{8}", "HOME", json.dumps(value, sort_keys=True))
            text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)
            return re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", re.sub(r"\\u001b\[[0-9;]*m", "", text))[:600]
        for line in self.lines[since:]:
            kind = line.get("type")
            if kind == "extension_ui_request" and not str(line.get("message", "")).startswith("PROBE "):
                shown = {key: value for key, value in line.items() if key not in ("id", "type", "timeout")}
                yield "ui " + plain(shown)
            elif kind == "message_end" and line.get("message", {}).get("role") == "custom":
                message = line["message"]
                yield "message " + plain([message.get(key) for key in ("customType", "display", "content")])
            elif kind == "extension_error":
                yield "error " + plain([line.get("event"), line.get("error")])
            elif kind == "tool_execution_end":
                yield "tool " + plain([line.get("isError"), (line.get("result") or {}).get("content")])
            elif kind == "response" and not line.get("success"):
                yield "refused " + plain(line.get("error"))

    def ask(self, command, done, seconds):
        since, self.answered = len(self.lines), 0
        command = {"type": "prompt", "message": command} if isinstance(command, str) else command
        self.send({"id": f"at-{since}"} | command)
        if not self.wait(lambda line: done(line, f"at-{since}"), seconds, since):
            self.send({"type": "abort"})
        self.settle()
        return sorted(set(self.visible(since)))

    @staticmethod
    def probed(line):
        probe = json.loads(line["message"][6:])
        tools = {tool["name"]: tool["parameters"] for tool in probe["tools"] if tool["name"] not in BUILT_IN}
        own = lambda name: not name.startswith("probe-") and name.split(":")[0] not in SKIPPED
        return tools, sorted(filter(own, probe["commands"]))

    def everything(self):
        result = {}
        is_probe = lambda line: str(line.get("message", "")).startswith("PROBE ")
        probe = self.wait(is_probe, 30)
        # Here the other extensions run without it; the original exits.
        errors = [line for line in self.lines if line.get("type") == "extension_error" and line.get("event") == "load"]
        # Diagnostics (an unknown event, a conflict, an invalid description), which the original does not have.
        unloaded = [line for line in errors if not re.search(" event | conflict|must be ", str(line.get("error")))]
        if probe and not unloaded:
            tools, commands = self.probed(probe)
            result["start"] = [*sorted(tools), *commands, *sorted(set(self.visible(0)))]
            answered = lambda line, id: line.get("id") == id and line.get("type") == "response"
            over = lambda line, _: line.get("type") == "agent_end"
            for name in commands[:MOST]:
                result[f"/{name}"] = self.ask(f"/{name}", answered, 8)
            for name in sorted(tools)[:MOST]:
                arguments = made(tools[name])
                arguments = arguments if isinstance(arguments, dict) else {}
                result[f"tool {name}"] = self.ask(f"CALL {name} {json.dumps(arguments)}", over, 15)
            result["prompt"] = self.ask("hello", over, 15)
            result["compact"] = self.ask({"type": "compact"}, answered, 15)
            for name in ("reload", "new"):
                since = len(self.lines)
                visible = self.ask(f"/probe-{name}", lambda line, _: is_probe(line), 15)
                again = next(filter(is_probe, self.lines[since:]), None)
                tools, commands = self.probed(again) if again else ({}, [])
                result[name] = [*sorted(tools), *commands, *visible]
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            result["exit"] = self.process.wait(20)
        except subprocess.TimeoutExpired:
            result["exit"] = "it does not end"
        try:
            os.killpg(self.process.pid, 9)
        except OSError:
            pass
        for reader in self.readers:
            reader.join(3)
        if unloaded or not probe:
            why = [line.get("error") for line in unloaded] or self.errors[:5]
            result = {"start": ["it does not load"], "why": why}
        shutil.rmtree(self.root, ignore_errors=True)
        return result


def differences(ours, theirs):
    for what in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(what), theirs.get(what)
        if one == other or what == "why":
            continue
        if isinstance(one, list) and isinstance(other, list):
            one, other = [line for line in one if line not in other], [line for line in other if line not in one]
        yield f"  {what}\n    pi:       {one}\n    original: {other}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pi", default="pi", help="ours")
    parser.add_argument("--original", required=True, help="the words that start the other one")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--answer", action="store_true", help="dialogs are answered, with what comes first")
    parser.add_argument("folders", nargs="+")
    given = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    programs = [shlex.split(given.pi), shlex.split(given.original)]
    files = [file for folder in given.folders for file in extensions(folder)]

    def both(file):
        return file, [Run(program, file, port, given.answer).everything() for program in programs]

    same = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for file, (ours, theirs) in pool.map(both, files):
            found = list(differences(ours, theirs))
            same += not found
            if found:
                print(f"{file}\n" + "\n".join(found), flush=True)
            for who, result in (("pi", ours), ("the original", theirs)):
                if found and "why" in result:
                    print(f"  {who} says: {result['why']}", flush=True)
    print(f"{len(files)} extensions, {same} do the same")


if __name__ == "__main__":
    main()
