// Every name in a table of 80 columns identifies its node and no other, for the program and in a selector.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "msdbg/dump.h"
#include "msdbg/follow_report.h"
#include "msdbg/html_report.h"
#include "msdbg/report.h"
#include "msdbg/table.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

constexpr size_t kWidth = 80;

ReportStyle narrow() {
  ReportStyle style;
  style.width = kWidth;
  return style;
}

class PrintedNames : public ::testing::TestWithParam<std::string> {
 protected:
  PrintedNames() : session_(std::move(*open_dump(std::string(MSDBG_TEST_DATA "/dumps/") + GetParam()))) {
    for (const GraphPtr& graph : session_->graphs()) {
      for (const Node& node : graph->nodes()) all_.insert(node.name);
    }
  }

  static std::string without_slot(std::string word) {
    for (size_t colon = word.find(':'); colon != std::string::npos; colon = word.find(':', colon + 1)) {
      if (parse_slot(std::string_view(word).substr(colon + 1))) return word.substr(0, colon);
    }
    return word;
  }

  /// The names in a text, in order, as full names: words that are a suffix of one. Each is pasted back and must identify one node.
  std::vector<std::string> names_in(const std::string& text) {
    std::istringstream lines(text);
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), kWidth) << line;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        while (!word.empty() && std::string_view(",;.)'").find(word.back()) != std::string_view::npos) word.pop_back();
        word.erase(0, word.find_first_not_of('\''));
        const std::string name = without_slot(word);
        const size_t mark = name.find("\u2026");
        const bool is_name = (mark != std::string::npos && mark + 3 < name.size()) ||
                             (!name.empty() && std::any_of(all_.begin(), all_.end(), [&](const std::string& full) {
                               return full == name || full.ends_with("/" + name);
                             }));
        if (is_name) found.push_back(pasted(word));
      }
    }
    return found;
  }

  std::string pasted(const std::string& word) {
    const Result<NodeRef> node = find_node(session_->graphs(), word);
    EXPECT_TRUE(node) << node.status().message();
    if (!node) return word;
    const std::string name = node->graph->node(node->node).name;
    if (word.find(":input:") == std::string::npos) {
      const Result<Selector> selector = Selector::parse(word);
      EXPECT_TRUE(selector) << selector.status().message();
      std::set<std::string> chosen;
      for (const NodeRef& ref : selector->resolve(session_->graphs())) chosen.insert(ref.graph->node(ref.node).name);
      EXPECT_EQ(chosen, std::set<std::string>{name}) << word;
    }
    return name;
  }

  /// The name of a tensor and, for a gradient, that of its parameter.
  void expect_tensor(const TensorId& id, std::vector<std::string>* expected) const {
    expected->push_back(session_->node(id).name);
    if (std::string parameter = gradient_of_name(*session_, id); !parameter.empty()) expected->push_back(std::move(parameter));
  }

  std::unique_ptr<Session> session_;
  std::set<std::string> all_;
};

TEST_P(PrintedNames, OfNodes) {
  std::vector<NodeRef> nodes;
  std::vector<std::string> expected;
  for (const GraphPtr& graph : session_->graphs()) {
    for (const Node& node : graph->nodes()) {
      nodes.push_back({graph.get(), node.id});
      expected.push_back(node.name);
    }
  }
  EXPECT_EQ(names_in(nodes_report(*session_, nodes, narrow())), expected);
}

TEST_P(PrintedNames, OfStatistics) {
  std::vector<StatsRow> rows;
  std::vector<std::string> expected;
  for (const TensorId& id : session_->tensors({})) {
    StatsRow row{session_->describe(id).value(), session_->stats(id).value()};
    rows.push_back(std::move(row));
    expect_tensor(id, &expected);
  }
  EXPECT_EQ(names_in(stats_report(*session_, rows, narrow())), expected);
}

TEST_P(PrintedNames, OfACheck) {
  const CheckResult result = check(*session_, default_watchpoints(), {}).value();
  ASSERT_FALSE(result.hits.empty());
  std::vector<std::string> expected;
  for (const Hit& hit : result.hits) {
    if (expected.size() < 60) expected.push_back(session_->node(hit.tensor).name);
  }
  std::vector<std::string> printed = names_in(check_report(*session_, result, narrow()));
  EXPECT_EQ(printed.back(), expected.front()) << "the last line names the first hit";
  printed.pop_back();
  EXPECT_EQ(printed, expected);
  ReportStyle grouped = narrow();
  grouped.group = true;
  EXPECT_FALSE(names_in(check_report(*session_, result, grouped)).empty());
}

TEST_P(PrintedNames, OfAnOrigin) {
  const OriginResult result = find_origins(*session_, {}).value();
  const std::vector<std::string> printed = names_in(origin_report(*session_, result, narrow()));
  ASSERT_GT(printed.size(), 2u);
  EXPECT_EQ(printed.front(), session_->node(result.steps.front().origins.front().tensor).name);
}

TEST_P(PrintedNames, OfTrends) {
  const TrendResult result = trend(*session_, follow_target(*session_, "@all", {}, {}).value(), "abs_mean").value();
  std::vector<std::string> expected;
  for (const TrendLine& line : result.lines) expect_tensor(line.tensor, &expected);
  EXPECT_EQ(names_in(trend_report(*session_, result, narrow())), expected);
}

TEST_P(PrintedNames, OfADiff) {
  const std::unique_ptr<Session> healthy = std::move(*open_dump(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-ok"));
  const DiffResult result = diff_sessions(*healthy, *session_, {}).value();
  ASSERT_TRUE(result.first.has_value());
  const std::vector<std::string> printed = names_in(diff_report(*healthy, *session_, result, narrow()));
  ASSERT_GT(printed.size(), 3u);
  EXPECT_EQ(printed.front(), session_->node(result.tensors[*result.first].b).name);
}

INSTANTIATE_TEST_SUITE_P(Dumps, PrintedNames, ::testing::Values("lenet-2.7.1-lognan", "lenet-2.7.1-explode"), [](const auto& param) {
  std::string name = param.param.substr(param.param.rfind('-') + 1);
  return name;
});

}  // namespace
}  // namespace msdbg
