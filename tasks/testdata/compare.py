#!/usr/bin/env python3
"""Compare this package's task files with those of the reference implementation.

    compare.py REFERENCE [--write]

REFERENCE is the reference's `greatminds` program (version 3.3.1). The script

 1. has REFERENCE validate every file below testdata/ours, which this package wrote;
 2. has REFERENCE file, plan, move and park tasks in a temporary project, and with --write
    keeps their files and revisions in testdata/original, which this package's tests read;
 3. checks that the revisions of parked tasks, its own and ours, as `wake-check` says them,
    follow the formula by which the others' revisions are computed.

It needs git. The Go tests need neither it nor the reference: they read the files kept here.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ODD_TEXT = ("a rather long line that goes on well beyond the eighty columns at which a folding "
            "writer breaks it\n\n  indented\ttab\n# no comment\ntrailing space \n- dash: colon\n"
            "quotes ' \" and ünïcode 漢 \U0001F600\nend")


class Project:
    def __init__(self, reference, root):
        self.reference, self.root = reference, root
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "start")
        self.run(None, "setup")

    def git(self, *args, cwd=None):
        names = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        return subprocess.run(["git", *names, *args], cwd=cwd or self.root, check=True, capture_output=True, text=True).stdout

    def run(self, role, *args, cwd=None, ok=True):
        env = {k: v for k, v in os.environ.items() if not k.startswith("GREATMINDS_")}
        if role:
            env["GREATMINDS_ROLE"] = role
        done = subprocess.run([self.reference, *args], cwd=cwd or self.root, env=env, capture_output=True, text=True)
        if ok and done.returncode:
            raise SystemExit(f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def tree(self, task):
        return next((self.root / ".worktrees").glob(task + "-*"))

    def plan(self, task, scope, role, *more):
        self.run("ARCHITECT-PLANNER", "plan", task, "--scope", scope, "--assignee-role", role, "--base-commit",
                 self.git("rev-parse", "HEAD").strip(), "--plan-kind", "full", "--mode", "A", "--body", ODD_TEXT, *more)

    def block(self, role, task, kind, *fields, cwd=None):
        args = ["task", "append-block", kind, "--id", task]
        for f in fields:
            args += ["--field", f]
        self.run(role, *args, "--body", "as seen: 2026-01-01", cwd=cwd)


def play(p):
    new = ["task", "new", "--stream", "product", "--title"]
    p.run("ARCHITECT-PLANNER", *new, "Add login: with 'quotes' & ünïcode", "--kind", "feature", "--scope", "backend",
          "--description", ODD_TEXT)
    p.run("TESTER", *new, "yes", "--kind", "bugfix", "--scope", "ui", "--priority", "high", "--reporter", "null")
    p.run("USER", *new, "é", "--kind", "docs", "--scope", "docs", "--in-queue", "user_feedback", "--description", "1e5")
    p.run("ARCHITECT-PLANNER", "task", "new", "--stream", "review_session", "--title", "Look at it", "--mode", "A",
          "--target-functionality", "login", "--scenarios", "a: b,0x10")
    p.run("ARCHITECT-PLANNER", *new, "Done thing", "--kind", "feature", "--scope", "backend")
    p.run("ARCHITECT-PLANNER", *new, "Waiting thing", "--kind", "research", "--scope", "backend", "--description", "\n lead")
    p.run("ARCHITECT-PLANNER", *new, "Dropped thing", "--kind", "ops", "--scope", "backend")
    p.run("ARCHITECT-PLANNER", *new, "Stand thing", "--kind", "research", "--scope", "backend")
    p.run("ARCHITECT-PLANNER", *new, "Docs thing", "--kind", "docs", "--scope", "docs", "--description", "x " * 200)
    p.run("ARCHITECT-PLANNER", *new, "Written thing", "--kind", "feature", "--scope", "backend")

    p.plan("0010", "backend", "DEVELOPER", "--stand-required", "false")
    w = p.tree("0010")
    (w / "a.txt").write_text("a\n")
    p.block("DEVELOPER", "0010", "implementation", "base_commit=abc1234", "files=a.txt", "ready_for_test=true", cwd=w)

    p.plan("0005", "backend", "DEVELOPER", "--stand-required", "false")
    w = p.tree("0005")
    (w / "b.txt").write_text("b\n")
    p.block("DEVELOPER", "0005", "implementation", "base_commit=abc1234", "files=b.txt", "ready_for_test=true", cwd=w)
    p.run("DEVELOPER", "task", "mv", "0005", "feature_test", "--reason", "ready")
    p.block("TESTER", "0005", "tests", "base_commit=abc1234", "test_files=b.txt,c.txt", "test_command=go test './...'",
            "test_result=pass", "gate_check_result=n/a", "gate_check_at=2026-01-05T09:00:00Z", "gate_check_commit=1234567e8",
            "ready_for_review=true", cwd=w)
    p.run("TESTER", "task", "mv", "0005", "feature_review")
    p.block("ARCHITECT-REVIEWER", "0005", "review", "outcome=approved", "commit=abc1234")
    p.run("ARCHITECT-REVIEWER", "task", "mv", "0005", "verified", "--reason", "good")
    p.block("ARCHITECT-REVIEWER", "0005", "rollback", "reason=broke: everything")

    p.plan("0006", "backend", "DEVELOPER", "--stand-required", "false")
    p.block("DEVELOPER", "0006", "blocked", "dependencies=verified/0005-done-thing.yaml", "resume_to=feature_dev",
            "requires_live_roles=TESTER")
    p.run("DEVELOPER", "task", "mv", "0006", "feature_blocked")
    p.run("ARCHITECT-PLANNER", "task", "withdraw", "0007", "--reason", "no need: yes")
    p.plan("0008", "backend", "DEVELOPER", "--stand-required", "true", "--stand-reason", "ui: shows it")
    p.plan("0009", "docs", "TECHNICAL-WRITER", "--stand-required", "false", "--audit-only")
    p.block("READER", "0009", "reader_review", "outcome=partial", "stand_checked=false", "ready_for_architect=true",
            "docs_checked=[a.md, 'b, c.md']")
    p.block("EXPLORER", "0004", "session_iteration", "bugs_filed=0001-x,0002-y")


def revision(place, data):
    return hashlib.sha256(place.encode() + b"\0" + data).hexdigest()


def main():
    reference, write = sys.argv[1], "--write" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "project"
        root.mkdir()
        p = Project(reference, root)
        bad = 0
        ours = sorted((HERE / "ours").glob("*/*.yaml"))
        for f in ours:
            done = p.run(None, "task", "validate", "--file", str(f), ok=False)
            if done.returncode:
                bad += 1
                print(f"{f}: {done.stderr.strip()}")
        print(f"ours: {len(ours)} files, {bad} refused by the reference")

        play(p)
        runtime = root / ".greatminds"
        files = {str(f.relative_to(runtime)): f.read_bytes() for f in sorted(runtime.glob("*/*.yaml"))}
        for f in (HERE / "ours" / "feature_blocked").glob("*.yaml"):
            shutil.copy(f, runtime / "feature_blocked" / f.name)
        found = json.loads(p.run(None, "wake-check", "--json").stdout)["tasks"]
        for task, item in found.items():
            if item["task_revision"] != revision(item["path"], (runtime / item["path"]).read_bytes()):
                raise SystemExit(f"{task}: the revision does not follow the formula")
        print(f"original: {len(files)} files, {len(found)} revisions confirmed by wake-check")
        if write:
            shutil.rmtree(HERE / "original", ignore_errors=True)
            for place, data in files.items():
                (HERE / "original" / place).parent.mkdir(parents=True, exist_ok=True)
                (HERE / "original" / place).write_bytes(data)
            (HERE / "original" / "journal.ndjson").write_bytes((runtime / "journal.ndjson").read_bytes())
            lines = [f"{revision(place, data)} {place}\n" for place, data in files.items()]
            (HERE / "original" / "revisions.txt").write_text("".join(lines))
        if bad:
            raise SystemExit(1)


main()
