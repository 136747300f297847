// The tensors involved, with their pictures.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/chapters.h"
#include "report/html_pictures.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostInputCards = 4, kMostLinks = 6;

struct Chosen {
  TensorId id;
  std::string role;
};

class Choice {
 public:
  explicit Choice(size_t limit) : limit_(limit) {}
  void add(const TensorId& id, std::string role) {
    if (list_.size() < limit_ && seen_.insert(id).second) list_.push_back({id, std::move(role)});
  }
  bool full() const { return list_.size() >= limit_; }
  std::vector<Chosen> take() { return std::move(list_); }

 private:
  size_t limit_;
  std::vector<Chosen> list_;
  std::set<TensorId> seen_;
};

void choose_story(Context& context, const StepOrigins& step, Choice* choice) {
  const Origin& origin = step.origins.front();
  choice->add(origin.tensor, "broke first");
  size_t inputs = 0;
  for (const OriginInput& input : origin.inputs) {
    if (!input.value || !worth_showing(input) || ++inputs > kMostInputCards) continue;
    choice->add(*input.value, fmt::format("input:{} of {}", input.slot, context.short_name(origin.tensor)));
  }
  bool history_missing = false;
  if (const auto before = context.session.previous(origin.tensor, &history_missing))
    choice->add(*before, fmt::format("the same, step {}", before->step));
  size_t links = 0;
  for (const auto& chain : origin.chains) {
    for (size_t i = 1; i < chain.size() && links < kMostLinks; ++i) {
      // Only the next stop and the end of the path.
      if (i > 1 && i + 1 < chain.size()) continue;
      ++links;
      const bool parameter = context.node(chain[i].tensor).kind == NodeKind::kParameter;
      choice->add(chain[i].tensor, !chain[i].bad ? "absorbed it"
                                   : parameter   ? "a parameter it reached"
                                   : i == 1      ? "next on the path"
                                                 : "end of a path");
    }
  }
}

std::vector<Chosen> choose(Context& context) {
  const size_t limit = context.options.max_tensors;
  Choice choice(limit);
  // The first story gets the space it needs, later ones what remains.
  for (const StepOrigins* step : context.stories) choice.add(step->origins.front().tensor, "broke first");
  for (const StepOrigins* step : context.stories) choose_story(context, *step, &choice);
  if (context.stories.empty() && context.input.check != nullptr) {
    for (const Hit& hit : context.input.check->hits) {
      if (choice.full()) break;
      choice.add(hit.tensor, fmt::format("hit by {}", hit.abbr.empty() ? hit.rule : hit.abbr));
    }
  }
  std::vector<Chosen> list = choice.take();
  std::stable_sort(list.begin(), list.end(), [](const Chosen& a, const Chosen& b) { return a.id.step < b.id.step; });
  return list;
}

void draw(Context& context, const TensorInfo& info, const Stats& stats, Card* card) {
  const std::string name = fmt::format("{}, step {}", context.tensor_text(info.id), info.id.step);
  const auto elements = look_at_elements(context.session, info.id, stats);
  if (!elements) {
    if (elements.status().code() == Code::kInterrupted) context.failure = Status(Code::kInterrupted, "report: interrupted");
    card->lines.push_back({muted("no picture: " + elements.status().message())});
    return;
  }
  if (info.count == 0) return;
  if (info.count > 1) card->figures.push_back(heat_map(elements->grid, name));
  if (info.count > 1) card->figures.push_back(histogram_figure(elements->bins, name));
}

Card card_of(Context& context, const Chosen& chosen) {
  Card card;
  card.id = context.anchor(chosen.id);
  card.step = chosen.id.step;
  card.role = fmt::format("{}: {}", context.when_text(chosen.id), chosen.role);
  Run title = code(context.tensor_text(chosen.id), context.session.tensor_name(chosen.id));
  card.title = {std::move(title)};
  const auto info = context.session.describe(chosen.id);
  if (!info) {
    card.lines.push_back({muted(info.status().message())});
    return card;
  }
  card.title.push_back(muted(fmt::format("  {}{}", dtype_name(info->dtype), shape_text(info->shape))));
  const auto stats = context.session.stats(chosen.id);
  if (!stats) {
    card.lines.push_back({muted(stats.status().message())});
    return card;
  }
  Line line{plain(stats_line(*stats))};
  const bool output = chosen.id.slot.io == Io::kOutput;
  if (const std::vector<std::string> marks = context.marks(chosen.id); output && !marks.empty())
    line.push_back(bad(fmt::format("   {}", fmt::join(marks, " "))));
  card.lines.push_back(std::move(line));
  if (!info->note.empty()) card.lines.push_back({muted(info->note)});
  if (info->availability == Availability::kElements)
    draw(context, *info, *stats, &card);
  else
    card.lines.push_back({muted("only statistics of it were dumped: no picture")});
  return card;
}

}  // namespace

std::optional<Section> tensor_chapter(Context& context) {
  const std::vector<Chosen> chosen = choose(context);
  if (chosen.empty()) return std::nullopt;
  for (size_t i = 0; i < chosen.size(); ++i) context.set_anchor(chosen[i].id, fmt::format("tensor-{}", i + 1));
  Cards cards;
  for (size_t i = 0; i < chosen.size() && context.failure.ok(); ++i) {
    cards.cards.push_back(card_of(context, chosen[i]));
    if (context.options.progress) context.options.progress(i + 1, chosen.size(), 0);
    if (interrupt_requested()) context.failure = Status(Code::kInterrupted, "report: interrupted");
  }
  Section section{"tensors", "The tensors involved", {}};
  section.blocks.push_back(std::move(cards));
  return section;
}

}  // namespace msdbg::page
