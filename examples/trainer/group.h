// The processes of a training of several ranks, and the sum over all of them.
//
// Rank 0 collects the values of the others through one socket each, adds them up in the order of the ranks, and sends everybody the
// result: all ranks get the same bits.
#pragma once

#include <memory>
#include <vector>

#include "net.h"

namespace trainer {

class Group : public Reducer {
 public:
  /// `sockets`: of rank 0 one per other rank, by rank; of the others one to rank 0. Owned.
  Group(int rank, int ranks, std::vector<int> sockets);
  ~Group() override;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int ranks() const override { return ranks_; }
  /// Waits for all ranks. Once a rank has ended, nothing is summed any more and broken() is true.
  void sum(const Values& in, Values& out) override;
  bool broken() const { return broken_; }

 private:
  bool exchange(const Values& in, Values& out);

  const int rank_, ranks_;
  const std::vector<int> sockets_;
  Values other_;
  bool broken_ = false;
};

/// What start_processes() returns in each of the new processes, and in the one that called it.
struct Started {
  std::unique_ptr<Group> group;  ///< null in the calling process
  int exit_status = 0;
};
/// Starts one process per rank. The calling process gets the largest exit status once all have ended; `failed` stands for processes that
/// could not be started or were killed.
Started start_processes(int ranks, int failed);

}  // namespace trainer
