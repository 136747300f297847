// What one directory of a dump holds, listed once. Names are parsed, mapping.csv is applied, statistic.csv is read;
// tensor files are not opened.
#pragma once

#include <string>
#include <vector>

#include "session/dump/file_name.h"
#include "session/dump/layout.h"
#include "session/dump/statistic_csv.h"

namespace msdbg::dump {

struct ListedFile {
  std::string path;  ///< below the directory, as it is called on disk
  FileName name;     ///< of the original name where mapping.csv gives one
};

struct StepFiles {
  std::vector<ListedFile> files;  ///< kNpy, kRaw and kDevice
  std::vector<StatisticRow> rows;
  std::vector<std::string> overflow;  ///< names of Opdebug files
  std::vector<std::string> others;    ///< neither tensors nor anything else that is known
  std::vector<std::string> unmapped;  ///< original names of mapping.csv whose file is missing
  std::vector<Problem> problems;
};

/// `plain` accepts .npy files of any name as tensors of their own (a directory that somebody filled by hand).
StepFiles list_step(const std::string& directory, bool plain);

}  // namespace msdbg::dump
