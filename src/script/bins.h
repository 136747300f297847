// Options of histograms: bins, min, max, log, exponents.
#pragma once

#include "msdbg/histogram.h"
#include "script/objects.h"

namespace msdbg::script {

BinOptions bin_options(OptionTable& options);

}  // namespace msdbg::script
