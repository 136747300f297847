# Helpers for the CMakeLists.txt of every module.

add_library(msdbg_warnings INTERFACE)
target_compile_options(msdbg_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual -Wimplicit-fallthrough
  # g++ 12 reports overlaps in inlined std::string concatenations that do not exist (GCC bug 105329).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  # In a unity build, files see each other's private names, and the compiler takes them for names in headers.
  $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>
  $<$<BOOL:${MSDBG_WERROR}>:-Werror>)
# AArch64 has a fused multiply-add in its baseline. g++ would use it wherever it can, and the results would not be those of x86. Its
# `char` has no sign, which bytes above 0x7F would show.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_compile_options(-ffp-contract=off -fsigned-char)
endif()

add_library(msdbg_sanitizers INTERFACE)
if(MSDBG_SANITIZE)
  target_compile_options(msdbg_sanitizers INTERFACE -fsanitize=${MSDBG_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(msdbg_sanitizers INTERFACE -fsanitize=${MSDBG_SANITIZE})
endif()
if(MSDBG_SANITIZE MATCHES "thread")
  target_link_options(msdbg_sanitizers INTERFACE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tsan.map")
endif()

# Only the product is optimised and checked for undefined behaviour; of test code, both would take a third of the compile time.
# Linked last: the later of two such options counts.
add_library(msdbg_unwatched INTERFACE)
if(MSDBG_SANITIZE MATCHES "undefined")
  target_compile_options(msdbg_unwatched INTERFACE -O0 -fno-sanitize=undefined $<$<BOOL:${MSDBG_FUZZ}>:-fno-sanitize=fuzzer-no-link>)
endif()

# msdbg_module(NAME [NO_INSTALL] [NO_UNITY] [HOT] SOURCES a.cpp ... DEPS base tensor ... PRIVATE_LIBS fmt::fmt ...)
# Makes the static library msdbg_NAME; DEPS are other modules and become public, because headers include headers.
# It is installed as msdbg::NAME. NO_UNITY: each file is compiled separately in every preset. HOT: tests take much of their
# time in it, so it is optimised in the preset asan, too; the others take half the time to compile without.
function(msdbg_module name)
  cmake_parse_arguments(ARG "NO_INSTALL;NO_UNITY;HOT" "" "SOURCES;DEPS;PRIVATE_LIBS" ${ARGN})
  set(deps ${ARG_DEPS})
  list(TRANSFORM deps PREPEND msdbg_)
  if(ARG_SOURCES)
    add_library(msdbg_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(msdbg_${name} PUBLIC ${deps} PRIVATE $<BUILD_INTERFACE:msdbg_warnings> ${ARG_PRIVATE_LIBS})
    target_link_libraries(msdbg_${name} PUBLIC $<BUILD_INTERFACE:msdbg_sanitizers>)
    target_include_directories(msdbg_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    set_target_properties(msdbg_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
    if(ARG_NO_UNITY)
      set_target_properties(msdbg_${name} PROPERTIES UNITY_BUILD OFF)
    endif()
    if(MSDBG_SANITIZE MATCHES "undefined" AND NOT ARG_HOT)
      target_compile_options(msdbg_${name} PRIVATE -O0)
    endif()
    set(scope PUBLIC)
  else()
    add_library(msdbg_${name} INTERFACE)
    target_link_libraries(msdbg_${name} INTERFACE ${deps})
    set(scope INTERFACE)
  endif()
  target_include_directories(msdbg_${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT ARG_NO_INSTALL)
    set_target_properties(msdbg_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS msdbg_${name} EXPORT msdbgTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/msdbg COMPONENT dev)
    add_dependencies(msdbg_installed msdbg_${name})
  endif()
endfunction()

# msdbg_test(NAME SOURCES a_test.cpp ... LIBS msdbg_x ... [DATA] [LIVE] [NO_UNITY])
# A GoogleTest program; DATA makes it wait for the unpacked test data and passes their location. LIVE marks a test
# of the preset tsan-live; CMakePresets.json lists its programs.
function(msdbg_test name)
  cmake_parse_arguments(ARG "DATA;LIVE;NO_UNITY" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main msdbg_warnings msdbg_sanitizers msdbg_unwatched)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  # QEMU does not pass on every limit and failure.
  target_compile_definitions(${name} PRIVATE $<$<BOOL:${CMAKE_CROSSCOMPILING}>:MSDBG_EMULATED>)
  # The tested code is optimised according to the preset; the tests themselves must only compile quickly.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(ARG_NO_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  # The index of a directory of tensors is kept in the user's cache.
  set(properties TIMEOUT 300 ENVIRONMENT XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache)
  if(ARG_DATA)
    target_compile_definitions(${name} PRIVATE MSDBG_TEST_DATA="${MSDBG_TEST_DATA_DIR}")
    list(APPEND properties FIXTURES_REQUIRED test_data)
  endif()
  # The tests of a program that was not built have no label.
  if(ARG_LIVE)
    list(APPEND properties LABELS live)
  else()
    list(APPEND properties LABELS unit)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
