"""PyTorch trainings that change values in place, or go on behind exceptions, under msdbg listen;
torch_live.py runs them."""

import re

from live import NOT_FINITE, RECOMMENDED, LiveTest, alone, line_of, main, several, under_debugger

PROGRAM = "torch_changes.py"


class Changes(LiveTest):
    def test_a_value_that_changes_between_its_views(self):
        self.unchanged(PROGRAM, "views")
        script = (
            "s:watch { name = 'not finite', on = '**', when = 'TO' } for _ = 1, 50 do "
            "local r = s:continue() if not r.held then break end "
            "for _, hit in ipairs(r.hits) do print('hit at ' .. hit.node) end end"
        )
        found = under_debugger(script, PROGRAM, "views", "broken")
        hits = re.findall(r"hit at \S*/(\w+-op\d+)", found.debugger)
        changed = ["mul_-op0", "slice-op1", "copy_-op0"]
        self.assertEqual(hits, changed + ["t-op1", "view-op0"], found.debugger)

    def test_data_that_is_changed_in_part(self):
        self.unchanged(PROGRAM, "parts")
        found = under_debugger(NOT_FINITE, PROGRAM, "parts", "broken")
        self.holds(
            found,
            "hit at Default/network-Whitening/div_-op0",
            r"first bad +Default/network-Whitening/div_-op0:output:0",
            re.escape(line_of(PROGRAM, "parts")),
            r"div_-op0 -> parameter data\.x",
        )
        self.assertNotRegex(found.debugger, "came in|broke on its own")

    def test_a_branch_that_begins_without_weight(self):
        ended = self.unchanged(PROGRAM, "gains", script=RECOMMENDED)
        self.assertNotIn("HIT", ended.debugger)
        self.holds(under_debugger(RECOMMENDED, PROGRAM, "gains", "broken"), r"step 3  HIT[\s\S]*GV")

    def test_a_loop_that_goes_on_behind_exceptions(self):
        """Also, hooks of modules cost nothing inside a network whose operators nobody wants."""
        for own in ((), ("own",)):
            with self.subTest(own=own):
                plain = alone(PROGRAM, "hooks", *own)
                for watch in ("", "s:watch { name = 'w', on = '**', when = 'TO' } "):
                    ended = under_debugger(watch + "s:continue()", PROGRAM, "hooks", *own)
                    self.assertEqual(ended.results, plain.results, ended.training)
                    self.holds(ended, "it counts 12 steps")
                    seen = re.search(r"HOOKS \[(.*)\]", ended.training).group(1).split(", ")
                    self.assertEqual(set(seen[1:]), {"1" if watch else "0"}, seen)


if __name__ == "__main__":
    main(several(), "torch", "torch._dynamo")
