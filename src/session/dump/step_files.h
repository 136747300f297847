// The contents of one directory of a dump, listed once. Parses names, applies mapping.csv and reads statistic.csv; does not open
// tensor files.
#pragma once

#include <string>
#include <vector>

#include "msdbg/text_arena.h"
#include "session/dump/directory.h"
#include "session/dump/file_name.h"
#include "session/dump/layout.h"
#include "session/dump/statistic_csv.h"

namespace msdbg::dump {

struct ListedFile {
  std::string_view path;  ///< below the directory, as on disk; a zero byte is behind it
  FileName name;          ///< parsed from the original name if mapping.csv has one
};

struct StepFiles {
  std::vector<ListedFile> files;  ///< kNpy, kRaw and kDevice
  std::vector<StatisticRow> rows;
  std::vector<std::string> overflow;  ///< names of Opdebug files
  std::vector<std::string> others;    ///< neither tensors nor any other known file
  std::vector<std::string> unmapped;  ///< original names in mapping.csv whose file is missing
  std::vector<Problem> problems;
};

/// `plain` accepts .npy files of any name as separate tensors (a directory filled by hand).
/// Names of tensor files are kept by `names`.
StepFiles list_step(const std::string& directory, bool plain, DirectoryLister& lister, TextArena& names);

}  // namespace msdbg::dump
