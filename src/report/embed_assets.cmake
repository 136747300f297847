# Writes OUT: page.css and page.js of ROOT as C++ text, with their hashes, which the page's own security policy names.
function(entry name file)
  file(READ ${ROOT}/${file} text)
  file(SHA256 ${ROOT}/${file} hash)
  # A string literal has a length limit.
  string(LENGTH "${text}" length)
  set(pieces "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 4000 piece)
    string(APPEND pieces "    R\"msdbg~(${piece})msdbg~\"\n")
    math(EXPR at "${at} + 4000")
  endwhile()
  set(code "${code}Asset ${name}() {\n  return {std::string_view(\n${pieces}  ), \"${hash}\"};\n}\n" PARENT_SCOPE)
endfunction()

set(code "")
entry(style_asset page.css)
entry(script_asset page.js)
file(WRITE ${OUT}.new "// Made by embed_assets.cmake.
#include \"report/assets.h\"

namespace msdbg::page {
${code}}  // namespace msdbg::page
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
