#include "app/help.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kStatuses =
    "\nExit status:\n"
    "  0 clean   1 findings   2 usage   3 input or data error   4 incomplete (--strict and something was not checked)\n"
    "  5 script error   6 training process lost   7 a defect of msdbg   130 interrupted\n";

constexpr std::string_view kSelectors =
    "\nSelectors (SEL):\n"
    "  relu                 nodes whose name contains it      'Default/**/Conv2D*'   glob: * stops at /, ** does not\n"
    "  =NAME                exactly this node                 '/conv[12]/'           regular expression\n"
    "  @weight @gradient @activation @parameter @constant @optimizer @loss @all\n"
    "  op:MatMul  scope:Default/network  stack:train.py:70  rank:0  graph:0    and  or  not  ( )\n";

struct Footer {
  std::string_view command, examples;
  bool selectors = false;
};

constexpr Footer kFooters[] = {
    {"",
     "\nExamples:\n"
     "  msdbg origin dumps/lenet            which operator broke first, and why\n"
     "  msdbg check dumps/lenet             is anything wrong in any step\n"
     "  msdbg dumps/lenet                   the prompt\n"
     "  msdbg listen                        hold, step and watch a training process\n"
     "  msdbg demo                          a two-minute walk on a dump that ships with msdbg\n"
     "\nmsdbg COMMAND --help shows the options and examples of a command.\n"},
    {"check",
     "\nExamples:\n"
     "  msdbg check dumps/lenet\n"
     "  msdbg check dumps/lenet --rules TO,TZ --steps 0:10\n"
     "  msdbg check dumps/lenet --on @gradient --when 'TL abs_mean_gt=1'\n"
     "  msdbg check dumps/lenet --on @weight --when WNC --format json -o findings.json\n"
     "  msdbg check dumps/lenet --bless known.jsonl                  this run's findings are known from now on\n"
     "  msdbg check dumps/lenet --baseline known.jsonl --suppress suppress.txt --format junit -o msdbg.xml\n"
     "\nRules (--rules): names, tags and globs with and, or, not, ( ); default, recommended (what MindInsight proposes), or conditions\n"
     "by id or abbreviation, joined by commas: TO WO GE TL WL GL TS WS GV TZ WCL WCS WNC TR AR WI OO.\n",
     true},
    {"origin",
     "\nExamples:\n"
     "  msdbg origin dumps/lenet\n"
     "  msdbg origin dumps/lenet --steps 4 --when inf\n"
     "  msdbg origin dumps/lenet --when 'TL max_gt=1e6' --format json\n"},
    {"report",
     "\nExamples:\n"
     "  msdbg report dumps/lenet -o report.html             opens from disk, prints, loads nothing\n"
     "  msdbg report dumps/lenet -o report.md               the same for a merge request or a mail\n"
     "  msdbg report dumps/lenet -o report.html --rules recommended --steps 0:10\n"},
    {"stats",
     "\nExamples:\n"
     "  msdbg stats dumps/lenet @weight\n"
     "  msdbg stats dumps/lenet 'op:MatMul' --steps 0 --slots all\n",
     true},
    {"show",
     "\nExamples:\n"
     "  msdbg show dumps/lenet Log-op0                      output 0, first step\n"
     "  msdbg show dumps/lenet Log-op0:input:0 --step 1 --slice 0:2,:\n"
     "  msdbg show dumps/lenet conv1.weight --bins 20\n"},
    {"nodes",
     "\nExamples:\n"
     "  msdbg nodes dumps/lenet\n"
     "  msdbg nodes dumps/lenet 'relu and not @gradient'\n"
     "  msdbg nodes dumps/lenet stack:train.py:70 --format json\n",
     true},
    {"doctor",
     "\nExamples:\n"
     "  msdbg doctor dumps/lenet\n"
     "\nEnds with status 1 when it found a problem.\n"},
    {"bisect",
     "\nExamples:\n"
     "  msdbg bisect dumps/lenet conv1.weight                         since when NaN or Inf\n"
     "  msdbg bisect dumps/lenet @weight --when 'TL abs_mean_gt=1'    any of them\n"
     "\nOf 1000 steps 11 are read at most. Ends with status 1 when there is such a step.\n",
     true},
    {"trend",
     "\nExamples:\n"
     "  msdbg trend dumps/lenet abs_mean @gradient\n"
     "  msdbg trend dumps/lenet zero_percentage op:ReLU --format csv -o zeros.csv\n",
     true},
    {"propagation",
     "\nExamples:\n"
     "  msdbg propagation dumps/lenet Log-op0                         where it went, who absorbed it\n"
     "  msdbg propagation dumps/lenet fc2.weight --up --step 1        where it came from\n"
     "  msdbg propagation dumps/lenet Log-op0 --format svg -o spread.svg\n"},
    {"why",
     "\nExamples:\n"
     "  msdbg why dumps/lenet conv1.weight --step 7\n"
     "  msdbg why dumps/lenet fc1-Dense/MatMul-op0                    fused, perhaps\n"
     "\nEnds with status 1 when there is no value, 0 when there is one.\n"},
    {"source",
     "\nExamples:\n"
     "  msdbg source dumps/lenet train.py --root ~/lenet\n"
     "  msdbg source dumps/lenet --rules TO,TZ --steps 0\n"},
    {"run",
     "\nExamples:\n"
     "  msdbg run gradient_health.lua dumps/lenet\n"
     "  echo 'print(#msdbg.open(arg[1]):nodes \"@weight\")' | msdbg run - dumps/lenet\n"
     "\nThe words after the script are its arguments, `...` and `arg`. os.exit(n) sets the exit status.\n"
     "Scripts are trusted code: they can do what you can do.\n"},
    {"repl",
     "\nExamples:\n"
     "  msdbg dumps/lenet\n"
     "  msdbg repl dumps/lenet -e 'check' --batch\n"
     "\nType help at the prompt.\n"},
    {"open",
     "\nExamples:\n"
     "  msdbg open training.rec             step through what --record wrote\n"
     "  msdbg open dumps/lenet\n"},
    {"listen",
     "\nExamples:\n"
     "  msdbg listen                                     the prompt, once a training has come\n"
     "  msdbg listen --script hunt.lua -- 100            a script with its argument; its exit status is msdbg's\n"
     "  msdbg listen --record training.rec --timeout 60\n"
     "  msdbg listen -e 'watch @gradient TO' -e continue --batch\n"
     "\nmsdbg prints the variables to set where the training starts. A script finds the held training as s; if it ends while the\n"
     "training is held, the training is ended, unless the script said s:detach().\n"
     "\nThe protocol has neither encryption nor login. With another --bind than 127.0.0.1 anyone who can reach the port can pose as\n"
     "the training; a tunnel (ssh -R 50051:127.0.0.1:50051 TRAINING-HOST) needs no other --bind.\n"},
    {"ckpt",
     "\nExamples:\n"
     "  msdbg ckpt show model.ckpt @weight\n"
     "  msdbg ckpt diff lenet-1_0.ckpt lenet-1_1.safetensors     update ratio of each parameter\n"
     "  msdbg ckpt match dumps/lenet lenet-1_3.ckpt              the step it was saved after\n"
     "  msdbg ckpt show secret.ckpt --key env:CKPT_KEY\n"},
    {"demo",
     "\nExamples:\n"
     "  msdbg demo\n"
     "  msdbg demo --format json\n"},
};

}  // namespace

std::string help_footer(std::string_view command) {
  std::string out;
  for (const Footer& footer : kFooters) {
    if (footer.command != command) continue;
    out += footer.examples;
    if (footer.selectors) out += kSelectors;
  }
  out += kStatuses;
  return out;
}

}  // namespace msdbg::app
