#!/usr/bin/env python3
"""A queue of prompts over many agents: Redis has the queue, each worker runs one pi at a time.

    fleet.py submit "review the last commit" ...    prints an id for each
    fleet.py work NAME                              a worker; any number of them, on any machine
    fleet.py drain NAME                             a worker that ends when the queue is empty
    fleet.py status                                 what waits, what runs, what became of it, as JSON

A job is claimed by one worker, which renews its claim while it works. If a worker dies, another one
claims the job when the claim has run out, and goes on with the same session as far as the folder is
shared. A result is stored once, together with the end of the job. What has failed ATTEMPTS times is
put aside, with the reason. Settings are environment variables, see below.
"""

import fcntl
import json
import os
import signal
import sys
import threading
import time
import uuid
from pathlib import Path

import redis

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "rpc"))
from client import INTERRUPT, Ended, Pi, Refused  # noqa: E402

REDIS = os.environ.get("PI_FLEET_REDIS", "redis://localhost:6379/0")
FOLDER = Path(os.environ.get("PI_FLEET_FOLDER", "/var/lib/pi-fleet/jobs")).absolute()
LEASE = float(os.environ.get("PI_FLEET_LEASE", "60"))  # Seconds until a dead worker's job is free.
LIMIT = float(os.environ.get("PI_FLEET_LIMIT", "1800"))  # Seconds that a job may take.
ATTEMPTS = int(os.environ.get("PI_FLEET_ATTEMPTS", "3"))
PROGRAM = os.environ.get("PI_PROGRAM", "pi")
OPTIONS = os.environ.get("PI_FLEET_OPTIONS", "").split()

JOBS, WORKERS = "pi:jobs", "workers"  # A stream, and the group that reads it.
RESULTS, DEAD, ERRORS = "pi:results", "pi:dead", "pi:errors"  # Hashes; the key is a job's id.
AWAY = (redis.ConnectionError, redis.TimeoutError)  # It will come back.
PAUSE = 5  # Seconds until Redis, or a session that is in use, is tried again.
GO_ON = "You were interrupted. Look at where you are, and go on."


class Worker:
    def __init__(self, name):
        self.name = name
        self.redis = redis.Redis.from_url(REDIS, decode_responses=True)
        self.pi = None
        self.stopping = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        self.patiently(self.create_group)

    def create_group(self):
        try:
            self.redis.xgroup_create(JOBS, WORKERS, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def patiently(self, do, *args):
        """Waits while Redis is unavailable, unless the worker was asked to end."""
        while True:
            try:
                return do(*args)
            except AWAY as error:
                print(f"{self.name}: Redis is away: {error}", file=sys.stderr)
                if self.stopping.wait(PAUSE):
                    raise

    def stop(self):
        """Aborts the running job and returns it to the queue for another worker."""
        self.stopping.set()
        if self.pi:
            self.pi.inbox.put(INTERRUPT)

    def work(self, drain=False):
        """Runs until it is stopped; returns the exit code. With `drain` it also ends when no job waits
        or runs: until then another worker may die and leave its job to this one."""
        while not self.stopping.is_set():
            jobs = self.patiently(self.claim)
            for message, fields in jobs:
                self.handle(message, fields)
            if drain and not jobs and not self.patiently(self.redis.xlen, JOBS):
                return 0
        return 143 if drain else 0

    def claim(self):
        """Returns a job whose worker has died, else a new one, else nothing after a second."""
        idle = int(LEASE * 1000)
        _, left, *_ = self.redis.xautoclaim(JOBS, WORKERS, self.name, idle, "0-0", count=1)
        if left:
            # A deleted entry arrives without its fields.
            return [(message, fields) for message, fields in left if fields]
        new = self.redis.xreadgroup(WORKERS, self.name, {JOBS: ">"}, count=1, block=1000)
        return new[0][1] if new else []

    def handle(self, message, fields):
        job = fields["id"]
        pending = self.patiently(self.redis.xpending_range, JOBS, WORKERS, message, message, 1)
        if not pending:
            return None  # Done meanwhile, by a worker that was only slow.
        attempt = pending[0]["times_delivered"]
        if self.in_use(job):
            # The session is held by a slow worker, or by the agent of one that has just died. This
            # does not count as an attempt.
            return self.patiently(self.give_back, message, PAUSE, attempt - 1)
        if attempt > ATTEMPTS:
            return self.patiently(self.put_aside, message, job)
        over = threading.Event()
        renewing = threading.Thread(target=self.renew, args=(message, over), daemon=True)
        renewing.start()
        try:
            result = self.run(job, fields["prompt"])
        except (Ended, Refused) as error:
            result = None
            why = f"attempt {attempt}: {type(error).__name__}: {error}"
            self.patiently(self.redis.hset, ERRORS, job, why)
        finally:
            over.set()
            renewing.join()
        if result is not None:
            result |= {"worker": self.name, "attempt": attempt}
            self.patiently(self.store, message, job, result)
        elif attempt >= ATTEMPTS and not self.stopping.is_set():
            self.patiently(self.put_aside, message, job)
        else:
            self.patiently(self.give_back, message, 0, attempt)

    def in_use(self, job):
        """Whether a pi has the session open, which holds a lock on the file."""
        try:
            with open(FOLDER / job / "session.jsonl") as session:
                fcntl.flock(session, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass  # There is none yet, or there are no locks here.
        return False

    def give_back(self, message, later, attempts):
        """Lets any worker claim the job after `later` seconds."""
        idle = max(0, int((LEASE - later) * 1000))
        command = ["XCLAIM", JOBS, WORKERS, self.name, 0, message, "IDLE", idle]
        self.redis.execute_command(*command, "RETRYCOUNT", attempts, "JUSTID")

    def store(self, message, job, result):
        # Written in one transaction, and once: another worker may have taken over the job.
        with self.redis.pipeline(transaction=True) as end:
            end.hsetnx(RESULTS, job, json.dumps(result))
            self.forget(end, message, job).execute()

    def renew(self, message, over):
        connection = redis.Redis.from_url(REDIS)
        while not over.wait(LEASE / 4):
            try:
                # JUSTID: not another attempt.
                connection.xclaim(JOBS, WORKERS, self.name, 0, [message], justid=True)
            except AWAY:
                pass  # The next time, or the one after that.

    def put_aside(self, message, job):
        why = self.redis.hget(ERRORS, job) or "its workers died"
        with self.redis.pipeline(transaction=True) as end:
            end.hsetnx(DEAD, job, why)
            self.forget(end, message, job).execute()

    def forget(self, end, message, job):
        return end.xack(JOBS, WORKERS, message).xdel(JOBS, message).hdel(ERRORS, job)

    def run(self, job, prompt):
        """Returns the response; raises `Refused` if the model fails, time is up, or the worker ends."""
        folder = FOLDER / job
        folder.mkdir(parents=True, exist_ok=True)
        session = folder / "session.jsonl"
        options = [*OPTIONS, "--session", str(session)]
        os.chdir(folder)  # Where pi, and what it runs, begins.
        last = {}
        self.pi = Pi(PROGRAM, options, lambda event: self.on_event(event, last))
        timer = threading.Timer(LIMIT, self.pi.inbox.put, [INTERRUPT])
        timer.start()
        try:
            said = self.pi.ask("get_messages")["messages"]
            if self.pi.interrupted or self.stopping.is_set():
                raise Refused("the worker ends, or the time is over")
            known = any(m["role"] == "user" for m in said)
            self.pi.ask("prompt", message=GO_ON if known else prompt)
            self.pi.ask("wait_for_idle")
            if last.get("stopReason") != "stop":
                raise Refused(last.get("errorMessage") or f"ended with {last.get('stopReason')}")
            answer = self.pi.ask("get_last_assistant_text").get("text", "")
            return {"answer": answer, "cost": self.pi.ask("get_session_stats")["cost"]}
        finally:
            timer.cancel()
            self.pi.close()
            self.pi = None

    def on_event(self, event, last):
        if event["type"] == "message_end" and event["message"]["role"] == "assistant":
            last.clear()
            last.update(event["message"])
        elif event["type"] == "extension_ui_request":
            # There is no user to answer; pi ignores this if the request is no dialog.
            answer = {"type": "extension_ui_response", "id": event["id"], "cancelled": True}
            self.pi.send(answer)


def submit(prompts):
    queue = redis.Redis.from_url(REDIS)
    for prompt in prompts:
        job = uuid.uuid4().hex
        queue.xadd(JOBS, {"id": job, "prompt": prompt, "at": time.time()})
        print(job)


def status():
    queue = redis.Redis.from_url(REDIS, decode_responses=True)
    claimed = {}
    if queue.exists(JOBS) and queue.xinfo_groups(JOBS):
        entries = queue.xpending_range(JOBS, WORKERS, "-", "+", 10_000)
        claimed = {entry["message_id"]: entry["consumer"] for entry in entries}
    jobs = queue.xrange(JOBS)
    print(
        json.dumps(
            {
                "waiting": [f["id"] for message, f in jobs if message not in claimed],
                "running": {f["id"]: claimed[m] for m, f in jobs if m in claimed},
                "results": {job: json.loads(r) for job, r in queue.hgetall(RESULTS).items()},
                "dead": queue.hgetall(DEAD),
            }
        )
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["submit", *prompts]:
            submit(prompts)
        case ["work", name]:
            sys.exit(Worker(name).work())
        case ["drain", name]:
            sys.exit(Worker(name).work(drain=True))
        case ["status"]:
            status()
        case _:
            sys.exit(__doc__)
