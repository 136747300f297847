// Stylesheet and script of the HTML page, embedded at build time from assets/.
#pragma once

#include <string_view>

namespace msdbg::page {

struct Asset {
  std::string_view text;
  std::string_view sha256;  ///< hexadecimal, of `text`
};
Asset style_asset();
Asset script_asset();

}  // namespace msdbg::page
