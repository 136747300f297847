// Writes rows into the index while the next ones are made: SQLite wants one thread, sorting and packing entries is work for all.
#pragma once

#include <functional>
#include <memory>

#include "msdbg/base.h"

namespace msdbg::dump {

class NewRow {
 public:
  virtual ~NewRow() = default;
  /// Any thread.
  virtual void make() = 0;
  /// After make(), on the thread of the writer.
  virtual Status put() = 0;
};

/// `next` gives the rows in the order in which they are put; null after the last one. It runs on the calling thread, some rows ahead of
/// those that were put: never are all of them in memory. Returns the first error of put(); rethrows exceptions.
Status write_rows(const std::function<std::unique_ptr<NewRow>()>& next);

}  // namespace msdbg::dump
