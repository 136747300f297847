"""Several ranks of a MindSpore training under msdbg listen; mindspore_live.py runs them."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

from live import LONGEST, NOT_FINITE, PACKAGE, PROGRAMS, Debugger, free_port
from mindspore_compiled import Watched

RANKS = 2


class Ranks(Watched):
    """Each process of msrun is a rank: held, stepped and watched together."""

    def test_unchanged(self):
        debugger = Debugger(NOT_FINITE, "--ranks", str(RANKS))
        plain, watched = self._run("plain"), self._run("plain", debugger)
        self.assertEqual(len(plain), RANKS)
        self.assertEqual(watched, plain, debugger.text())
        debugger.process.wait(timeout=LONGEST)
        self.assertIn("reason ended", debugger.text())
        debugger.close()

    def test_flipped_bit(self):
        """The operators of each rank are seen, and the weight that differs is named."""
        debugger = Debugger(
            """
            s:watch { name = "w", on = "**", when = "TO" }
            s:step(3)
            local seen = {}
            for node in s:nodes("op:MatMul"):each() do seen[node.rank] = (seen[node.rank] or 0) + 1 end
            for _, rank in ipairs(s.ranks) do print("rank " .. rank .. " operators " .. tostring(seen[rank])) end
            print(s:replicas())
            s:terminate()
            """,
            "--ranks",
            str(RANKS),
        )
        self._run("flip", debugger)
        debugger.process.wait(timeout=LONGEST)
        text = debugger.text()
        debugger.close()
        for rank in range(RANKS):
            self.assertRegex(text, "rank %d operators [1-9]" % rank)
        self.assertIn("a single flipped bit: 20", text)
        self.assertRegex(text, "reached +up.weight")

    @staticmethod
    def _run(kind, debugger=None):
        folder = tempfile.mkdtemp(prefix="msdbg-agent-test-")
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        if debugger is not None:
            # What msdbg_agent.pth does in each process: in msrun itself, in its scheduler and in the ranks.
            with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
                file.write("import msdbg_agent._bootstrap\n")
            environment.update(
                ENABLE_MS_DEBUGGER="1",
                MS_DEBUGGER_PORT=str(debugger.port),
                PYTHONPATH=folder + os.pathsep + PACKAGE,
            )
        subprocess.run(
            [
                os.path.join(os.path.dirname(sys.executable), "msrun"),
                "--worker_num=%d" % RANKS,
                "--local_worker_num=%d" % RANKS,
                "--master_port=%d" % free_port(),
                "--log_dir=" + folder,
                "--join=True",
                os.path.join(PROGRAMS, "mindspore_ranks.py"),
                kind,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LONGEST,
            cwd=folder,
            env=dict(environment, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"]),
            check=False,
        )
        lines = []
        for name in glob.glob(os.path.join(folder, "worker_*.log")):
            with open(name, encoding="utf-8", errors="replace") as file:
                lines += [line.strip() for line in file if " losses " in line]
        shutil.rmtree(folder)
        return sorted(lines)
