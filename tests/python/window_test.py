"""The directory in memory for MindSpore's dumps."""

import os
import subprocess
import sys
import tempfile
import unittest

from msdbg_agent.mindspore_agent import window


class Leftovers(unittest.TestCase):
    def test_only_dead_owners_lose_their_directory(self):
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        with tempfile.TemporaryDirectory() as root:
            names = [
                "msdbg-agent-%d-aa" % ended.pid,
                "msdbg-agent-%d-bb" % os.getpid(),
                "msdbg-agent-x",
                "other-1-a",
            ]
            for name in names:
                os.mkdir(os.path.join(root, name))
            window.remove_leftovers(root)
            self.assertEqual(sorted(os.listdir(root)), sorted(names[1:]))

    def test_read_only_directories_are_removed(self):
        with tempfile.TemporaryDirectory() as root:
            place = os.path.join(root, "rank_0", "Net")
            os.makedirs(place)
            with open(os.path.join(place, "a.npy"), "wb") as file:
                file.write(b"x")
            os.chmod(os.path.join(place, "a.npy"), 0o400)
            os.chmod(place, 0o500)
            window._remove(os.path.join(root, "rank_0"))
            self.assertEqual(os.listdir(root), [])


class Opened(unittest.TestCase):
    def test_is_left_after_an_exception(self):
        moved = []

        class Probe:
            set_window = staticmethod(moved.append)

        before = os.environ.pop("MINDSPORE_DUMP_CONFIG", None)
        made = window.Window(Probe, True)
        try:
            self.assertTrue(made.usable, made.why)
            with self.assertRaises(KeyError), made.opened(7):
                raise KeyError
            self.assertEqual(moved, [window.FAR + 7, 0])
            root = made.root
            self.assertNotIn(".", root)
        finally:
            made.close()
            if before is not None:
                os.environ["MINDSPORE_DUMP_CONFIG"] = before
        self.assertFalse(os.path.exists(root))
        self.assertNotIn("MINDSPORE_DUMP_CONFIG", os.environ)

    def test_somebody_elses_dump_excludes_ours(self):
        class Probe:
            set_window = staticmethod(lambda _: None)

        os.environ["MINDSPORE_DUMP_CONFIG"] = "mine.json"
        try:
            made = window.Window(Probe, True)
            self.assertFalse(made.usable)
            self.assertIn("MINDSPORE_DUMP_CONFIG", made.why)
        finally:
            del os.environ["MINDSPORE_DUMP_CONFIG"]


if __name__ == "__main__":
    unittest.main()
