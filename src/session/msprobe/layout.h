// Finds the folders of a dump: step<N>/rank<R>, step<N>/rank, step<N>/proc<pid>, alone or below pynative/ and graph/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::msprobe {

/// One folder with a table.
struct Place {
  int rank = 0;
  int graph = 0;  ///< 1 for `graph/` beside `pynative/`
  int64_t step = 0;
  std::string path;
  auto operator<=>(const Place&) const = default;
};

/// The form of the rank's folder, which tells the release.
enum class RankForm : uint8_t { kNumbered, kPlain, kProcess };

struct Layout {
  std::vector<Place> places;  ///< by rank, graph, step
  RankForm form = RankForm::kNumbered;
  std::vector<Problem> problems;
};

/// Whether this is a dump of msprobe, or a part of one: the root, a step, or a rank's folder.
bool is_dump(const std::string& path);
/// `ranks` chooses; a folder of a single rank is opened anyway. Error: kNotFound, kIoError.
Result<Layout> find_layout(const std::string& path, const IntSet& ranks);

}  // namespace msdbg::msprobe
