// Links into the example: `--release V` makes it behave like MindSpore V.
#include "support/old_releases.h"

namespace {

const msdbg::test::OldReleases kOldReleases;

}  // namespace
