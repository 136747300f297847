# Writes OUT: the Lua files FILES (comma-separated names relative to ROOT) and the marked part of the header ABI as C++ text.
# Text is cut into pieces, since a string literal has a length limit.

function(cpp_text text out_var)
  set(pieces "")
  string(LENGTH "${text}" length)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 4000 piece)
    string(APPEND pieces "    R\"msdbg~(${piece})msdbg~\"\n")
    math(EXPR at "${at} + 4000")
  endwhile()
  set(${out_var} "${pieces}" PARENT_SCOPE)
endfunction()

file(READ ${ABI} header)
string(FIND "${header}" "/* cdef-begin */" begin)
string(FIND "${header}" "/* cdef-end */" end)
if(begin LESS 0 OR end LESS begin)
  message(FATAL_ERROR "${ABI}: the cdef markers are missing")
endif()
math(EXPR begin "${begin} + 16")
math(EXPR length "${end} - ${begin}")
string(SUBSTRING "${header}" ${begin} ${length} declarations)
cpp_text("${declarations}" declarations)

string(REPLACE "," ";" FILES "${FILES}")
set(entries "")
set(names "")
foreach(file ${FILES})
  file(READ ${ROOT}/${file} text)
  cpp_text("${text}" text)
  string(APPEND entries "  if (path == \"${file}\") return std::string_view(\n${text}  );\n")
  string(APPEND names "      \"${file}\",\n")
endforeach()

file(WRITE ${OUT}.new "// Made by embed.cmake from scripts/ and include/msdbg/abi.h.
#include \"script/embedded.h\"

namespace msdbg::script {

std::optional<std::string_view> embedded_file(std::string_view path) {
${entries}  return std::nullopt;
}

std::span<const std::string_view> embedded_files() {
  static constexpr std::string_view kNames[] = {
${names}  };
  return kNames;
}

std::string_view abi_text() {
  return std::string_view(
${declarations}  );
}

}  // namespace msdbg::script
")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUT}.new)
